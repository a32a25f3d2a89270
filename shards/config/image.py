"""What a shard knows of the cluster: the versioned settings, quotas, topics and users, and what each limit means.

The coordinator pushes version v as a delta; a View applies it and answers from plain dicts. It validates nothing:
what arrives was validated whole before it was stored.

V1  A View is always exactly one version: `apply` swaps everything in before it returns, and nothing waits inside it.
V2  `rule_of` depends on the version only, never on what was asked before: nothing is cached that a peer can grow.
V3  Inside one vocabulary an override replaces the general number; across vocabularies the tighter one rules.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from shards.limits.caps import UNLIMITED, CapRule, tightest
from shards.limits.config_def import BROKER, LISTENER_PREFIX, TOPIC, broker_setting, topic_setting
from shards.limits.config_types import INT_MAX, Value
from shards.limits.errors import ConfigInvalid
from shards.limits.overrides import Overrides
from shards.limits.quota_entities import Entity, entity_of_key

Delta = Iterable[tuple[str, str, Any] | list[Any]]  # [kind, key, value or None]; kinds as in the table below
KINDS = ("static", "setting", "quota", "topic", "user")


class RateRule(NamedTuple):
    """A limit on new connections a second, given by the setting or quota key `name`; None and "" when unlimited."""

    rate: float | None
    name: str


NO_RATE = RateRule(None, "")


class Topic(NamedTuple):
    """A topic. `leaders[n]` is the broker that leads partition n; `configs` are its own overrides, canonical text."""

    name: str
    id: uuid.UUID
    leaders: list[int]
    configs: dict[str, str]


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

    def partition_counts(self) -> dict[str, int]:
        return {name: len(topic.leaders) for name, topic in self._by_name.items()}

    def put(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Used by the View only."""
        old = self._by_name.pop(name, None)
        if old is not None:
            del self._by_id[old.id]
        if value is not None:
            topic = Topic(name, uuid.UUID(hex=value["id"]), list(value["leaders"]), dict(value["configs"]))
            self._by_name[name] = self._by_id[topic.id] = topic

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())


class ClusterImage:
    """The cluster as one broker sees it. `changed` says what the last `apply` touched: settings, quota, topic, user
    by record, and broker, listener, ip where the rule of such pools may have become another one."""

    def __init__(self, broker: int = 0) -> None:
        self.broker = broker
        self.version = 0
        self.changed: frozenset[str] = frozenset()
        self.topics = Topics()
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.static: dict[str, str] = {}  # "broker or nothing/name" -> text, from the command line; as Kafka's file
        self.dynamic: dict[str, str] = {}  # the same of live changes
        self._ip_quotas: dict[str | None, float] = {}
        self._set: dict[str, Value] = {}
        self._values: dict[str, Value] = {}
        self._compute()

    # ---- changes

    def apply(self, version: int, delta: Delta, *, whole: bool = False) -> frozenset[str]:
        """Become `version`. `whole`: the delta is all there is, and replaces what was known. Returns what changed."""
        kinds: set[str] = set()
        if whole:
            kinds |= {kind for kind in KINDS if self._records(kind)}
            self._forget()
        for kind, key, value in delta:
            kinds.add(kind)
            self._put(kind, key, value)
        changed = {"setting" if kind == "static" else kind for kind in kinds}
        if "setting" in changed:
            changed |= self._compute()
        if "quota" in changed:
            self._ip_quotas = {
                entity[0][1]: quotas["connection_creation_rate"]
                for entity, quotas in self.quotas.items()
                if entity[0][0] == "ip" and "connection_creation_rate" in quotas
            }
        self.version = version
        self.changed = frozenset(changed)
        return self.changed

    def _records(self, kind: str) -> Any:
        return {"static": self.static, "setting": self.dynamic, "quota": self.quotas, "topic": self.topics,
                "user": self.users}[kind]  # fmt: skip

    def _forget(self) -> None:
        self.static, self.dynamic, self.quotas, self.users = {}, {}, {}, {}
        self.topics = Topics()

    def _put(self, kind: str, key: str, value: Any) -> None:
        if kind == "topic":
            self.topics.put(key, value)
            return
        records = self._records(kind)
        place = entity_of_key(key) if kind == "quota" else key
        if value is None:
            records.pop(place, None)
        else:
            records[place] = dict(value) if isinstance(value, Mapping) else value

    # ---- settings

    def get(self, name: str) -> Any:
        """The value in force on this broker, typed as its row says. KeyError for a name that is no setting."""
        return self._values[name]

    def listener_get(self, listener: str, name: str) -> Any:
        """The listener's own value of `name`, else the broker's."""
        own = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        return self._set[own] if own in self._set else self._values[name]

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

    @property
    def inter_broker_listener(self) -> str | None:
        """Its name, None when none is set apart."""
        return cast(str | None, self._values["inter.broker.listener.name"])

    def _compute(self) -> set[str]:
        """Derive values and rules from the records; says which kinds of pool may now have another rule."""
        self._set = given(self.broker, self.static, self.dynamic)
        self._values = {name: setting.default for name, setting in BROKER.items()}
        self._values.update((name, value) for name, value in self._set.items() if name in BROKER)
        before = getattr(self, "_rules", None)
        self._rules = _CapRules(self._values, self._set)
        return self._rules.difference(before)

    # ---- limits

    def rule_of(self, pool: str) -> CapRule:
        """The cap in force for a pool key: `broker`, `listener:NAME`, `ip:ADDRESS`, `user:NAME`; `broker:all` is what also
        holds for those that `max.connections`, where it is the tighter one, does not keep out."""
        rules = self._rules
        rule = rules.exact.get(pool)
        if rule is not None:
            return rule
        if pool.startswith("ip:"):
            return rules.of_ip(pool[3:]) if rules.networks else rules.ip_default
        if pool.startswith("listener:"):
            return rules.listeners.get(pool[9:].lower(), rules.listener_default)
        return UNLIMITED

    def rate_of(self, pool: str) -> RateRule:
        """The limit on new connections a second for `broker`, `listener:NAME` (its own, else the broker's value:
        docs/semantics.md, 1) or `ip:ADDRESS` (a quota)."""
        if pool.startswith("ip:"):
            rate = self.quota_for_ip(pool[3:])
            return NO_RATE if rate is None else RateRule(rate, "connection_creation_rate")
        name = "max.connection.creation.rate"
        value = self._values[name]
        if pool.startswith("listener:"):
            own = f"{LISTENER_PREFIX}{pool[9:].lower()}.{name}"
            if own in self._set:
                name, value = own, self._set[own]
        return NO_RATE if value == INT_MAX else RateRule(float(cast(int, value)), name)

    def core_rate_of(self, ip: str) -> RateRule:
        """Redpanda's rate on each shard. An override has a bucket of its own: its `name` says which one counts."""
        overrides = cast(Overrides, self._values["kafka_connection_rate_limit_overrides"])
        own = overrides.lookup(ip) if overrides else None
        if own is not None:
            return RateRule(float(own), "kafka_connection_rate_limit_overrides")
        rate = self._values["kafka_connection_rate_limit"]
        return NO_RATE if rate is None else RateRule(float(cast(int, rate)), "kafka_connection_rate_limit")

    def quota_for_ip(self, ip: str) -> float | None:
        """`connection_creation_rate` of an address, else of the default ip entity, else None: unlimited."""
        own = self._ip_quotas.get(ip)
        return own if own is not None else self._ip_quotas.get(None)

    @property
    def limits_ip_rates(self) -> bool:
        """Whether any address may have a `connection_creation_rate`."""
        return bool(self._ip_quotas)


def given(broker: int, static: Mapping[str, str], dynamic: Mapping[str, str]) -> dict[str, Value]:
    """Every value that is set for a broker, by name: its own live one, else the cluster's, else the command line's."""
    mine = f"{broker}/"
    found: dict[str, Value] = {}
    for records, prefix in ((static, "/"), (static, mine), (dynamic, "/"), (dynamic, mine)):
        for key, text in records.items():
            if key.startswith(prefix):
                name = key[len(prefix) :]
                try:
                    setting = broker_setting(name)
                except ConfigInvalid:
                    continue  # written by a later release; what it means is unknown here
                found[name] = setting.kind.parse(text)
    return found


class _CapRules:
    """The caps of one version, joined once over both vocabularies (V3)."""

    __slots__ = ("_kafka", "_redpanda", "exact", "ip_default", "listener_default", "listeners", "networks")

    def __init__(self, values: Mapping[str, Value], given: Mapping[str, Value]) -> None:
        shared = _kafka_rule(values["max.connections"], "max.connections", wait=True)
        self.listener_default = shared
        self.listeners = {
            name[len(LISTENER_PREFIX) :].partition(".")[0]: _kafka_rule(value, name, wait=True)
            for name, value in given.items()
            if name.startswith(LISTENER_PREFIX) and name.endswith(".max.connections")
        }
        per_ip = values["kafka_connections_max_per_ip"]
        self._redpanda = (
            CapRule(cast(int, per_ip), "kafka_connections_max_per_ip") if per_ip is not None else UNLIMITED,
            cast(Overrides, values["kafka_connections_max_overrides"]),
            "kafka_connections_max_overrides",
        )
        self._kafka = (
            _kafka_rule(values["max.connections.per.ip"], "max.connections.per.ip"),
            cast(Overrides, values["max.connections.per.ip.overrides"]),
            "max.connections.per.ip.overrides",
        )
        self.ip_default = tightest((self._redpanda[0], self._kafka[0]))
        listed = [*self._redpanda[1].entries, *self._kafka[1].entries]
        self.networks = any("/" in entry for entry in listed)
        self.exact: dict[str, CapRule] = {f"ip:{entry}": self.of_ip(entry) for entry in listed if "/" not in entry}
        total = values["kafka_connections_max"]
        refusing = CapRule(cast(int, total), "kafka_connections_max") if total is not None else UNLIMITED
        self.exact["broker"] = tightest((refusing, shared))
        self.exact["broker:all"] = refusing if self.exact["broker"] is shared else UNLIMITED

    def of_ip(self, ip: str) -> CapRule:
        """The rule for one address, by both vocabularies' overrides."""
        general, overrides, name = self._redpanda
        if overrides and (count := overrides.lookup(ip)) is not None:
            general = CapRule(count, name)
        other, overrides, name = self._kafka
        if overrides and (count := overrides.lookup(ip)) is not None:
            other = CapRule(count, name)
        if other.cap is None:
            return general
        return tightest((general, other))

    def difference(self, before: "_CapRules | None") -> set[str]:
        """Which kinds of pool may have another rule than `before`."""
        if before is None:
            return {"broker", "listener", "ip"}
        changed: set[str] = set()
        if any(self.exact[pool] != before.exact[pool] for pool in ("broker", "broker:all")):
            changed.add("broker")
        if (self.listeners, self.listener_default) != (before.listeners, before.listener_default):
            changed.add("listener")
        if (self._redpanda, self._kafka) != (before._redpanda, before._kafka):
            changed.add("ip")
        return changed


def _kafka_rule(value: Value, name: str, *, wait: bool = False) -> CapRule:
    """Kafka's way to say unlimited is the largest int."""
    return UNLIMITED if value == INT_MAX else CapRule(cast(int, value), name, wait)


def topic_value(name: str, text: str) -> Value:
    """A topic config's value from its text. Raises ConfigInvalid."""
    setting = topic_setting(name)
    try:
        return setting.kind.parse(text)
    except ValueError as error:
        raise ConfigInvalid(name, text, str(error)) from None
