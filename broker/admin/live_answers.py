"""The answer of `/v1/live`, which is everything that a display of a cluster refreshes: as a type, as in answers.py."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

from broker.admin.answers import SettingValue
from broker.admin.cluster_answers import ByReason, JournalAnswer, ObservedAnswer, ShardRow, TokenTotals
from broker.admin.utilisation_answers import CloseRow, OfBroker, UnixSeconds

LimitedUse: TypeAlias = Annotated[
    Literal["connections", "new_connections"], "Open ones, or new ones a second over the quota window."
]
ByPath: TypeAlias = Annotated[
    dict[str, int],
    "Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that another "
    "shard had granted before), rpc (later: it waited for a home's answer).",
]


class Throttles(TypedDict):
    """The requests that a kind of quota has slowed down since the start."""

    requests: int
    throttle_ms: Annotated[int, "The sum of their throttle times, in milliseconds."]


class LiveTotals(TypedDict):
    """Gauges, and counts since the cluster started."""

    connections: int
    admitted: int
    closed: int
    lost: int
    refused: ByReason
    decisions: ByPath
    tokens: TokenTotals
    waiting: int
    held: int
    muted: int
    borrows: int
    reclaims: int
    malformed: int
    requests: int
    bytes_in: int
    bytes_out: int
    throttled: Annotated[dict[str, Throttles], "By the quota's kind."]


class SeriesPoint(TypedDict):
    """One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count are left out."""

    at: UnixSeconds
    connections: int
    admitted: float
    closed: float
    refused: dict[str, float]
    in_use: int
    cached: int
    decisions: dict[str, float]
    requests: float
    throttled: dict[str, float]


class SeriesAnswer(TypedDict):
    """The counts over time."""

    step_s: Annotated[float, "Seconds from one point to the next; each is an average over the time since the last."]
    series: list[SeriesPoint]


class LiveShard(ShardRow):
    """The process of one shard, and its work."""

    admitted_per_s: float
    refused_per_s: float
    admitted: int
    refused: int
    tokens: TokenTotals
    decisions: ByPath


class LimitUse(TypedDict):
    """The use of a limit on one broker, or of one of the whole cluster."""

    broker: OfBroker
    what: LimitedUse
    of: Annotated[str, "broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster."]
    used: float
    limit: float
    by: Annotated[str, "The setting or quota that gives the limit."]


class RefusedAddress(TypedDict):
    """One of the addresses that were refused most."""

    ip: str
    count: int
    error: Annotated[int, "`count` may be too high by this."]
    reasons: ByReason
    open: Annotated[int, "The open connections of the address."]
    uses: list[LimitUse]


class RefusedAddresses(TypedDict):
    """The number of addresses that were refused."""

    known: Annotated[int, "The number of addresses that have a count of their own."]
    others_refused: Annotated[int, "Refusals of the addresses that `top_refused` leaves out."]
    more: Annotated[bool, "True: at least one shard's table of addresses was full, so there may be more."]


class QuotaClient(TypedDict):
    """A client with a quota, on one broker."""

    broker: int
    user: Annotated[str, "Empty: the quota does not tell users apart."]
    client_id: Annotated[str, "Empty: the quota does not tell client ids apart."]
    quota: Annotated[str, "The quota's key."]
    throttle_ms: Annotated[float, "The average throttle time within the quota window, in milliseconds."]
    value: Annotated[float, "Bytes a second, percent, or mutations a second."]
    limit: Annotated[float | None, "The quota, in the same unit; null: it is no longer set."]


class LimitRow(TypedDict):
    """A setting that limits clients."""

    name: str
    broker: Annotated[int | None, "The broker that it is set for; null: the whole cluster."]
    value: SettingValue
    text: Annotated[str, "The value as `turnstile config set` takes it."]
    set: bool
    vocabulary: Annotated[str, "The origin of the name: kafka, redpanda or turnstile."]
    observable: Annotated[bool, "True if it can be observed instead of enforced."]
    doc: str


class LiveAnswer(TypedDict):
    """Everything that a display refreshes. The rates of `shards` are over the last second that was sampled; new connections in
    `uses`, and the values of quotas, are over the quota window."""

    at: UnixSeconds
    uptime_s: float
    window_s: float
    version: int
    brokers: int
    listeners: list[str]
    totals: LiveTotals
    journal: JournalAnswer
    shards: list[LiveShard]
    series: list[SeriesPoint]
    uses: Annotated[list[LimitUse], "The fullest first."]
    close: Annotated[list[CloseRow], "The numbers of limits that are close to being reached."]
    top_refused: list[RefusedAddress]
    refused_addresses: RefusedAddresses
    throttled: Annotated[list[QuotaClient], "Clients that are throttled by a quota, the longest throttle time first."]
    within_quota: Annotated[list[QuotaClient], "Other clients with a quota that they use, the fullest first."]
    limits: list[LimitRow]
    observed: Annotated[ObservedAnswer | None, "null: no limit and no quota is observed."]
