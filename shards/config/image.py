"""The cluster as a shard knows it: the versioned settings, quotas, topics and users.

The coordinator pushes version v as a delta; the image applies it and answers from plain dicts. It validates nothing: a
delta was validated whole before it was stored. What a setting means for a pool is shards/limits/connection_limits.py.

image_is_one_version  An image is always exactly one version: `apply` swaps everything in before it returns, and nothing
    waits inside it.
rules_depend_on_version_only  `rule_of` depends on the version only, never on what was asked before: nothing is cached that
    a peer can grow.

The name is Kafka's: MetadataImage, built from deltas by MetadataDelta.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from shards.config.advertised import auto_listeners
from shards.config.replicas import replicas_of
from shards.config.stored_records import FaultRecord, TokenRecord, TopicRecord, UserRecord
from shards.limits.caps import NO_RATE, OBSERVED, CapRule, RateRule
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.observed_limits import ObservedLimits, changed_pools, merged_quotas
from shards.limits.quota_entities import CONNECTION_RATE, Entity, entity_of_key
from shards.settings.both_vocabularies import tightened
from shards.settings.broker_config import given
from shards.settings.config_def import BROKER, TOPIC
from shards.settings.config_types import Value
from shards.settings.features import level_of
from shards.settings.releases import AS_VERSION
from shards.settings.resource_settings import GROUP

Delta = Iterable[tuple[str, str, Any] | list[Any]]  # [kind, key, value or None]; kinds as in the table below
KINDS = (
    "static", "setting", "quota", "topic", "user", "fault", "acl", "client_metrics", "group_config", "feature", "token",
    "advertised", "observed", "observed_quota", "host",
)  # fmt: skip
_DEFAULTS: dict[str, Value] = {name: setting.default for name, setting in BROKER.items()}


class ImageChange(NamedTuple):
    """The change by a delta: `kinds` of record (KINDS, `static` and `host` as setting), and the `pools` whose cap may have become
    another one (ConnectionLimits.changed_pools); no pools for a change of anything else."""

    kinds: frozenset[str]
    pools: frozenset[str]


class Topic(NamedTuple):
    """A topic. `leaders[n]` is the broker that leads partition n; `configs` are its own overrides, canonical text;
    `replicas[n]` are the brokers that are named as replicas of partition n (replicas.py)."""

    name: str
    id: uuid.UUID
    leaders: list[int]
    configs: dict[str, str]
    replicas: Sequence[Sequence[int]]


class Topics:
    """Every topic of the cluster, by name and by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def put(self, name: str, value: TopicRecord | None) -> None:
        """Used by ClusterImage only."""
        old = self._by_name.pop(name, None)
        if old is not None:
            del self._by_id[old.id]
        if value is not None:
            topic_id = uuid.UUID(hex=value["id"])
            topic = Topic(name, topic_id, list(value["leaders"]), dict(value["configs"]), replicas_of(value))
            self._by_name[name] = self._by_id[topic.id] = topic

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())


class ClusterImage:
    """The cluster as one broker sees it; `limits` is what its settings say of connections."""

    def __init__(self, broker: int = 0) -> None:
        self.broker = broker
        self.version = 0
        self.topics = Topics()
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.observed_quotas: dict[Entity, dict[str, float]] = {}  # observed instead of enforced
        self.users: dict[str, UserRecord] = {}
        self.faults: dict[str, FaultRecord] = {}
        self.acls: dict[str, bool] = {}  # by the key that spells it (acl_changes.py)
        self.client_metrics: dict[str, dict[str, str]] = {}  # a subscription's configs by its name
        self.group_configs: dict[str, dict[str, str]] = {}  # a group's own configs by its id
        self.features: dict[str, int] = {}  # levels that were changed (features.py)
        self.tokens: dict[str, TokenRecord] = {}  # by token id
        self.advertised: dict[str, str] = {}  # addresses set live (advertised.py)
        self.auto_listeners: frozenset[str] = frozenset()  # listeners that advertise the address that clients reached
        self.static: dict[str, str] = {}  # "broker or nothing/name" -> text, from the command line; as Kafka's file
        self.dynamic: dict[str, str] = {}  # live changes, by the same keys
        self.observed: dict[str, str] = {}  # observed limits of connections, by the same keys
        self.hosts: dict[str, list[str]] = {}  # the addresses of host names in overrides (host_overrides.py)
        self.limits = ConnectionLimits()
        self.observed_limits: ObservedLimits | None = None  # None: no cap is observed on this broker
        self.rehearsed_quotas: Mapping[Entity, Mapping[str, float]] = {}
        """The client quotas that would be in force if the observed ones were set; none while none is observed."""
        self.observed_ip_quotas: Mapping[str | None, float] = {}  # of addresses; None: of all others
        self._ip_quotas = self._rehearsed_ip_quotas = IpQuotaTable()
        self._values = _DEFAULTS

    # ---- changes

    def apply(self, version: int, delta: Delta, *, whole: bool = False) -> ImageChange:
        """Become `version`. `whole`: the delta is all there is, and replaces what was known."""
        kinds: set[str] = set()
        if whole:
            kinds |= {kind for kind in KINDS if self._records(kind)}
            self._forget()
        for kind, key, value in delta:
            kinds.add(kind)
            self._put(kind, key, value)
        if kinds & {"static", "host"}:
            kinds = kinds - {"static", "host"} | {"setting"}
        pools = self._compute() if kinds & {"setting", "observed"} else set()
        if kinds & {"setting", "advertised"}:
            self.auto_listeners = auto_listeners(self.static, self.advertised)
        if kinds & {"quota", "observed_quota"}:
            self._ip_quotas = self._rehearsed_ip_quotas = self._of_addresses(self.quotas.items())
            if self.observed_quotas:
                merged = [*self.quotas.items(), *self.observed_quotas.items()]
                self._rehearsed_ip_quotas = self._of_addresses(merged)
            self.rehearsed_quotas = merged_quotas(self.quotas, self.observed_quotas)
            self.observed_ip_quotas = self._of_addresses(self.observed_quotas.items()).by_ip
        self.version = version
        return ImageChange(frozenset(kinds), frozenset(pools))

    def _of_addresses(self, quotas: Iterable[tuple[Entity, Mapping[str, float]]]) -> IpQuotaTable:
        return IpQuotaTable(quotas).counted_by(self.limits.ipv6_prefix)

    def _records(self, kind: str) -> Any:
        return {"static": self.static, "setting": self.dynamic, "quota": self.quotas, "topic": self.topics,
                "user": self.users, "fault": self.faults, "acl": self.acls,
                "client_metrics": self.client_metrics, "group_config": self.group_configs,
                "feature": self.features, "token": self.tokens, "advertised": self.advertised,
                "observed": self.observed, "observed_quota": self.observed_quotas, "host": self.hosts}[kind]  # fmt: skip

    def _forget(self) -> None:
        self.static, self.dynamic, self.quotas, self.users = {}, {}, {}, {}
        self.observed_quotas, self.hosts = {}, {}
        self.faults, self.acls, self.client_metrics, self.group_configs = {}, {}, {}, {}
        self.features, self.tokens, self.advertised, self.observed = {}, {}, {}, {}
        self.topics = Topics()

    def _put(self, kind: str, key: str, value: Any) -> None:
        if kind == "topic":
            self.topics.put(key, value)
            return
        records = self._records(kind)
        place = entity_of_key(key) if kind in ("quota", "observed_quota") else key
        if value is None:
            records.pop(place, None)
        else:
            records[place] = dict(value) if isinstance(value, Mapping) else value

    # ---- settings

    def get(self, name: str) -> Any:
        """The value in force on this broker, typed as its row says. KeyError for a name that is no setting."""
        return self._values[name]

    def topic_get(self, topic: str, name: str) -> Any:
        """The value of a topic config in force: the topic's own, else what this broker's settings say."""
        setting = TOPIC[name]
        found = self.topics.get(topic)
        if found is not None and name in found.configs:
            return setting.kind.parse(found.configs[name])
        for broker_name, factor in setting.broker_names:
            value = self._values[broker_name]
            if value is not None:
                return value if factor == 1 or value == -1 else cast(int, value) * factor
        return setting.default

    def group_get(self, group: str, name: str) -> Any:
        """The value of a group config in force: the group's own, else what this broker's settings say."""
        setting = GROUP[name]
        own = self.group_configs.get(group)
        if own is not None and name in own:
            return setting.kind.parse(own[name])
        return next((self._values[broker_name] for broker_name, _ in setting.broker_names), setting.default)

    @property
    def inter_broker_listener(self) -> str | None:
        """The name of the inter-broker listener; None when none is set apart."""
        return cast(str | None, self._values["inter.broker.listener.name"])

    def _compute(self) -> set[str]:
        """Derives values and limits from the records. Returns the pools whose cap may be another one now."""
        found = given(self.broker, self.static, self.dynamic)
        self._values = tightened(_DEFAULTS | {name: value for name, value in found.items() if name in BROKER})
        before, self.limits = self.limits, ConnectionLimits(found, dict(self.hosts))
        observed, self.observed_limits = self.observed_limits, self._compute_observed()
        return self.limits.changed_pools(before) | changed_pools(observed, self.observed_limits)

    def _compute_observed(self) -> ObservedLimits | None:
        if not any(key.startswith(("/", f"{self.broker}/")) for key in self.observed):
            return None
        would_be = given(self.broker, self.static, {**self.dynamic, **self.observed})
        return ObservedLimits(self.limits, ConnectionLimits(would_be, self.limits.hosts))

    def feature_level(self, name: str) -> int:
        """The level in force of a feature; 0 where the release in whose place this cluster stands does not have it."""
        return level_of(self.features, name, self.get(AS_VERSION))

    # ---- limits

    def rule_of(self, pool: str) -> CapRule:
        """The cap in force for a pool, see ConnectionLimits; for an observed one the cap that is observed."""
        if self.observed_limits is not None and pool.startswith(OBSERVED):
            return self.observed_limits.rule_of(pool[len(OBSERVED) :])
        return self.limits.rule_of(pool)

    def rate_of(self, pool: str) -> RateRule:
        """The limit on new connections a second for `broker`, `listener:NAME` (its own, else the broker's value:
        docs/semantics.md, 1), `user:NAME`, `ip:ADDRESS` (a quota) or `cluster`; for an observed one the rate that is observed."""
        if pool.startswith("ip:"):
            rate = self._ip_quotas.quota(pool[3:])
            return NO_RATE if rate is None else RateRule(rate, CONNECTION_RATE)
        if self.observed_limits is not None and pool.startswith(OBSERVED):
            return self.observed_rate_of(pool[len(OBSERVED) :])
        return self.limits.rate_of(pool)

    def core_rate_of(self, ip: str) -> RateRule:
        """Redpanda's rate on each shard: see ConnectionLimits."""
        return self.limits.core_rate_of(ip)

    def quota_for_ip(self, ip: str) -> float | None:
        """`connection_creation_rate` of an address, else of the default ip entity, else None: unlimited."""
        return self._ip_quotas.quota(ip)

    def observed_rate_of(self, pool: str) -> RateRule:
        """The rate of a pool, as of `rate_of`, that is observed; NO_RATE where it would be that in force."""
        if pool.startswith("ip:"):
            rate = self._rehearsed_ip_quotas.quota(pool[3:])
            rehearsed = NO_RATE if rate is None else RateRule(rate, CONNECTION_RATE)
        elif self.observed_limits is None:
            return NO_RATE
        else:
            rehearsed = self.observed_limits.rehearsed.rate_of(pool)
        return NO_RATE if rehearsed == self.rate_of(pool) else rehearsed

    def observed_core_rate_of(self, ip: str) -> RateRule:
        """Redpanda's rate on each shard that is observed; NO_RATE where it would be that in force."""
        if self.observed_limits is None:
            return NO_RATE
        rehearsed = self.observed_limits.rehearsed.core_rate_of(ip)
        return NO_RATE if rehearsed == self.core_rate_of(ip) else rehearsed

    @property
    def observes_rates(self) -> bool:
        """True if the rate of the cluster, a broker, a listener, an address or a core is observed that would be another one."""
        return self.observes_ip_rates or (self.observed_limits is not None and self.observed_limits.has_other_rates)

    @property
    def observes_ip_rates(self) -> bool:
        """True if the rate of an address is observed that would be another one."""
        return self._rehearsed_ip_quotas.by_ip != self._ip_quotas.by_ip

    @property
    def observes_user_rates(self) -> bool:
        """True if the rate of a user is observed that would be another one."""
        return self.observed_limits is not None and self.observed_limits.has_other_user_rates

    @property
    def has_observed_world(self) -> bool:
        """True if there are observed pools (ObservedLimits.has_other_world)."""
        observed = self.observed_limits
        return observed is not None and observed.has_other_world(other_ip_rates=self.observes_ip_rates)

    @property
    def observes_listener_rates(self) -> bool:
        """True if the rate of the broker or a listener is observed that would be another one."""
        return self.observed_limits is not None and self.observed_limits.has_other_listener_rates

    @property
    def observes_core_rates(self) -> bool:
        """True if a rate of a core is observed that would be another one."""
        return self.observed_limits is not None and self.observed_limits.has_other_core_rates

    @property
    def limits_ip_rates(self) -> bool:
        """True if any address may have a `connection_creation_rate`."""
        return bool(self._ip_quotas)
