"""The admin API's answers about connections, tokens and processes: the JSON of each as a type, as in answers.py."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from broker.admin.answers import ClientQuotas, EntityQuotas, Settings
from shards.config.cluster_plan import ClusterAbout

ByReason: TypeAlias = Annotated[dict[str, int], "Connections, by the reason of the refusal."]
RefusedBy: TypeAlias = Literal["ip", "listener", "reason", "shard", "limit"]
ShardState: TypeAlias = Literal["up", "unresponsive", "starting", "down"]


# ---- refusals, sources, tokens


class ObservedCapRow(TypedDict):
    """A cap or a creation rate that is observed instead of enforced."""

    limit: Annotated[str, "The setting."]
    value: float
    waits: Annotated[bool, "Connections would have waited, for a slot or for a rate."]
    count: Annotated[int, "Connections that it would have refused, or made wait."]


class ObservedQuotaRow(TypedDict):
    """A client quota that is observed instead of enforced, at one value."""

    quota: Annotated[str, "The kind of quota."]
    value: float
    requests: Annotated[int, "Requests that it would have throttled."]
    throttle_ms: Annotated[int, "The sum of their throttle times."]
    refused: Annotated[int, "Mutations that it would have refused."]


class ObservedClientRow(TypedDict):
    """A client that observed quotas would have throttled."""

    user: str
    client_id: str
    requests: int
    error: Annotated[int, "`requests` may be too high by this."]
    quotas: Annotated[dict[str, int], "Requests, by the quota with the longest throttle time."]


class ObservedQuotasAnswer(TypedDict):
    """Requests that the observed client quotas would have throttled since one of these quotas was last changed. A shard that was
    started again counts anew."""

    set: Annotated[list[EntityQuotas], "The observed quotas."]
    requests: Annotated[int, "Requests that at least one of them would have throttled."]
    throttle_ms: Annotated[int, "The sum of the throttle times; of each request the longest."]
    more: Annotated[bool, "True: there are more clients than `clients` has."]
    quotas: list[ObservedQuotaRow]
    clients: list[ObservedClientRow]


class ObservedAnswer(TypedDict):
    """The refusals and waits that observed caps and creation rates would have caused since one of these limits was last changed; a
    shard that was started again has forgotten its part."""

    refused: int
    waited: int
    undecided: int
    addresses: Annotated[int, "The number of addresses of these connections that were counted one by one."]
    more: Annotated[bool, "True: at least one shard's table of addresses was full, so there may be more."]
    caps: list[ObservedCapRow]
    set: Annotated[Settings, "The observed values by name."]
    brokers: Annotated[dict[str, Settings], "The observed values that are set for single brokers, by broker id."]
    quotas: Annotated[ObservedQuotasAnswer | None, "null: no client quota is observed."]


class RefusedRow(TypedDict):
    """The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the members that belong to `by`
    are there."""

    count: int
    ip: NotRequired[str]
    error: NotRequired[Annotated[int, "By ip: `count` may be too high by this."]]
    listener: NotRequired[str]
    broker: NotRequired[int]
    shard: NotRequired[int]
    reason: NotRequired[str]
    reasons: NotRequired[ByReason]
    limit: NotRequired[str]
    value: NotRequired[Annotated[float, "The value of the limit."]]
    waits: NotRequired[Annotated[bool, "True: at the limit, connections would have waited."]]


class RefusalsAnswer(TypedDict):
    """Counts since the cluster started. By ip there are only the most refused addresses, counted since their shard started. If
    `observed`, the counts by ip and by limit are those since an observed limit was last changed."""

    by: RefusedBy
    total: int
    admitted: int
    refusals: list[RefusedRow]
    observed: NotRequired[Annotated[bool, "True: these are observed limits, which have refused nothing."]]
    summary: NotRequired[ObservedAnswer | None]


class ProxyRow(TypedDict):
    """A proxy that announced connections (PROXY protocol)."""

    proxy: Annotated[str, "The address of the proxy."]
    endpoint: Annotated[str | None, "The private endpoint of a cloud by which the connections came."]
    open: int


class ProxiesAnswer(TypedDict):
    """The proxies of the open connections; the proxy with the most comes first."""

    proxies: list[ProxyRow]


class HeldTokens(TypedDict):
    """The tokens of a pool on one shard."""

    shard: int
    in_use: int
    cached: int


class TokenPool(TypedDict):
    """A pool of tokens, one for each connection: the state at its home, and the tokens of every shard."""

    broker: Annotated[
        int | None, "null: of all brokers; its shards are then numbered over all of them, those of broker 0 first."
    ]
    kind: Annotated[
        str, "broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced."
    ]
    key: Annotated[
        str,
        "The listener's name, the address or the user's name; `all`: of the broker with its inter-broker listener; else empty.",
    ]
    home: Annotated[int | None, "The home of the pool, the shard that decides; null: it did not answer."]
    cap: Annotated[int | None, "null: unlimited."]
    limit: Annotated[str, "The setting that gives the cap."]
    mode: Annotated[str, "open, reclaiming or tight."]
    free: int | None
    waiting: Annotated[int, "Connections that wait for a token."]
    in_use: int
    cached: int
    holders: list[HeldTokens]


class TokenTotals(TypedDict):
    """Tokens of all pools."""

    in_use: int
    cached: int
    pools: int


class TokensAnswer(TypedDict):
    """The pools most in use."""

    pools: list[TokenPool]
    truncated: Annotated[bool, "True: there are more pools."]
    totals: TokenTotals


# ---- what holds for an address


class PoolUse(TypedDict):
    """A limit on open connections, and its use."""

    pool: Annotated[str, "broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster."]
    limit: Annotated[str, "The setting; empty: unlimited."]
    value: Annotated[int | None, "null: unlimited."]
    waits: Annotated[bool, "True: over the cap a connection waits instead of being refused."]
    home: int | None
    in_use: int
    cached: int
    holders: list[HeldTokens]


class ObservedUse(TypedDict):
    """An observed cap, and its use."""

    limit: str
    value: int | None
    waits: bool
    in_use: int


class AddressPool(PoolUse):
    """A limit on open connections that a connection of the address counts for."""

    observed: Annotated[ObservedUse | None, "The cap that is observed beside it; null: none is."]


class AddressRate(TypedDict):
    """A limit on new connections a second that holds for the address or user."""

    of: Annotated[str, "broker, ip, core, user, listener:NAME or cluster."]
    limit: Annotated[str, "The setting or quota."]
    value: Annotated[float, "Connections a second."]
    burst: Annotated[float, "Connections that pass at once after a pause."]
    used: Annotated[float | None, "Connections a second, over the quota window; null: not known."]


class AddressLimits(TypedDict):
    """The limits of one broker for an address."""

    broker: int
    ip: str
    connections: list[AddressPool]
    rates: list[AddressRate]


class UserConnections(PoolUse):
    """The cap of a user's connections on one broker, and the rate of new ones if that is limited."""

    broker: int
    observed: Annotated[ObservedUse | None, "The cap that is observed beside it; null: none is."]
    rate: AddressRate | None


class Explanation(TypedDict):
    """The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the request names. If it
    names a user, also the limits of that user's connections (`user_connections`)."""

    brokers: NotRequired[list[AddressLimits]]
    cluster: NotRequired[
        Annotated[
            AddressPool,
            "Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use, without home and "
            "holders.",
        ]
    ]
    cluster_rate: NotRequired[
        Annotated[
            AddressRate, "Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections."
        ]
    ]
    observed_cluster_rate: NotRequired[
        Annotated[AddressRate, "The same, if one is observed that is not the one in force."]
    ]
    client: NotRequired[ClientQuotas]
    user_connections: NotRequired[list[UserConnections]]


# ---- the cluster and its processes


class ShardRow(TypedDict):
    """The process of one shard."""

    broker: int
    shard: int
    pid: int
    epoch: Annotated[int, "The number of this incarnation of the process; it only rises."]
    state: ShardState
    connections: int
    config_version: int
    stalls: Annotated[int, "The number of times that its event loop was held up."]
    longest_callback_ms: float
    restarts: int
    memory_kills: Annotated[int, "The number of times that the system killed it for want of memory."]
    restart_in_s: Annotated[
        float | None, "Seconds until a shard that keeps ending is started again; null: it does not wait for that."
    ]


class ShardsAnswer(TypedDict):
    """Every shard."""

    shards: list[ShardRow]


class BrokerDisk(TypedDict):
    """The space that a broker needs: while less is free it is `full`, and refuses Produce."""

    broker: int
    least_free_bytes: int
    full: bool


class VolumeAnswer(TypedDict):
    """The volume of the data directory. Sizes are -1 if the system does not tell them."""

    total_bytes: int
    free_bytes: int
    brokers: list[BrokerDisk]


class JournalAnswer(TypedDict):
    """The events that the journal lacks."""

    events_dropped: Annotated[int, "The number of events since the start that were not written."]
    is_losing: Annotated[bool, "True: events are being lost now."]


class ClusterAnswer(ClusterAbout):
    """The cluster: its processes, listeners, topics and disk."""

    pid: Annotated[int, "The pid of the supervisor."]
    coordinator_pid: int
    lost: Annotated[list[str], "The parts of the configuration that could not be read, a sentence each."]
    topics: Annotated[dict[str, int], "Partitions by topic."]
    disk: VolumeAnswer | None
    journal: JournalAnswer


class DamagedFile(TypedDict):
    """A file that could not be read, and was set aside."""

    path: Annotated[str, "The path below the data directory."]
    size_bytes: int


class DamagedAnswer(TypedDict):
    """The files that were set aside."""

    damaged: list[DamagedFile]


class EndingAnswer(TypedDict):
    """The cluster is about to end."""

    ending: bool


class HealthAnswer(TypedDict):
    """The health of the cluster: ok if every shard is up, and the supervisor runs."""

    status: Literal["ok", "degraded"]
    missing: NotRequired[Annotated[list[str], "The shards that are not up, and the supervisor if it is stopped."]]
    states: NotRequired[Annotated[dict[str, ShardState | Literal["stopped"]], "The state of each of them."]]
