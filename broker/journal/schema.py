"""The journal's columns, once, as plain data: needs neither pyarrow nor PySpark, so any module may import it.

An event belongs to one (broker, shard, epoch): a process incarnation. `seq` counts its events from 0 without a gap; a
missing number means events that were lost, and a reader must answer "unknown" there instead of guessing.
`mono_ns` is CLOCK_MONOTONIC, one clock for all processes of a machine; `ts` is that plus a fixed offset per
spool segment, so the two never disagree about an order within a segment.

A token's `admitted` event is journaled after it was taken, its `closed` event before it is released. An
interval [admitted, closed) therefore lies inside the time in which the token was really held, and a sweep over
`mono_ns` that finds more open intervals than the cap has found a real violation.
"""

from typing import NamedTuple


class Column(NamedTuple):
    """One column. `type` is one of: timestamp (UTC, us), long, int, double, string."""

    name: str
    type: str
    meaning: str


COLUMNS: tuple[Column, ...] = (
    Column("ts", "timestamp", "wall clock, UTC, microseconds: mono_ns plus the segment's offset"),
    Column("mono_ns", "long", "CLOCK_MONOTONIC in nanoseconds, comparable between all processes of one machine"),
    Column("seq", "long", "number of the event in its (broker, shard, epoch), from 0, gapless"),
    Column("broker", "int", "broker id; -1: the coordinator"),
    Column("shard", "int", "shard of that broker; -1: the coordinator"),
    Column("epoch", "long", "incarnation of the process that wrote the event; only ever rises"),
    Column("kind", "string", "what happened: one of KINDS"),
    Column("conn", "long", "connection, unique within (broker, shard, epoch), from 1"),
    Column("ip", "string", "client address, the announced one behind a proxy; v4-mapped IPv6 as IPv4"),
    Column("port", "int", "client port"),
    Column("listener", "string", "listener name"),
    Column(
        "reason",
        "string",
        "refused, authenticated: one of REASONS; closed: which side ended it; throttled, charge: stand_in; fault: its kind; "
        "request: its error",
    ),
    Column("user", "string", "principal name, once known"),
    Column("client_id", "string", "client id of the request header"),
    Column("api", "string", "throttled, fault: name of the request, e.g. Produce"),
    Column("bytes", "long", "closed: bytes read and written; throttled, charge: bytes or units recorded"),
    Column("throttle_ms", "int", "throttled, charge: milliseconds the channel is muted"),
    Column(
        "held_ms",
        "double",
        "admitted: accept to decision; refused: accept to close, or to the decision where its socket is held "
        "(turnstile.refuse.mode); closed: how long it was open",
    ),
    Column("limit", "string", "name of the setting, quota or fault that decided"),
    Column("limit_value", "double", "its value at that moment"),
    Column("version", "long", "configuration version the decision was made under"),
    Column("detail", "string", "JSON; its shape depends on the kind"),
)

KINDS: tuple[str, ...] = (
    "admitted",
    "refused",
    "closed",
    "throttled",
    "config",
    "grant",
    "reclaim",
    "shard_up",
    "shard_lost",
    "ended",
    "fault",
    "request",
    "early",
    "charge",
    "meter",
    "observed",
    "observed_charge",
    "observed_meter",
    "observed_rate",
    "authenticated",
)
"""`ended`: the process ends in order; no event of it follows. A spool has their places as numbers, so new ones come last."""

TOLD_LATE: tuple[str, ...] = ("throttled", "charge", "meter", "observed_charge", "observed_meter", "observed_rate")
"""Kinds whose `mono_ns` is the instant at which a meter recorded, in whole milliseconds: it may be before that of the event
before."""

REASONS: tuple[str, ...] = (
    "cluster_cap",
    "cluster_rate",
    "broker_cap",
    "listener_cap",
    "ssl_cap",
    "ip_cap",
    "user_cap",
    "user_rate",
    "ip_rate",
    "core_rate",
    "fd_limit",
    "shard_unavailable",
    "proxy_header",
)
BY_CAPS = ("cluster_cap", "broker_cap", "listener_cap", "ssl_cap", "ip_cap")
"""The reasons of connections that a cap refused when they arrived."""
AFTER_LOGIN = ("user_cap", "user_rate")
"""The reasons of connections that were admitted, and then refused for their user: an `authenticated` event tells it."""
GAVE_UP = "closed"
"""The reason of an `authenticated` event of a client that left while its login was decided."""
BEFORE_ARRIVAL = "proxy_header"
"""The reason of a connection that was ended before it arrived: no limit was asked, and its `ip` is its proxy's."""

OBSERVED_REASONS: tuple[str, ...] = (
    "cluster_cap", "cluster_rate", "broker_cap", "ssl_cap", "ip_cap", "user_cap", "broker_wait", "listener_wait", "ip_rate",
    "core_rate", "user_rate", "rate_wait", "shard_unavailable",
)  # fmt: skip
"""The observed limit that would have refused the connection, or would have let it wait: for a slot, or (`rate_wait`, which no
`observed` event has) for a rate; or the home of an observed pool or rate did not answer, so that nothing is known."""
WAITS: tuple[str, ...] = ("broker_wait", "listener_wait", "rate_wait")

STAND_IN = "stand_in"
"""The reason of a `throttled`, `charge` or `observed_charge` event that a stand-in of the quota's home decided."""

REDPANDAS_QUOTA = "redpanda:"
"""Stands before the quota's name in the `limit` of a `throttled` event by Redpanda's semantics: no meter of Kafka's decided it."""

CALLBACKS_QUOTA = "callback:"
"""Stands before the name of a quota that client.quota.callback.class decided."""

CODE_OF_KIND: dict[str, int] = {kind: code for code, kind in enumerate(KINDS, start=1)}
"""The byte a kind is in a spool record. 0 is no kind, so that a file's tail of zeros is never an event."""

STRING_COLUMNS: tuple[str, ...] = (
    "ip",
    "listener",
    "reason",
    "user",
    "client_id",
    "api",
    "limit",
    "detail",
)
"""Columns that a spool record holds as 16-bit ids into the segment's dictionary, in record order; 0 is null."""

COORDINATOR = -1
"""broker and shard of the events that the coordinator writes."""
