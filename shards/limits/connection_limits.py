"""The one reading of the settings that limit connections: the cap and the creation rate of each pool.

Used by the cluster (ClusterImage), by `turnstile replay` and `plan` (ReplayGate), and by the audit (its timeline).

tighter_vocabulary_rules  Inside one vocabulary an override replaces the general number; across vocabularies the tighter one
    rules.
listeners_inherit_from_broker  A listener without a value of its own has the broker's.
rules_remember_no_address  The rule of a pool depends on the settings only; no address that was asked for is remembered, so
    no peer can make this grow.
int_max_is_unlimited  INT_MAX is Kafka's way to say unlimited.
networks_count_as_one  Rules are asked for the address that a client counts as (`counted`). An override of an address holds for
    the address that it counts as; of several overrides for one, the smallest holds.

A pool is `broker`, `listener:NAME`, `ssl`, `ip:ADDRESS`, `user:NAME`, or `cluster`, which all brokers have together. `broker:all`
has the cap of `kafka_connections_max` where `max.connections` is tighter: it also refuses the inter-broker listener, which
`max.connections` does not (KIP-402). `ssl` is of all listeners with TLS, the inter-broker one included. Source:
SocketServer.ConnectionQuotas (Apache Kafka); Redpanda's connection limits for the `kafka_*` names; KIP-1015 (under discussion) for
`ssl`; pools of users and of the cluster are Turnstile's own.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from shards.limits.caps import CLUSTER, NO_RATE, UNLIMITED, CapRule, RateRule, tightest
from shards.limits.changed_pools import changed_of_kind
from shards.limits.core_bucket import EXACT, sustained_per_s
from shards.limits.rate import Window
from shards.settings.addresses import counted_address
from shards.settings.broker_config import (
    CAP,
    CLUSTER_CAP,
    CLUSTER_RATE,
    IP_CAP,
    IP_OVERRIDES,
    RATE,
    SSL_CAP,
    USER_CAP,
    USER_OVERRIDES,
    USER_RATE,
    USER_RATE_OVERRIDES,
    check_listener,
    check_live,
    check_together,
)
from shards.settings.config_def import BROKER, LISTENER_PREFIX, broker_setting, canonical_name, listener_of, parse
from shards.settings.config_types import Value
from shards.settings.errors import ConfigInvalid
from shards.settings.host_names import NO_HOSTS, HostAddresses
from shards.settings.overrides import Overrides
from shards.settings.ranges import INT_MAX
from shards.settings.user_overrides import UserOverrides

CORE_CAP = "kafka_connections_max"
CORE_IP_CAP = "kafka_connections_max_per_ip"
CORE_IP_OVERRIDES = "kafka_connections_max_overrides"
CORE_RATE = "kafka_connection_rate_limit"
CORE_RATE_OVERRIDES = "kafka_connection_rate_limit_overrides"
RECHECK = "turnstile.ip.rate.recheck"
IPV6_PREFIX = "turnstile.ipv6.prefix.length"
WINDOWS = (
    "quota.window.num", "quota.window.size.seconds", "controller.quota.window.num", "controller.quota.window.size.seconds",
)  # fmt: skip
CAPS_AND_RATES = (
    CORE_CAP, CORE_IP_CAP, CORE_IP_OVERRIDES, CAP, SSL_CAP, IP_CAP, IP_OVERRIDES, RATE, CORE_RATE,
    CORE_RATE_OVERRIDES, USER_CAP, USER_OVERRIDES, USER_RATE, USER_RATE_OVERRIDES,
)  # fmt: skip
"""The settings that limit connections to a broker; `max.connections` and `max.connection.creation.rate` also of a listener."""
READ = frozenset({*CAPS_AND_RATES, CLUSTER_CAP, CLUSTER_RATE, EXACT, RECHECK, IPV6_PREFIX, *WINDOWS})
"""The settings that are interpreted here."""


class ConnectionLimits:
    """The limits of one broker's pools by its settings; immutable. `given`: the set values, by name (broker_config.given);
    `hosts`: the addresses of host names in overrides."""

    __slots__ = ("_core_overrides", "_kafka", "_listener_rates", "_networks", "_redpanda", "cluster_rate", "core_rate",
                 "exact", "exact_core_rate", "given", "hosts", "ip_default", "ipv6_prefix", "listener_default", "listeners",
                 "rate_default", "recheck", "refusing", "user_default", "user_rate_default", "user_rates",
                 "waiting")  # fmt: skip

    def __init__(self, given: Mapping[str, Value] | None = None, hosts: HostAddresses = NO_HOSTS) -> None:
        self.given: Mapping[str, Value] = dict(given or {})
        self.hosts = hosts
        self.ipv6_prefix = cast(int, self._value(IPV6_PREFIX))
        own = [(name, listener_of(name), value) for name, value in self.given.items()]
        self.waiting = self.listener_default = _kafka_rule(self._value(CAP), CAP, wait=True)
        self.listeners = {
            listener: _kafka_rule(value, name, wait=True)
            for name, listener, value in own
            if listener and _is(name, CAP)
        }
        self.rate_default = _rate_rule(self._value(RATE), RATE)
        self.cluster_rate = _optional_rate(self._value(CLUSTER_RATE), CLUSTER_RATE)
        self._listener_rates = {
            listener: _rate_rule(value, name) for name, listener, value in own if listener and _is(name, RATE)
        }
        self._redpanda = (_optional(self._value(CORE_IP_CAP), CORE_IP_CAP), self._overrides(CORE_IP_OVERRIDES))
        self._kafka = (_kafka_rule(self._value(IP_CAP), IP_CAP), self._overrides(IP_OVERRIDES))
        self.ip_default = tightest((self._redpanda[0], self._kafka[0]))
        listed = self.listed()
        self._networks = any("/" in entry for entry in listed)
        self.exact: dict[str, CapRule] = {f"ip:{entry}": self._of_ip(entry) for entry in listed if "/" not in entry}
        self.user_default = _optional(self._value(USER_CAP), USER_CAP)
        own_users = cast(UserOverrides, self._value(USER_OVERRIDES)).entries
        self.exact |= {f"user:{user}": CapRule(count, USER_OVERRIDES) for user, count in own_users.items()}
        self.user_rate_default = _optional_rate(self._value(USER_RATE), USER_RATE)
        own_rates = cast(UserOverrides, self._value(USER_RATE_OVERRIDES)).entries
        self.user_rates = {user: RateRule(float(rate), USER_RATE_OVERRIDES) for user, rate in own_rates.items()}
        self.refusing = _optional(self._value(CORE_CAP), CORE_CAP)
        self.exact["ip:"] = self.ip_default
        self.exact["broker"] = tightest((self.refusing, self.waiting))
        self.exact["broker:all"] = self.refusing if self.exact["broker"] is self.waiting else UNLIMITED
        self.exact[CLUSTER] = _optional(self._value(CLUSTER_CAP), CLUSTER_CAP)
        self.exact["ssl"] = _optional(self._value(SSL_CAP), SSL_CAP)
        self._core_overrides = self._overrides(CORE_RATE_OVERRIDES)
        self.core_rate = _optional_rate(self._value(CORE_RATE), CORE_RATE)  # without an override
        self.exact_core_rate = bool(self._value(EXACT))
        self.recheck = bool(self._value(RECHECK))  # KIP-612's text: an address held for its rate is asked again

    def with_change(self, name: str, text: str | None, listeners: Iterable[str] = ()) -> "ConnectionLimits":
        """The limits after a live change of one setting, None to unset it; checked as the cluster checks it.

        `listeners`: the broker's, none when they are not known. Raises ConfigInvalid, also for a host name, which a running
        cluster alone looks up.
        """
        name, known = canonical_name(name), tuple(listeners)
        setting = broker_setting(name)
        after = {**self.given}
        if text is None:
            after.pop(name, None)
        else:
            check_listener(name, known)
            after[name] = value = parse(setting, name, text)
            if isinstance(value, Overrides) and value.hosts:
                raise ConfigInvalid(
                    name, None, f"{value.hosts[0]} is a host name, which a running cluster alone looks up"
                )
        check_together(after)
        check_live(lambda: self.given, after, known)
        return ConnectionLimits(after, self.hosts)

    def counted(self, ip: str) -> str:
        """The address that a client counts as. ValueError for what is no address."""
        return counted_address(ip, self.ipv6_prefix)

    # ---- caps

    def rule_of(self, pool: str) -> CapRule:
        """The cap of a pool; UNLIMITED for a pool that no setting limits."""
        rule = self.exact.get(pool)
        if rule is not None:
            return rule
        if pool.startswith("ip:"):
            return self._of_ip(pool[3:]) if self._networks else self.ip_default
        if pool.startswith("listener:"):
            return self.listeners.get(pool[9:].lower(), self.listener_default)
        return self.user_default if pool.startswith("user:") else UNLIMITED

    @property
    def limits_users(self) -> bool:
        """True if any user's connections have a cap."""
        return self.user_default.cap is not None or any(pool.startswith("user:") for pool in self.exact)

    @property
    def admits_a_user(self) -> bool:
        """True if some user may have a connection."""
        own = (rule for pool, rule in self.exact.items() if pool.startswith("user:"))
        return any(rule.cap != 0 for rule in (self.user_default, *own))

    @property
    def same_for_all_ips(self) -> bool:
        """True if no override is set, so that `ip_default` rules every address."""
        return not (self._redpanda[1] or self._kafka[1])

    def listed(self) -> list[str]:
        """The addresses and networks that have an override, in either vocabulary."""
        return [*self._redpanda[1].entries, *self._kafka[1].entries]

    def _of_ip(self, ip: str) -> CapRule:
        """The cap of an address: the tighter of both vocabularies (tighter_vocabulary_rules)."""
        general, overrides = self._redpanda
        if overrides and (count := overrides.lookup(ip)) is not None:
            general = CapRule(count, CORE_IP_OVERRIDES)
        other, overrides = self._kafka
        if overrides and (count := overrides.lookup(ip)) is not None:
            other = _kafka_rule(count, IP_OVERRIDES)
        return general if other.cap is None else tightest((general, other))

    def changed_pools(self, before: "ConnectionLimits") -> set[str]:
        """The pools whose cap may differ from `before`: single ones (`broker`, `ssl`, `ip:10.0.0.1`) where they are few,
        else their kind (`listener`, `ip`), or of a kind those that no setting names (GENERAL)."""
        changed = self._changed_of_kind(before, "user")
        if any(self.exact[pool] != before.exact[pool] for pool in ("broker", "broker:all")):
            changed.add("broker")
        changed.update(pool for pool in ("ssl", CLUSTER) if self.exact[pool] != before.exact[pool])
        if (self.listeners, self.listener_default) != (before.listeners, before.listener_default):
            changed.add("listener")
        if (self._redpanda, self._kafka) == (before._redpanda, before._kafka):
            return changed
        return changed | (self._changed_of_kind(before, "ip") if self._keeps_networks(before) else {"ip"})

    def _changed_of_kind(self, before: "ConnectionLimits", kind: str) -> set[str]:
        return changed_of_kind(kind, before.rule_of, self.rule_of, {*self.exact, *before.exact})

    def _keeps_networks(self, before: "ConnectionLimits") -> bool:
        """True if addresses with an override by their network alone surely keep their rules. Where only one vocabulary is used they
        do even if its general rule changes: each override replaces it."""
        networks, earlier = self._by_network(), before._by_network()
        if [own for _, own in networks] != [own for _, own in earlier]:
            return False
        is_general = [now == was for (now, _), (was, _) in zip(networks, earlier, strict=True)]
        used = [any(limits._uses(place) for limits in (self, before)) for place in (0, 1)]
        return all(is_general) or not any(own for _, own in networks) or not all(used)

    def _uses(self, vocabulary: int) -> bool:
        general, overrides = (self._redpanda, self._kafka)[vocabulary]
        return general.cap is not None or bool(overrides)

    def _by_network(self) -> list[tuple[CapRule, dict[str, int]]]:
        """The rules of addresses without an override of their own, in each vocabulary: the general one, and those of networks."""
        each = (self._redpanda, self._kafka)
        return [(rule, {key: n for key, n in own.entries.items() if "/" in key}) for rule, own in each]

    @property
    def lists_networks(self) -> bool:
        """True if an override of connections is of a network."""
        return self._networks

    # ---- rates

    def rate_of(self, pool: str) -> RateRule:
        """New connections a second of `broker` or `listener:NAME` (KIP-612), of `user:NAME`, or of `cluster`; NO_RATE for other
        pools."""
        if pool.startswith("listener:"):
            return self._listener_rates.get(pool[9:].lower(), self.rate_default)
        if pool.startswith("user:"):
            return self.user_rates.get(pool[5:], self.user_rate_default)
        return self.rate_default if pool == "broker" else self.cluster_rate if pool == CLUSTER else NO_RATE

    def listener_rates(self) -> list[RateRule]:
        """The rates that listeners have of their own."""
        return list(self._listener_rates.values())

    def core_rate_of(self, ip: str) -> RateRule:
        """Redpanda's rate on each shard. An override has a bucket of its own: the rule's `name` says which one counts."""
        own = self._core_overrides.lookup(ip) if self._core_overrides else None
        return self.core_rate if own is None else RateRule(float(own), CORE_RATE_OVERRIDES)

    def most_of_core_rate(self, rule: RateRule) -> float | None:
        """The larger of what a core's rate lets pass at once, and in the long run a second; None: there is no rate."""
        return None if rule.rate is None else max(rule.rate, sustained_per_s(rule.rate, exact=self.exact_core_rate))

    def core_overrides(self) -> list[float]:
        """The rates of the overrides of Redpanda's rate."""
        return [float(rate) for rate in self._core_overrides.entries.values()]

    @property
    def limits_core_rate(self) -> bool:
        """True if any of Redpanda's rates is set."""
        return self.core_rate.rate is not None or bool(self._core_overrides)

    # ---- how rates are measured

    @property
    def window(self) -> Window:
        """The window of client quotas and creation rates."""
        return self._window("")

    @property
    def mutation_window(self) -> Window:
        """The window of controller mutation quotas."""
        return self._window("controller.")

    def _window(self, prefix: str) -> Window:
        samples, size_s = (self._value(f"{prefix}quota.window.{what}") for what in ("num", "size.seconds"))
        return Window(cast(int, samples), cast(int, size_s) * 1000)

    def _value(self, name: str) -> Value:
        return self.given[name] if name in self.given else BROKER[name].default

    def _overrides(self, name: str) -> Overrides:
        return cast(Overrides, self._value(name)).resolved(self.hosts).counted_by(self.ipv6_prefix)


def _is(name: str, setting: str) -> bool:
    return name.startswith(LISTENER_PREFIX) and name[len(LISTENER_PREFIX) :].partition(".")[2] == setting


def _kafka_rule(value: Value, name: str, *, wait: bool = False) -> CapRule:
    return UNLIMITED if value == INT_MAX else CapRule(cast(int, value), name, wait)


def _optional(value: Value, name: str) -> CapRule:
    return UNLIMITED if value is None else CapRule(cast(int, value), name)


def _optional_rate(value: Value, name: str) -> RateRule:
    return NO_RATE if value is None else RateRule(float(cast(int, value)), name)


def _rate_rule(value: Value, name: str) -> RateRule:
    return NO_RATE if value == INT_MAX else RateRule(float(cast(int, value)), name)
