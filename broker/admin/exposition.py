"""`/metrics`: the counters by the names of Redpanda, of Kafka's JMX exporter and of Turnstile, in the Prometheus text format.

Redpanda's names are those of its own `/metrics`, without a suffix (src/v/net/probes.cc; public_metrics.py has those of the other
page). Kafka's are what the JMX exporter's example rules (kafka-kraft-3_0_0.yml) make of its MBeans; where these rules put the
value of an MBean key into the metric's name, as with the listener of socket-server-metrics, it is a label here, which is what the
exporter does by default. Kafka's times are milliseconds, but for the acceptor's blocked time, which is nanoseconds. Turnstile's own
names follow OpenMetrics: `_total` and seconds.
Rates and averages are over Kafka's quota window; the average of nothing is 0. Quota rates of users and accept rates of IPs are
reported by the shards as gauges, each with its name and labels. tests/cluster/metric_names.tsv has the source of each name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.admin.gauge_help import help_of
from broker.admin.sampler import Sample, Sampler
from broker.admin.text_format import Kind, Page
from broker.admin.utilisation import Utilised
from broker.admin.utilisation_metrics import add_utilisation
from broker.journal.schema import BY_CAPS, OBSERVED_REASONS, REASONS
from broker.metrics.shard_counters import BUCKET_BOUNDS_S, BUCKETS, FAULTS, PATHS, PROXY_HEADERS, RECORDED
from shards.limits.node_throughput import NODE_LIMITS
from shards.ownership import BrokerShard
from shards.quotas.meters import KINDS

Gauge = Sequence[Any]
"""[name, {label: value}, number], from a shard's describe_gauges."""
_ACCEPT = "kafka_server_socket_server_metrics_"
_BLOCKED = "kafka_network_acceptor_acceptorblockedpercent_count"
_CHANNEL = "kafka_network_requestchannel_"
_RPC = "vectorized_kafka_rpc_"
RATE_LIMIT = ("core_rate", "ip_rate", "cluster_rate")
"""The reasons of refusals that Redpanda counts in connections_rejected_rate_limit; those of BY_CAPS in connections_rejected."""


class CounterView(NamedTuple):
    """A counter or gauge of the page: the slot of shard_counters it shows, times `scale`, and its labels beside shard
    and listener."""

    metric: str
    kind: Kind
    help: str
    counter: str
    labels: dict[str, str]
    scale: float = 1


def _gauge(metric: str, help: str, counter: str, *, scale: float = 1, **labels: str) -> CounterView:
    return CounterView(metric, Kind.GAUGE, help, counter, labels, scale)


def _counter(metric: str, help: str, counter: str, *, scale: float = 1, **labels: str) -> CounterView:
    return CounterView(metric, Kind.COUNTER, help, counter, labels, scale)


_DECISIONS = "Admission decisions, by where they were taken."
_TOKENS = "Connection tokens held here, of all pools."
_BYTES = "Bytes of requests and responses."
_OBSERVED_THROTTLED = "Requests answered that an observed client quota would have throttled, by quota."
_OBSERVED_SECONDS = "Throttle times that observed client quotas would have caused, by quota."
_THROTTLED = "Requests answered with a throttle time, by quota."
_THROTTLE_SECONDS = "Throttle time sent to clients, by quota."
_PROXY_HEADERS = "PROXY headers by version, and connections without one, by HAProxy's name for the reason."
_FAULTS = "Requests and connections that a fault changed, by its kind."
_THREAD_BLOCKED = "Time for which the shard read and answered no connection, as its request queue was full."
DROPPED = "turnstile_events_dropped_total"
DROPPED_HELP = "Journal events that were not written, by process; -1 is the coordinator."
_PER_SHARD = (
    _gauge(f"{_RPC}active_connections", "Connections open now, as Redpanda names it.", "open"),
    _counter(f"{_RPC}connects", "Connections admitted, as Redpanda names it.", "admitted"),
    _counter(f"{_RPC}connections_wait_rate", "Connections that waited for a rate, as Redpanda names it.", "rate_waits"),
    _counter(f"{_RPC}requests_completed", "Kafka requests answered, as Redpanda names it.", "requests"),
    _counter(f"{_RPC}received_bytes", "Bytes of requests, as Redpanda names it.", "bytes_in"),
    _counter(f"{_RPC}sent_bytes", "Bytes of responses, as Redpanda names it.", "bytes_out"),
    _counter(f"{_RPC}corrupted_headers", "Frames that were no request, as Redpanda names it.", "malformed"),
    *(_counter("turnstile_decisions_total", _DECISIONS, f"decisions_{path}", path=path) for path in PATHS),
    *(_gauge("turnstile_tokens", _TOKENS, f"tokens_{state}", state=state) for state in ("in_use", "cached")),
    _gauge("turnstile_pools", "Pools this shard keeps memory for.", "pools"),
    _gauge("turnstile_waiting", "Connections waiting for a token or a rate.", "waiting"),
    _gauge("turnstile_held", "Connections held before they are refused, for the rate of their IP.", "held"),
    _gauge("turnstile_proxy_waiting", "Connections waiting for their PROXY header.", "proxy_waiting"),
    _gauge("turnstile_muted", "Channels muted by a quota (the delay queue's size).", "muted"),
    _gauge("turnstile_quota_sensors", "Sensors of client quotas kept in memory.", "quota_sensors"),
    _gauge(
        "turnstile_quotas_shared",
        "Kinds of client quota with too many clients for sensors of their own: some are metered together, or were lately.",
        "quotas_shared",
    ),
    _counter("turnstile_quota_sensors_evicted_total", "Idle sensors that made room.", "quota_sensors_evicted"),
    _counter("turnstile_reclaims_total", "Times a home asked holders for idle tokens.", "reclaims"),
    _counter("turnstile_borrows_total", "Requests for tokens sent to a home.", "borrows"),
    _counter("turnstile_grants_total", "Tokens granted to other shards.", "grants"),
    _counter("turnstile_malformed_total", "Connections closed for a frame that was no request.", "malformed"),
    _counter("turnstile_requests_total", "Kafka requests answered.", "requests"),
    _counter("turnstile_auth_failures_total", "Failed authentications.", "auth_failures"),
    _counter(
        "turnstile_reauthentications_total",
        "Logins of clients that renewed their session (KIP-368).",
        "reauthentications",
    ),
    _counter("turnstile_sessions_expired_total", "Connections closed as their session was over.", "sessions_expired"),
    _counter("turnstile_stalls_total", "Times something held up a shard's loop for 50 ms or more.", "stalls"),
    _gauge(
        "turnstile_longest_callback_seconds",
        "The longest that anything held up this shard's loop since it started.",
        "longest_callback_us",
        scale=1e-6,
    ),
    _gauge(
        f"{_CHANNEL}requestqueuesize", "Requests that wait for a request handler (RequestQueueSize).", "request_queue"
    ),
    _gauge(
        "turnstile_request_handlers", "Request handlers of this shard; 0: requests wait for none.", "request_handlers"
    ),
    _counter("turnstile_requests_handled_total", "Requests that handlers have taken up.", "requests_handled"),
    *(
        _counter(f"turnstile_{metric}_seconds_total", help, counter, scale=1e-9)
        for metric, help, counter in (
            (
                "request_queue",
                "Time for which requests waited for a handler (the sum of RequestQueueTimeMs).",
                "request_queue_ns",
            ),
            ("request_handlers_busy", "Time for which request handlers were busy.", "request_handlers_busy_ns"),
            ("network_thread_blocked", _THREAD_BLOCKED, "network_thread_blocked_ns"),
        )
    ),
    _counter("turnstile_events_total", "Journal events written.", "events"),
    _counter(DROPPED, DROPPED_HELP, "events_dropped"),
    *(_counter("turnstile_bytes_total", _BYTES, f"bytes_{way}", direction=way) for way in ("in", "out")),
    *(
        _counter("turnstile_throttled_requests_total", _THROTTLED, f"throttled_{limit}", quota=limit)
        for limit in (*KINDS, *NODE_LIMITS)
    ),
    *(
        _counter("turnstile_throttle_seconds_total", _THROTTLE_SECONDS, f"throttle_ms_{limit}", scale=1e-3, quota=limit)
        for limit in (*KINDS, *NODE_LIMITS)
    ),
    *(
        _counter(
            "turnstile_observed_throttled_requests_total",
            _OBSERVED_THROTTLED,
            f"observed_throttled_{kind}",
            observed="true",
            quota=kind,
        )
        for kind in KINDS
    ),
    *(
        _counter(
            "turnstile_observed_throttle_seconds_total",
            _OBSERVED_SECONDS,
            f"observed_throttle_ms_{kind}",
            scale=1e-3,
            observed="true",
            quota=kind,
        )
        for kind in KINDS
    ),
    _counter(
        "turnstile_observed_mutations_refused_total",
        "Mutations made that an observed quota would have refused.",
        "observed_mutations_refused",
        observed="true",
    ),
    *(_counter("turnstile_faults_total", _FAULTS, f"faults_{kind}", kind=kind) for kind in FAULTS),
    *(
        _counter("turnstile_proxy_headers_total", _PROXY_HEADERS, f"proxy_{header}", header=header)
        for header in PROXY_HEADERS
    ),
    _gauge("turnstile_config_version", "Configuration version in force on this shard.", "version"),
    _gauge("turnstile_shard_epoch", "Incarnation of this shard.", "epoch"),
)
_REFUSED = "Connections refused, by what refused them."
_OBSERVED = "Connections admitted that a limit under observation would have refused, or made wait, by reason."
_PER_LISTENER = (
    *(
        _counter("turnstile_connections_refused_total", _REFUSED, f"refused_{reason}", reason=reason)
        for reason in REASONS
    ),
    *(
        _counter("turnstile_observed_refusals_total", _OBSERVED, f"observed_{reason}", observed="true", reason=reason)
        for reason in OBSERVED_REASONS
    ),
    _counter("turnstile_connections_admitted_total", "Connections admitted.", "admitted"),
    _counter("turnstile_connections_closed_total", "Connections that ended.", "closed"),
    _counter("turnstile_connections_lost_total", "Connections that ended with their killed shard.", "lost"),
    _gauge("turnstile_connections_open", "Connections open now.", "open"),
)


def exposition(
    sampler: Sampler,
    window_s: float,
    gauges: Mapping[BrokerShard, Iterable[Gauge]],
    uptime_s: float,
    *,
    inter_broker: str | None = None,
    disk: Mapping[str, object] | None = None,
    limits: Utilised | None = None,
    coordinator_dropped: int = 0,
) -> bytes:
    """The whole page, as of now. `window_s`: what rates and averages are over; `inter_broker`: the listener whose
    connections the broker's rate does not count; `disk`: from describe_disk; `limits`: how much of each is used;
    `coordinator_dropped`: events of the coordinator's own journal."""
    window = sampler.window(window_s)
    now = window[1]
    page = Page()
    for member in now.slots:
        _add_shard(page, sampler, now, member)
    page.add(Kind.COUNTER, DROPPED, DROPPED_HELP, {"broker": "-1", "shard": "-1"}, coordinator_dropped)
    _add_borrow_times(page, sampler, now)
    for broker in sorted({broker for broker, _ in now.slots}):
        members = [member for member in now.slots if member[0] == broker]
        _add_broker(page, sampler, window, broker, members, inter_broker)
    _add_reported(page, gauges)
    if limits is not None:
        add_utilisation(page, limits)
    if disk is not None:
        _add_disk(page, disk)
    page.add(Kind.GAUGE, "turnstile_uptime_seconds", "Seconds since the coordinator started.", {}, uptime_s)
    return page.render()


def _add_shard(page: Page, sampler: Sampler, now: Sample, member: BrokerShard) -> None:
    shard = {"broker": str(member[0]), "shard": str(member[1])}
    refused = sampler.refused(now, None, [member])
    for name, help, reasons in (
        ("connections_rejected", "Connections refused for a cap, as Redpanda names it.", BY_CAPS),
        ("connections_rejected_rate_limit", "Connections refused for a rate, as Redpanda names it.", RATE_LIMIT),
    ):
        page.add(Kind.COUNTER, _RPC + name, help, shard, sum(refused[reason] for reason in reasons))
    for view in _PER_SHARD:
        value = sampler.total(now, view.counter, None, [member]) * view.scale
        page.add(view.kind, view.metric, view.help, {**view.labels, **shard}, value)
    for listener in sampler.layout.listeners:
        labels = {"listener": listener, **shard}
        for view in _PER_LISTENER:
            value = sampler.total(now, view.counter, listener, [member])
            page.add(view.kind, view.metric, view.help, {**view.labels, **labels}, value)


def _add_borrow_times(page: Page, sampler: Sampler, now: Sample) -> None:
    """Durations of borrows, summed over shards."""
    first = sampler.layout.at["rpc"]
    slots = [sum(each[first + n] for each in now.slots.values()) for n in range(BUCKETS + 1)]
    buckets: list[tuple[str, float]] = []
    running = 0
    for bound, count in zip((*map(repr, BUCKET_BOUNDS_S), "+Inf"), slots[:BUCKETS], strict=True):
        running += count
        buckets.append((bound, running))
    page.histogram("turnstile_rpc_seconds", "Time until a home answered a borrow.", buckets, slots[BUCKETS] / 1e9)


def _add_broker(
    page: Page,
    sampler: Sampler,
    window: tuple[Sample, Sample],
    number: int,
    members: list[BrokerShard],
    inter_broker: str | None,
) -> None:
    """KIP-612's metrics of one broker."""
    seconds = window[1].mono_s - window[0].mono_s
    broker = {"broker": str(number)}
    accepted = 0
    for listener in sampler.layout.listeners:

        def rise(name: str, listener: str = listener) -> int:
            return sampler.rise(window, name, listener, members)

        arrived = sum(rise(counter) for counter in RECORDED)
        if listener != inter_broker or len(sampler.layout.listeners) == 1:
            accepted += arrived
        for name, value in (
            (f"{_ACCEPT}connection_accept_rate", _ratio(arrived, seconds)),
            (f"{_ACCEPT}connection_accept_throttle_time", _ratio(rise("accept_throttle_ms"), rise("accept_throttles"))),
            (f"{_ACCEPT}ip_connection_accept_throttle_time", _ratio(rise("ip_throttle_ms"), rise("ip_throttles"))),
            ("turnstile_accept_blocked_ratio", min(1.0, _ratio(rise("blocked_ns") / 1e9 / len(members), seconds))),
        ):
            page.add(Kind.GAUGE, name, help_of(name), {**broker, "listener": listener}, value)
        blocked_ns = sampler.total(window[1], "blocked_ns", listener, members)
        page.add(Kind.COUNTER, _BLOCKED, help_of(_BLOCKED), {**broker, "listener": listener}, blocked_ns)
    name = f"{_ACCEPT}broker_connection_accept_rate"
    page.add(Kind.GAUGE, name, help_of(name), broker, _ratio(accepted, seconds))


def _add_disk(page: Page, disk: Mapping[str, Any]) -> None:
    """Redpanda has gauges of its disk on the other page only."""
    page.add(Kind.GAUGE, "turnstile_disk_size_bytes", "Size of the volume of the data.", {}, disk["total_bytes"])
    page.add(Kind.GAUGE, "turnstile_disk_free_bytes", "Free space on the volume of the data.", {}, disk["free_bytes"])
    for broker in disk["brokers"]:
        labels = {"broker": str(broker["broker"])}
        page.add(
            Kind.GAUGE,
            "turnstile_disk_full",
            "1: Produce is refused, as too little space is free.",
            labels,
            broker["full"],
        )


def _add_reported(page: Page, gauges: Mapping[BrokerShard, Iterable[Gauge]]) -> None:
    """Gauges that shards report, as they are; the same name and labels from two shards of a broker add up."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for (broker, _), reported in gauges.items():
        for name, labels, value in reported:
            if math.isnan(value):
                value = 0.0  # the average of nothing
            key = (name, tuple(sorted({**labels, "broker": str(broker)}.items())))
            found[key] = found.get(key, 0.0) + value
    for (name, named), value in sorted(found.items()):
        page.add(Kind.GAUGE, name, help_of(name), dict(named), value)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
