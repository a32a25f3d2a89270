"""A client of Turnstile's admin API, which needs Python 3.11 alone. A file to copy.

    api = AdminApi("http://127.0.0.1:9644")
    api.put_config({"upsert": {"kafka_connections_max_per_ip": 3}})

Generated from the API's OpenAPI document by `make clients`: changes belong there.
"""

# mypy: disable-error-code="no-any-return"
# ruff: noqa: E501, SIM105
# fmt: off
from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Literal, NotRequired, TypedDict


class AdminRefused(Exception):
    """The API answered with an error: `status` is HTTP's, `told` the JSON of its body; `str()` is its sentence."""

    def __init__(self, status: int, told: Any) -> None:
        told = told if isinstance(told, dict) else {"message": str(told)}
        sentences = [told["message"]] if "message" in told else told.values()
        super().__init__("\n".join(map(str, sentences)))
        self.status = status
        self.told = told


class AdminApi:
    """Calls of the admin API of one cluster. They raise AdminRefused, and OSError where nothing answers."""

    def __init__(
        self, url: str, token: str | None = None, *, who: str = "a client in Python", timeout_s: float = 15.0
    ) -> None:
        """`who` is what the history of changes names the caller."""
        self._url = url.rstrip("/")
        self._headers = {"content-type": "application/json", "x-turnstile-who": who}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s

    def _text(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> str:
        words = {name: json.dumps(value) if isinstance(value, bool) else value for name, value in query.items()}
        asked = urllib.parse.urlencode({name: value for name, value in words.items() if value is not None})
        content = None if body is None else json.dumps(body).encode()
        target = f"{self._url}{path}?{asked}" if asked else self._url + path
        request = urllib.request.Request(target, content, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as fault:
            told = fault.read().decode()
            try:
                told = json.loads(told)
            except ValueError:
                pass  # of something before the API
            raise AdminRefused(fault.code, told) from None

    def _json(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> Any:
        return json.loads(self._text(method, path, query, body))

    def get_config(self, *, key: str | None = None, include_defaults: bool | None = None, broker: int | None = None, observe: bool | None = None) -> dict[str, list[str] | bool | float | str | None]:
        """The settings and their values: Redpanda's, Kafka's and Turnstile's own."""
        return self._json("GET", "/v1/cluster_config", {"key": key, "include_defaults": include_defaults, "broker": broker, "observe": observe})

    def put_config(self, body: SettingsChange, *, dry_run: bool | None = None, broker: int | None = None, observe: bool | None = None) -> ChangedConfig:
        """Changes settings. The answer comes when every shard enforces them, or counts by them if they are observed limits."""
        return self._json("PUT", "/v1/cluster_config", {"dry_run": dry_run, "broker": broker, "observe": observe}, body)

    def get_config_schema(self) -> SettingsSchema:
        """Every setting: its type, range, default and description."""
        return self._json("GET", "/v1/cluster_config/schema", {})

    def get_config_status(self) -> list[BrokerConfigStatus]:
        """The configuration version of each broker, in the format of rpk."""
        return self._json("GET", "/v1/cluster_config/status", {})

    def get_broker_overrides(self, *, observe: bool | None = None) -> BrokerOverrides:
        """The settings that are set for single brokers."""
        return self._json("GET", "/v1/cluster_config/broker_overrides", {"observe": observe})

    def get_config_history(self, *, limit: int | None = None, before: int | None = None) -> SettingHistory:
        """The history of the configuration: the changes of settings, quotas, topics and other records, with author and time."""
        return self._json("GET", "/v1/config/history", {"limit": limit, "before": before})

    def get_notes(self) -> NotesAnswer:
        """Warnings about the limits in force, such as a cap that refuses everything."""
        return self._json("GET", "/v1/notes", {})

    def get_advertised(self) -> AdvertisedAnswer:
        """The advertised addresses."""
        return self._json("GET", "/v1/advertise", {})

    def put_advertised(self, body: AddressesChange) -> ChangedAdvertised:
        """Sets the advertised addresses of a listener."""
        return self._json("PUT", "/v1/advertise", {}, body)

    def delete_advertised(self, *, listener: str | None = None, broker: int | None = None) -> ChangedAdvertised:
        """Takes back the addresses that were set live: those of the start of the cluster are advertised again."""
        return self._json("DELETE", "/v1/advertise", {"listener": listener, "broker": broker})

    def get_quotas(self, *, observe: bool | None = None) -> QuotasAnswer:
        """All quotas."""
        return self._json("GET", "/v1/quotas", {"observe": observe})

    def put_quotas(self, body: QuotasChange, *, dry_run: bool | None = None, observe: bool | None = None) -> ChangedConfig:
        """Changes quotas. The answer comes when every shard enforces them, or counts by them if they are observed."""
        return self._json("PUT", "/v1/quotas", {"dry_run": dry_run, "observe": observe}, body)

    def get_observed_quotas(self) -> ObservedQuotasAnswer:
        """The observed client quotas, and the requests that they would have throttled."""
        return self._json("GET", "/v1/quotas/observed", {})

    def explain_quotas(self, *, user: str | None = None, client_id: str | None = None) -> ClientQuotas:
        """The quotas that hold for a client."""
        return self._json("GET", "/v1/quotas/explain", {"user": user, "client-id": client_id})

    def explain(self, *, ip: str | None = None, user: str | None = None, client_id: str | None = None) -> Explanation:
        """The limits that hold for an address, the quotas of a client, or both."""
        return self._json("GET", "/v1/explain", {"ip": ip, "user": user, "client-id": client_id})

    def get_users(self) -> UsersAnswer:
        """The users that may log in on listeners with SASL."""
        return self._json("GET", "/v1/users", {})

    def put_user(self, body: UserChange) -> ChangedConfig:
        """Adds a user, changes its password, or removes it."""
        return self._json("PUT", "/v1/users", {}, body)

    def get_faults(self) -> FaultsAnswer:
        """The faults, and how often each has fired."""
        return self._json("GET", "/v1/faults", {})

    def put_faults(self, body: FaultsChange) -> ChangedFaults:
        """Adds and removes faults. The answer comes when they are in force on every shard."""
        return self._json("PUT", "/v1/faults", {}, body)

    def get_telemetry(self) -> TelemetryAnswer:
        """The clients that push telemetry (KIP-714)."""
        return self._json("GET", "/v1/telemetry", {})

    def put_subscription(self, body: SubscriptionConfigs) -> ChangedConfig:
        """Changes a client metrics resource: the metrics that clients push, and the interval."""
        return self._json("PUT", "/v1/telemetry", {}, body)

    def get_last_push(self, client_instance_id: str) -> TelemetryPush:
        """The last push of a client instance."""
        return self._json("GET", f'/v1/telemetry/{urllib.parse.quote(client_instance_id, safe="")}', {})

    def get_refusals(self, *, by: Literal["ip", "listener", "reason", "shard", "limit"] | None = None, observed: bool | None = None) -> RefusalsAnswer:
        """The number of refused connections, by what `by` names."""
        return self._json("GET", "/v1/refusals", {"by": by, "observed": observed})

    def get_sources(self) -> SourcesAnswer:
        """The admitted and refused connections of each address."""
        return self._json("GET", "/v1/sources", {})

    def get_proxies(self) -> ProxiesAnswer:
        """The open connections by proxy, and by private endpoint of a cloud."""
        return self._json("GET", "/v1/proxies", {})

    def get_utilisation(self, *, limit: int | None = None) -> UtilisationAnswer:
        """The use of each limit: caps, creation rates and client quotas. The fullest come first."""
        return self._json("GET", "/v1/utilisation", {"limit": limit})

    def get_watch(self, *, ip: str | None = None, user: str | None = None, client_id: str | None = None, broker: int | None = None, minutes: int | None = None, since: float | None = None) -> WatchAnswer:
        """The use of limits, the refusals and the throttles of one address or client over time. The first request starts it."""
        return self._json("GET", "/v1/watch", {"ip": ip, "user": user, "client-id": client_id, "broker": broker, "minutes": minutes, "since": since})

    def get_tokens(self) -> TokensAnswer:
        """The caps that are used most, and the number of their tokens on each shard."""
        return self._json("GET", "/v1/tokens", {})

    def get_shards(self) -> ShardsAnswer:
        """The processes of the brokers."""
        return self._json("GET", "/v1/shards", {})

    def get_live(self, *, since: float | None = None) -> LiveAnswer:
        """Everything that the live page and `turnstile top` refresh."""
        return self._json("GET", "/v1/live", {"since": since})

    def get_series(self, *, minutes: int | None = None, since: float | None = None) -> SeriesAnswer:
        """Connections, admissions, refusals and throttled requests of the last minutes."""
        return self._json("GET", "/v1/series", {"minutes": minutes, "since": since})

    def get_cluster(self) -> ClusterAnswer:
        """The cluster: its processes, listeners, topics and disk."""
        return self._json("GET", "/v1/cluster", {})

    def get_damaged(self) -> DamagedAnswer:
        """Files that could not be read, and were set aside."""
        return self._json("GET", "/v1/damaged", {})

    def reset(self) -> ChangedConfig:
        """Resets settings, topics, groups, quotas and users to what they were when the cluster started. Closes every connection."""
        return self._json("POST", "/v1/reset", {})

    def shutdown(self) -> EndingAnswer:
        """Ends the whole cluster, after the answer is sent."""
        return self._json("POST", "/v1/shutdown", {})

    def get_metrics(self) -> str:
        """Metrics for Prometheus, under three kinds of names: those of Redpanda's `/metrics` (without `_total`), Kafka's as in the example rules of the JMX exporter, and `turnstile_*`."""
        return self._text("GET", "/metrics", {})

    def get_public_metrics(self) -> str:
        """Metrics for Prometheus, under the names of Redpanda's `/public_metrics` (`redpanda_rpc_*`, `redpanda_storage_disk_*`)."""
        return self._text("GET", "/public_metrics", {})

    def get_health(self) -> HealthAnswer:
        """The health of the cluster: ok if every shard is up and the supervisor, which restarts shards, runs. Needs no token."""
        return self._json("GET", "/healthz", {})

    def get_page(self) -> str:
        """The live page: connections, refusals, and the use of limits and quotas, which it can change."""
        return self._text("GET", "/", {})

    def get_page_file(self, name: str) -> str:
        """A file of the live page."""
        return self._text("GET", f'/page/{urllib.parse.quote(name, safe="")}', {})

    def list_kafka_connections(self, body: ListConnectionsBody) -> ListedConnections:
        """The open connections that match a filter, in an order (Redpanda's ListKafkaConnections)."""
        return self._json("POST", "/redpanda.core.admin.v2.ClusterService/ListKafkaConnections", {}, body)

    def list_brokers(self, body: ListBrokersBody) -> ListedBrokers:
        """The brokers, in the format of rpk."""
        return self._json("POST", "/redpanda.core.admin.v2.BrokerService/ListBrokers", {}, body)

    def get_broker(self, body: GetBrokerBody) -> OneBroker:
        """A broker and its release, in the format of rpk."""
        return self._json("POST", "/redpanda.core.admin.v2.BrokerService/GetBroker", {}, body)

    def get_openapi(self) -> dict[str, Any]:
        """This document."""
        return self._json("GET", "/v1/openapi.json", {})


# ---- what is sent and answered


class AddressLimits(TypedDict):
    """The limits of one broker for an address."""

    broker: int
    ip: str
    connections: list[AddressPool]
    rates: list[AddressRate]


class AddressPool(TypedDict):
    """A limit on open connections that a connection of the address counts for."""

    # broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
    pool: str
    # The setting; empty: unlimited.
    limit: str
    # null: unlimited.
    value: int | None
    # True: over the cap a connection waits instead of being refused.
    waits: bool
    home: int | None
    in_use: int
    cached: int
    holders: list[HeldTokens]
    # The cap that is observed beside it; null: none is.
    observed: ObservedUse | None


class AddressRate(TypedDict):
    """A limit on new connections a second that holds for the address or user."""

    # broker, ip, core, user, listener:NAME or cluster.
    of: str
    # The setting or quota.
    limit: str
    # Connections a second.
    value: float
    # Connections that pass at once after a pause.
    burst: float
    # Connections a second, over the quota window; null: not known.
    used: float | None


class AddressesChange(TypedDict):
    """The advertised addresses of a listener."""

    # May be left out where there is only one.
    listener: NotRequired[str]
    # This broker alone; without it, `addresses` has one for each.
    broker: NotRequired[int]
    # host:port, or `auto`: the address that a client reached.
    addresses: list[str] | str


class AdvertisedAddress(TypedDict):
    """The advertised address of a listener of one broker, for the admin API."""

    broker: int
    listener: str
    # host:port; `auto`: the address that the client reached.
    address: str
    port: int
    # live: set live; start: as the cluster was started; listener: where it listens.
    source: str
    # It follows from where the cluster listens, not from what was said.
    guess: bool


class AdvertisedAnswer(TypedDict):
    """Each listener of each broker."""

    advertised: list[AdvertisedAddress]


class AuthenticationInfo(TypedDict):
    """The proof of its identity that a client has given, if any."""

    state: str
    userPrincipal: str


class BrokerConfigStatus(TypedDict):
    """A broker, in the format of rpk."""

    node_id: int
    restart: bool
    # The version that every shard of the broker has acknowledged.
    config_version: int
    invalid: list[str]
    unknown: list[str]


class BrokerDisk(TypedDict):
    """The space that a broker needs: while less is free it is `full`, and refuses Produce."""

    broker: int
    least_free_bytes: int
    full: bool


class BrokerOverrides(TypedDict):
    """The settings that are set for single brokers."""

    # Settings by broker id.
    overrides: dict[str, dict[str, list[str] | bool | float | str | None]]


class BrokerQuotaRates(TypedDict):
    """The present rates of a client on one broker."""

    broker: int
    # By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
    rates: dict[str, float]


class BuildInfo(TypedDict):
    """The release of Redpanda whose calls a broker answers here."""

    version: str
    buildSha: str


class ChangedAdvertised(TypedDict):
    """The addresses after a change, which is in force on every shard."""

    # The version of the configuration that is in force on every shard.
    config_version: int
    advertised: list[AdvertisedAddress]


class ChangedConfig(TypedDict):
    """A change that is in force on every shard."""

    # The version of the configuration that is in force on every shard.
    config_version: int
    # Warnings about the new values, one sentence each.
    notes: NotRequired[list[str]]


class ChangedFaults(TypedDict):
    """Faults after a change, which is in force on every shard."""

    # The version of the configuration that is in force on every shard.
    config_version: int
    # The names of the added faults, in their order.
    names: list[str]


class ClientInstance(TypedDict):
    """A client that asked for subscriptions, or pushed, as one shard knows it."""

    client_instance_id: str
    client_id: NotRequired[str]
    client_software_name: NotRequired[str]
    client_software_version: NotRequired[str]
    client_source_address: NotRequired[str]
    client_source_port: NotRequired[str]
    connected: bool
    # Prefixes of the metrics that it was asked for; null: it has not asked.
    metrics: list[str] | None
    push_interval_ms: int | None
    subscription_id: int | None
    pushes: int
    # The number of refused pushes by error.
    refused: dict[str, int]
    # The time of the last accepted push, in Unix milliseconds.
    pushed_at_ms: int | None
    # The size of the last push, as it was sent.
    bytes: int
    broker: int
    shard: int


class ClientQuotas(TypedDict):
    """The quotas that hold for a client by Kafka's precedence, and its present rates."""

    # The names user and client-id, and client-id-prefix for a quota of a prefix. `<default>` is the default; null:
    # not told apart.
    matched: dict[str, str | None]
    # By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
    quotas: dict[str, float]
    # By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
    rates: dict[str, float]
    brokers: list[BrokerQuotaRates]
    # The level that each quota comes from, by the quota's key.
    levels: dict[str, dict[str, str | None]]


class CloseRow(TypedDict):
    """The number of limits of a kind that are close to being reached on one broker. One that is full is near and high, too."""

    # null: the limit is one of the whole cluster.
    broker: int | None
    # connections, new_connections, or a client quota's key.
    what: str
    # cluster: of all brokers together; broker: of the broker and its listeners; ip: of addresses; user: of users'
    # connections; client: of clients.
    of: Literal["cluster", "broker", "ip", "user", "client"]
    # From 80 % on.
    high: int
    # From 90 % on.
    near: int
    # From 100 % on.
    full: int
    # The number of limits of this kind that were in use.
    limits: int


class ClusterAnswer(TypedDict):
    """The cluster: its processes, listeners, topics and disk."""

    cluster_id: NotRequired[str]
    data_dir: NotRequired[str]
    brokers: NotRequired[int]
    # Of each broker.
    shards: NotRequired[int]
    listeners: NotRequired[list[ListenerRow]]
    # The pid of the supervisor.
    pid: int
    coordinator_pid: int
    # The parts of the configuration that could not be read, a sentence each.
    lost: list[str]
    # Partitions by topic.
    topics: dict[str, int]
    disk: VolumeAnswer | None
    journal: JournalAnswer


class ConnectError(TypedDict):
    """The failure of a call of the Connect protocol."""

    # invalid_argument, not_found, unimplemented or unavailable.
    code: str
    # One sentence.
    message: str


class ConnectionSource(TypedDict):
    """The address and port that a connection comes from; those that a trusted proxy announced, if one did."""

    ipAddress: str
    port: int


class DamagedAnswer(TypedDict):
    """The files that were set aside."""

    damaged: list[DamagedFile]


class DamagedFile(TypedDict):
    """A file that could not be read, and was set aside."""

    # The path below the data directory.
    path: str
    size_bytes: int


class EndingAnswer(TypedDict):
    """The cluster is about to end."""

    ending: bool


class EntityQuotas(TypedDict):
    """An entity and its quotas."""

    # The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that
    # type.
    entity: dict[str, str | None]
    # By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
    values: dict[str, float]


class Explanation(TypedDict):
    """The limits that hold for an address (`brokers`), for a client (`client`), or for both, whichever the request names. If it names a user, also the limits of that user's connections (`user_connections`)."""

    brokers: NotRequired[list[AddressLimits]]
    # Beside `brokers` or `user_connections`, if the whole cluster has a cap, or one is observed: its use, without
    # home and holders.
    cluster: NotRequired[AddressPool]
    # Beside `brokers` or `user_connections`, if the whole cluster has a rate of new connections.
    cluster_rate: NotRequired[AddressRate]
    # The same, if one is observed that is not the one in force.
    observed_cluster_rate: NotRequired[AddressRate]
    client: NotRequired[ClientQuotas]
    user_connections: NotRequired[list[UserConnections]]


class FaultRow(TypedDict):
    """A fault that is set."""

    # * and ? stand for other characters.
    client_id: NotRequired[str]
    ip: NotRequired[str]
    # The client's IP:PORT.
    connection: NotRequired[str]
    # The name of a Kafka error, for the kind error.
    error: NotRequired[str]
    # For the kind delay.
    delay_ms: NotRequired[int]
    # For the kind throttle.
    throttle_ms: NotRequired[int]
    # For the kind disconnect: close by RST.
    reset: NotRequired[bool]
    # For the kind throttle: the connection is muted, too.
    mute: NotRequired[bool]
    once: NotRequired[bool]
    # Fires at this call only, counted from 1.
    on_call: NotRequired[int]
    # The number of calls at which it fires, from the first on.
    times: NotRequired[int]
    # Fires if it last fired so many milliseconds ago or longer.
    every_ms: NotRequired[int]
    # The share of calls at which it fires, from 0 to 1.
    probability: NotRequired[float]
    # The seed that chooses these calls.
    seed: NotRequired[int]
    name: str
    kind: Literal["error", "disconnect", "delay", "blackhole", "throttle"]
    # Names of Kafka's APIs; none: all.
    api: NotRequired[list[str]]
    # The number of times it fired; a killed shard loses its part of the count.
    fired: int


class FaultsAnswer(TypedDict):
    """Every fault that is set."""

    faults: list[FaultRow]


class FaultsChange(TypedDict):
    """Faults to add and, by name, to remove: all of them or none."""

    add: NotRequired[list[NewFault]]
    remove: NotRequired[list[str]]


class GetBrokerBody(TypedDict):
    """The broker that is asked for."""

    nodeId: NotRequired[int]


class HealthAnswer(TypedDict):
    """The health of the cluster: ok if every shard is up, and the supervisor runs."""

    status: Literal["ok", "degraded"]
    # The shards that are not up, and the supervisor if it is stopped.
    missing: NotRequired[list[str]]
    # The state of each of them.
    states: NotRequired[dict[str, Literal["up", "unresponsive", "starting", "down"] | Literal["stopped"]]]


class HeldTokens(TypedDict):
    """The tokens of a pool on one shard."""

    shard: int
    in_use: int
    cached: int


class InFlightRequests(TypedDict):
    """Requests under way. Their APIs are not kept."""

    sampledInFlightRequests: list[str]
    # True: a request is under way.
    hasMoreRequests: bool


class JournalAnswer(TypedDict):
    """The events that the journal lacks."""

    # The number of events since the start that were not written.
    events_dropped: int
    # True: events are being lost now.
    is_losing: bool


class LimitRow(TypedDict):
    """A setting that limits clients."""

    name: str
    # The broker that it is set for; null: the whole cluster.
    broker: int | None
    value: list[str] | bool | float | str | None
    # The value as `turnstile config set` takes it.
    text: str
    set: bool
    # The origin of the name: kafka, redpanda or turnstile.
    vocabulary: str
    # True if it can be observed instead of enforced.
    observable: bool
    doc: str


class LimitUse(TypedDict):
    """The use of a limit on one broker, or of one of the whole cluster."""

    # null: the limit is one of the whole cluster.
    broker: int | None
    # Open ones, or new ones a second over the quota window.
    what: Literal["connections", "new_connections"]
    # broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
    of: str
    used: float
    limit: float
    # The setting or quota that gives the limit.
    by: str


class ListBrokersBody(TypedDict):
    """Nothing is asked."""



class ListConnectionsBody(TypedDict):
    """The connections that are asked for, and their order."""

    # The most connections to return; 0, or more than 1000: 1000.
    pageSize: NotRequired[int]
    # Conditions joined by AND, such as `client_id = "app" AND idle_duration > 30s`.
    filter: NotRequired[str]
    # Fields, each with asc or desc, such as `idle_duration desc, source.port`.
    orderBy: NotRequired[str]


class ListedBrokers(TypedDict):
    """Every broker."""

    brokers: list[RedpandaBroker]


class ListedConnection(TypedDict):
    """An open connection. The other members of Redpanda's KafkaConnection are not kept."""

    nodeId: int
    shardId: int
    # Incarnation of the shard, broker, shard, and the connection's number in the journal, as a UUID.
    uid: str
    state: str
    openTime: str
    authenticationInfo: AuthenticationInfo
    listenerName: str
    tlsInfo: TlsInfo
    source: ConnectionSource
    # The client id; empty: the client has not sent one yet.
    clientId: str
    clientSoftwareName: str
    clientSoftwareVersion: str
    # Since its last request was read; 0s while one is under way.
    idleDuration: str
    inFlightRequests: InFlightRequests
    totalRequestStatistics: RequestStatistics


class ListedConnections(TypedDict):
    """The connections that match."""

    connections: list[ListedConnection]
    # The number of matches, a whole number; `connections` may have fewer.
    totalSize: str


class ListenerRow(TypedDict):
    """A listener of one broker."""

    broker: int
    name: str
    # host:port that it is bound to.
    address: str
    options: list[str]


class LiveAnswer(TypedDict):
    """Everything that a display refreshes. The rates of `shards` are over the last second that was sampled; new connections in `uses`, and the values of quotas, are over the quota window."""

    # Unix seconds.
    at: float
    uptime_s: float
    window_s: float
    version: int
    brokers: int
    listeners: list[str]
    totals: LiveTotals
    journal: JournalAnswer
    shards: list[LiveShard]
    series: list[SeriesPoint]
    # The fullest first.
    uses: list[LimitUse]
    # The numbers of limits that are close to being reached.
    close: list[CloseRow]
    top_refused: list[RefusedAddress]
    refused_addresses: RefusedAddresses
    # Clients that are throttled by a quota, the longest throttle time first.
    throttled: list[QuotaClient]
    # Other clients with a quota that they use, the fullest first.
    within_quota: list[QuotaClient]
    limits: list[LimitRow]
    # null: no limit and no quota is observed.
    observed: ObservedAnswer | None


class LiveShard(TypedDict):
    """The process of one shard, and its work."""

    broker: int
    shard: int
    pid: int
    # The number of this incarnation of the process; it only rises.
    epoch: int
    state: Literal["up", "unresponsive", "starting", "down"]
    connections: int
    config_version: int
    # The number of times that its event loop was held up.
    stalls: int
    longest_callback_ms: float
    restarts: int
    # The number of times that the system killed it for want of memory.
    memory_kills: int
    # Seconds until a shard that keeps ending is started again; null: it does not wait for that.
    restart_in_s: float | None
    admitted_per_s: float
    refused_per_s: float
    admitted: int
    refused: int
    tokens: TokenTotals
    # Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that
    # another shard had granted before), rpc (later: it waited for a home's answer).
    decisions: dict[str, int]


class LiveTotals(TypedDict):
    """Gauges, and counts since the cluster started."""

    connections: int
    admitted: int
    closed: int
    lost: int
    # Connections, by the reason of the refusal.
    refused: dict[str, int]
    # Decisions about connections: home (at once, without a token of another shard), cached (at once, with tokens that
    # another shard had granted before), rpc (later: it waited for a home's answer).
    decisions: dict[str, int]
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
    # By the quota's kind.
    throttled: dict[str, Throttles]


class MetricPoint(TypedDict):
    """A point of a metric; empty members are left out."""

    name: NotRequired[str]
    type: Literal["gauge", "sum", "histogram", "exponential_histogram", "summary"]
    unit: NotRequired[str]
    temporality: NotRequired[Literal["delta", "cumulative"]]
    resource: NotRequired[dict[str, str | bool | float | None]]
    attributes: NotRequired[dict[str, str | bool | float | None]]
    # Unix milliseconds.
    at_ms: NotRequired[int]
    value: NotRequired[float]
    count: NotRequired[int]
    sum: NotRequired[float]
    bucket_counts: NotRequired[list[int]]
    explicit_bounds: NotRequired[list[float | None]]
    quantiles: NotRequired[list[list[Any]]]


class NewFault(TypedDict):
    """A fault to add."""

    # * and ? stand for other characters.
    client_id: NotRequired[str]
    ip: NotRequired[str]
    # The client's IP:PORT.
    connection: NotRequired[str]
    # The name of a Kafka error, for the kind error.
    error: NotRequired[str]
    # For the kind delay.
    delay_ms: NotRequired[int]
    # For the kind throttle.
    throttle_ms: NotRequired[int]
    # For the kind disconnect: close by RST.
    reset: NotRequired[bool]
    # For the kind throttle: the connection is muted, too.
    mute: NotRequired[bool]
    once: NotRequired[bool]
    # Fires at this call only, counted from 1.
    on_call: NotRequired[int]
    # The number of calls at which it fires, from the first on.
    times: NotRequired[int]
    # Fires if it last fired so many milliseconds ago or longer.
    every_ms: NotRequired[int]
    # The share of calls at which it fires, from 0 to 1.
    probability: NotRequired[float]
    # The seed that chooses these calls.
    seed: NotRequired[int]
    # Left out: the fault gets one, such as fault-1.
    name: NotRequired[str]
    kind: Literal["error", "disconnect", "delay", "blackhole", "throttle"]
    # Names of Kafka's APIs; none: all.
    api: NotRequired[list[str] | str]


class NotesAnswer(TypedDict):
    """Warnings about the limits in force: those that admit no connection, and the bursts that rates let through."""

    notes: list[str]


class ObservedAnswer(TypedDict):
    """The refusals and waits that observed caps and creation rates would have caused since one of these limits was last changed; a shard that was started again has forgotten its part."""

    refused: int
    waited: int
    undecided: int
    # The number of addresses of these connections that were counted one by one.
    addresses: int
    # True: at least one shard's table of addresses was full, so there may be more.
    more: bool
    caps: list[ObservedCapRow]
    # Values by name; null: no value.
    set: dict[str, list[str] | bool | float | str | None]
    # The observed values that are set for single brokers, by broker id.
    brokers: dict[str, dict[str, list[str] | bool | float | str | None]]
    # null: no client quota is observed.
    quotas: ObservedQuotasAnswer | None


class ObservedCapRow(TypedDict):
    """A cap or a creation rate that is observed instead of enforced."""

    # The setting.
    limit: str
    value: float
    # Connections would have waited, for a slot or for a rate.
    waits: bool
    # Connections that it would have refused, or made wait.
    count: int


class ObservedClientRow(TypedDict):
    """A client that observed quotas would have throttled."""

    user: str
    client_id: str
    requests: int
    # `requests` may be too high by this.
    error: int
    # Requests, by the quota with the longest throttle time.
    quotas: dict[str, int]


class ObservedQuotaRow(TypedDict):
    """A client quota that is observed instead of enforced, at one value."""

    # The kind of quota.
    quota: str
    value: float
    # Requests that it would have throttled.
    requests: int
    # The sum of their throttle times.
    throttle_ms: int
    # Mutations that it would have refused.
    refused: int


class ObservedQuotasAnswer(TypedDict):
    """Requests that the observed client quotas would have throttled since one of these quotas was last changed. A shard that was started again counts anew."""

    # The observed quotas.
    set: list[EntityQuotas]
    # Requests that at least one of them would have throttled.
    requests: int
    # The sum of the throttle times; of each request the longest.
    throttle_ms: int
    # True: there are more clients than `clients` has.
    more: bool
    quotas: list[ObservedQuotaRow]
    clients: list[ObservedClientRow]


class ObservedUse(TypedDict):
    """An observed cap, and its use."""

    limit: str
    value: int | None
    waits: bool
    in_use: int


class OneBroker(TypedDict):
    """A broker."""

    broker: RedpandaBroker


class Problem(TypedDict):
    """The reason why a request was refused, or can't be answered now."""

    # One sentence.
    message: str
    # The HTTP status.
    code: int


class ProxiesAnswer(TypedDict):
    """The proxies of the open connections; the proxy with the most comes first."""

    proxies: list[ProxyRow]


class ProxyRow(TypedDict):
    """A proxy that announced connections (PROXY protocol)."""

    # The address of the proxy.
    proxy: str
    # The private endpoint of a cloud by which the connections came.
    endpoint: str | None
    open: int


class QuotaChange(TypedDict):
    """The quotas of one entity that change."""

    # The entity of a quota: its name by type (user, client-id, client-id-prefix or ip). null: the default of that
    # type.
    entity: dict[str, str | None]
    # By the quota's key: bytes a second, percent of a thread, mutations or connections a second.
    set: NotRequired[dict[str, float]]
    # Keys of quotas.
    remove: NotRequired[list[str]]


class QuotaClient(TypedDict):
    """A client with a quota, on one broker."""

    broker: int
    # Empty: the quota does not tell users apart.
    user: str
    # Empty: the quota does not tell client ids apart.
    client_id: str
    # The quota's key.
    quota: str
    # The average throttle time within the quota window, in milliseconds.
    throttle_ms: float
    # Bytes a second, percent, or mutations a second.
    value: float
    # The quota, in the same unit; null: it is no longer set.
    limit: float | None


class QuotasAnswer(TypedDict):
    """Every entity that has a quota."""

    quotas: list[EntityQuotas]


class QuotasChange(TypedDict):
    """Quotas that change: all of them or none."""

    alter: list[QuotaChange]


class RecordedChange(TypedDict):
    """A version of the configuration, and what it changed: of a setting the values that were in force."""

    version: int
    # Unix seconds.
    at: float
    # The caller as it names itself, and the address it called from.
    who: str
    # Kind, such as setting or quota; key; old and new value, null: none.
    changes: list[list[Any]]


class RedpandaBroker(TypedDict):
    """A broker."""

    nodeId: int
    buildInfo: BuildInfo


class RefusalsAnswer(TypedDict):
    """Counts since the cluster started. By ip there are only the most refused addresses, counted since their shard started. If `observed`, the counts by ip and by limit are those since an observed limit was last changed."""

    by: Literal["ip", "listener", "reason", "shard", "limit"]
    total: int
    admitted: int
    refusals: list[RefusedRow]
    # True: these are observed limits, which have refused nothing.
    observed: NotRequired[bool]
    summary: NotRequired[ObservedAnswer | None]


class RefusedAddress(TypedDict):
    """One of the addresses that were refused most."""

    ip: str
    count: int
    # `count` may be too high by this.
    error: int
    # Connections, by the reason of the refusal.
    reasons: dict[str, int]
    # The open connections of the address.
    open: int
    uses: list[LimitUse]


class RefusedAddresses(TypedDict):
    """The number of addresses that were refused."""

    # The number of addresses that have a count of their own.
    known: int
    # Refusals of the addresses that `top_refused` leaves out.
    others_refused: int
    # True: at least one shard's table of addresses was full, so there may be more.
    more: bool


class RefusedRow(TypedDict):
    """The refusals of one address, listener, reason, shard or observed limit. Besides `count`, only the members that belong to `by` are there."""

    count: int
    ip: NotRequired[str]
    # By ip: `count` may be too high by this.
    error: NotRequired[int]
    listener: NotRequired[str]
    broker: NotRequired[int]
    shard: NotRequired[int]
    reason: NotRequired[str]
    # Connections, by the reason of the refusal.
    reasons: NotRequired[dict[str, int]]
    limit: NotRequired[str]
    # The value of the limit.
    value: NotRequired[float]
    # True: at the limit, connections would have waited.
    waits: NotRequired[bool]


class RequestStatistics(TypedDict):
    """The counts of a connection since it was opened."""

    # A whole number.
    requestCount: str


class SeriesAnswer(TypedDict):
    """The counts over time."""

    # Seconds from one point to the next; each is an average over the time since the last.
    step_s: float
    series: list[SeriesPoint]


class SeriesPoint(TypedDict):
    """One step of time: gauges at its end, and rates a second within it. Reasons and quotas without a count are left out."""

    # Unix seconds.
    at: float
    connections: int
    admitted: float
    closed: float
    refused: dict[str, float]
    in_use: int
    cached: int
    decisions: dict[str, float]
    requests: float
    throttled: dict[str, float]


class SettingHistory(TypedDict):
    """The last changes, the latest first."""

    history: list[RecordedChange]


class SettingItems(TypedDict):
    """The entries of a setting that is a list."""

    type: str


class SettingProperty(TypedDict):
    """A setting, in the format of Redpanda's schema."""

    # integer, number, boolean, string or array.
    type: str
    description: str
    # False: the setting is stored and shown, but has no effect.
    emulated: bool
    nullable: bool
    # True: it can't be changed while the cluster runs.
    needs_restart: bool
    visibility: Literal["user", "tunable"]
    is_secret: bool
    # The origin of the name: kafka, redpanda or turnstile.
    vocabulary: str
    default: list[str] | bool | float | str | None
    items: NotRequired[SettingItems]
    enum_values: NotRequired[list[str]]
    minimum: NotRequired[float]
    maximum: NotRequired[float]


class SettingsChange(TypedDict):
    """Settings to set, and to take back: all of them or none."""

    # A value, or its text as `turnstile config set` takes it, by name.
    upsert: NotRequired[dict[str, list[str] | bool | float | str | None]]
    remove: NotRequired[list[str]]


class SettingsSchema(TypedDict):
    """Every setting, by name."""

    properties: dict[str, SettingProperty]


class ShardRow(TypedDict):
    """The process of one shard."""

    broker: int
    shard: int
    pid: int
    # The number of this incarnation of the process; it only rises.
    epoch: int
    state: Literal["up", "unresponsive", "starting", "down"]
    connections: int
    config_version: int
    # The number of times that its event loop was held up.
    stalls: int
    longest_callback_ms: float
    restarts: int
    # The number of times that the system killed it for want of memory.
    memory_kills: int
    # Seconds until a shard that keeps ending is started again; null: it does not wait for that.
    restart_in_s: float | None


class ShardsAnswer(TypedDict):
    """Every shard."""

    shards: list[ShardRow]


class SourcesAnswer(TypedDict):
    """The admitted and refused connections of each address, since its shard started. Two answers can be subtracted if `shards`, `forgotten` and the shards' epochs are the same in both."""

    # The number of shards that answered.
    shards: int
    # The number of times that a shard had too many addresses and began anew.
    forgotten: int
    # Counts by address and by outcome: `admitted`, or the reason of the refusal.
    sources: dict[str, dict[str, int]]


class SubscriptionConfigs(TypedDict):
    """The configs of a client metrics resource (KIP-714) that change."""

    name: str
    # null: back to the default.
    configs: dict[str, str | None]


class TelemetryAnswer(TypedDict):
    """The client instances that were active last. One that is connected to several shards has a row for each."""

    client_instances: list[ClientInstance]


class TelemetryPush(TypedDict):
    """The last push of a client instance."""

    client_instance_id: str
    # Unix milliseconds.
    pushed_at_ms: int
    metrics: list[MetricPoint]
    # The reason why the push can't be read.
    error: str | None


class Throttles(TypedDict):
    """The requests that a kind of quota has slowed down since the start."""

    requests: int
    # The sum of their throttle times, in milliseconds.
    throttle_ms: int


class TlsInfo(TypedDict):
    """The TLS state of a connection."""

    enabled: bool


class TokenPool(TypedDict):
    """A pool of tokens, one for each connection: the state at its home, and the tokens of every shard."""

    # null: of all brokers; its shards are then numbered over all of them, those of broker 0 first.
    broker: int | None
    # broker, listener, ssl, ip, user or cluster; `observed/` before it: the cap is observed, not enforced.
    kind: str
    # The listener's name, the address or the user's name; `all`: of the broker with its inter-broker listener; else
    # empty.
    key: str
    # The home of the pool, the shard that decides; null: it did not answer.
    home: int | None
    # null: unlimited.
    cap: int | None
    # The setting that gives the cap.
    limit: str
    # open, reclaiming or tight.
    mode: str
    free: int | None
    # Connections that wait for a token.
    waiting: int
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
    # True: there are more pools.
    truncated: bool
    totals: TokenTotals


class UserChange(TypedDict):
    """A user that is added, gets another password, or is removed."""

    name: str
    # null: the user is removed.
    password: NotRequired[str | None]


class UserConnections(TypedDict):
    """The cap of a user's connections on one broker, and the rate of new ones if that is limited."""

    # broker, listener:NAME, ssl, ip:ADDRESS, user:NAME or cluster.
    pool: str
    # The setting; empty: unlimited.
    limit: str
    # null: unlimited.
    value: int | None
    # True: over the cap a connection waits instead of being refused.
    waits: bool
    home: int | None
    in_use: int
    cached: int
    holders: list[HeldTokens]
    broker: int
    # The cap that is observed beside it; null: none is.
    observed: ObservedUse | None
    rate: AddressRate | None


class UserRow(TypedDict):
    """A user that may log in on listeners with SASL."""

    name: str
    # The SASL mechanisms that the user can log in with, besides PLAIN.
    mechanisms: list[str]


class UsersAnswer(TypedDict):
    """Every user."""

    users: list[UserRow]


class Utilisation(TypedDict):
    """The use of a limit on one broker, or of one of the whole cluster."""

    # null: the limit is one of the whole cluster.
    broker: int | None
    # connections: open ones; new_connections: a second, over the quota window; or a client quota's key.
    what: str
    # broker, broker:all, listener:NAME, ssl, ip:ADDRESS, user:NAME, cluster, or client.
    of: str
    # The user; empty: the quota does not tell users apart; null: the limit is not of a client.
    user: str | None
    # The client id; empty: the quota does not tell client ids apart; null: the limit is not of a client.
    client_id: str | None
    # Connections, or in the quota's unit: bytes a second, percent, mutations a second.
    used: float
    limit: float
    # null: the limit is 0, and something is used.
    percent: float | None
    # Below 80 % of the limit, from 80 %, from 90 %, from 100 % on.
    level: Literal["roomy", "high", "near", "full"]
    # The setting or quota that gives the limit.
    by: str


class UtilisationAnswer(TypedDict):
    """The use of each limit, the closest to being reached first. Each figure is of the moment at which its shards answered this request. Where a shard is home to more than 2,000 pools or 500 metered clients, the choice of the closest, and `close`, may be ten seconds old."""

    # Unix seconds.
    at: float
    # All limits of brokers and listeners, and the fullest of addresses and clients.
    limits: list[Utilisation]
    close: list[CloseRow]


class VolumeAnswer(TypedDict):
    """The volume of the data directory. Sizes are -1 if the system does not tell them."""

    total_bytes: int
    free_bytes: int
    brokers: list[BrokerDisk]


class WatchAnswer(TypedDict):
    """One address or client on one broker. It is watched from the first request on, until half an hour after the last one."""

    broker: int
    ip: str | None
    user: str | None
    client_id: str | None
    # The time from which it is watched, in Unix seconds.
    began: float
    # Seconds from one point to the next.
    step_s: float
    points: list[WatchPoint]
    # Admitted connections since the shards started, or last forgot the counts of too many addresses; null for a
    # client.
    admitted: int | None
    # Refused connections, counted since the same time; null for a client.
    refused: dict[str, int] | None


class WatchPoint(TypedDict):
    """A point in time: the use at that time, and the events since the point before."""

    # Unix seconds.
    at: float
    # By limit: connections that are open, new_connections a second over the quota window, or the use of a quota by
    # its key.
    used: dict[str, float]
    # The limits that hold, in the same units.
    limits: dict[str, float]
    # The average throttle time within the quota window, by the quota's key.
    throttle_ms: dict[str, float]
    # Admitted connections a second, for an address.
    admitted: float
    # Refused connections a second by reason, for an address.
    refused: dict[str, float]
