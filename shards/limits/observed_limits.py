"""Limits that are observed instead of enforced (rehearsal, shadow mode, dry run).

An observed value replaces the enforced value of the same setting and scope (all brokers, or one), as `config set` would. The
settings in force with all observed values in them are the *rehearsed* configuration. Its caps are the caps of the observed pools:
`observed/broker`, `observed/listener:NAME`, `observed/ssl`, `observed/ip:ADDRESS`, `observed/user:NAME` and `observed/cluster`.
An observed client quota replaces the same quota of the same entity, as `quota set` would; the entity's other quotas stay.

differences_only  An observed pool has a cap only where the rehearsed cap differs from the enforced one. An equal cap would refuse
    nothing that the enforced one lets in: the observed pool never has more connections than the enforced one.
"""

from collections.abc import Iterable, Mapping

from shards.limits.caps import CLUSTER, GENERAL, OBSERVED, UNLIMITED, CapRule
from shards.limits.changed_pools import changed_of_kind
from shards.limits.connection_limits import CAPS_AND_RATES, CORE_RATE, CORE_RATE_OVERRIDES, ConnectionLimits
from shards.limits.quota_entities import Entity
from shards.settings.broker_config import CLUSTER_CAP, CLUSTER_RATE, RATE, USER_RATE, USER_RATE_OVERRIDES
from shards.settings.config_def import broker_setting
from shards.settings.errors import ConfigInvalid

OBSERVABLE = (*CAPS_AND_RATES, CLUSTER_CAP, CLUSTER_RATE)
"""The settings that can be observed."""
_EVERY_KIND = frozenset(OBSERVED + kind for kind in ("broker", "listener", "ssl", "ip", "user", CLUSTER))


def is_observable(name: str) -> bool:
    """True if a setting can be observed. `name`: canonical; a listener's own setting counts as the broker's."""
    return broker_setting(name).name in OBSERVABLE


def check_observable(name: str) -> None:
    """Raises ConfigInvalid unless `is_observable(name)`."""
    if not is_observable(name):
        each = ", ".join(OBSERVABLE)
        raise ConfigInvalid(name, None, f"can't be observed: only limits of connections can be ({each})",
                            error="INVALID_REQUEST")  # fmt: skip


def merged_quotas(
    enforced: Mapping[Entity, Mapping[str, float]], observed: Mapping[Entity, Mapping[str, float]]
) -> dict[Entity, dict[str, float]]:
    """The client quotas, by entity and key, that would be in force if the observed ones were set. Empty if none is observed;
    without the quotas of addresses."""
    if not observed:
        return {}
    of_clients = dict.fromkeys(entity for entity in (*enforced, *observed) if entity[0][0] != "ip")
    return {entity: {**enforced.get(entity, {}), **observed.get(entity, {})} for entity in of_clients}


class ObservedLimits:
    """The caps of one broker's observed pools; immutable.

    `enforced`: the limits in force. `rehearsed`: the limits that would be in force with the observed values.
    """

    __slots__ = ("enforced", "rehearsed")

    def __init__(self, enforced: ConnectionLimits, rehearsed: ConnectionLimits) -> None:
        self.enforced = enforced
        self.rehearsed = rehearsed

    def rule_of(self, pool: str) -> CapRule:
        """The cap of an observed pool. `pool`: the key of the enforced pool, such as `ip:10.0.0.1`. UNLIMITED where the two caps
        are equal (differences_only)."""
        rule = self.rehearsed.rule_of(pool)
        return UNLIMITED if rule == self.enforced.rule_of(pool) else rule

    @property
    def has_other_caps(self) -> bool:
        """True if the rehearsed cap of any pool may differ from the enforced one."""
        return bool(self.rehearsed.changed_pools(self.enforced))

    def has_other_world(self, *, other_ip_rates: bool) -> bool:
        """True if there are observed pools. There are if any cap differs. There are also if both a user's rate and a rate that
        refuses before the login (of a core, of the cluster or, `other_ip_rates`, of an address) differ: a connection that has
        observed tokens was admitted by that rate, and only such connections' logins are charged to the user's rate."""
        refuses = self.has_other_core_rates or self.has_other_cluster_rate or other_ip_rates
        return self.has_other_caps or (self.has_other_user_rates and refuses)

    @property
    def has_other_core_rates(self) -> bool:
        """True if Redpanda's connection rate of a core, or of an address on a core, differs from the enforced one."""
        return self._has_other((CORE_RATE, CORE_RATE_OVERRIDES))

    @property
    def has_other_cluster_rate(self) -> bool:
        """True if the creation rate of the whole cluster differs from the enforced one."""
        return self._has_other((CLUSTER_RATE,))

    @property
    def has_other_user_rates(self) -> bool:
        """True if the creation rate of a user differs from the enforced one."""
        return self._has_other((USER_RATE, USER_RATE_OVERRIDES))

    @property
    def has_other_rates(self) -> bool:
        """True if a creation rate of the cluster, the broker, a listener or a core differs from the enforced one."""
        return self.has_other_core_rates or self.has_other_cluster_rate or self.has_other_listener_rates

    @property
    def has_other_listener_rates(self) -> bool:
        """True if a creation rate of the broker or a listener differs from the enforced one."""
        given = {*self.enforced.given, *self.rehearsed.given} - {CLUSTER_RATE}
        return self._has_other(name for name in given if name.endswith(RATE))

    def _has_other(self, names: Iterable[str]) -> bool:
        return any(self.enforced.given.get(name) != self.rehearsed.given.get(name) for name in names)


def changed_pools(before: ObservedLimits | None, after: ObservedLimits | None) -> set[str]:
    """The observed pools, or kinds of pools, whose cap may differ between two versions. None: nothing is observed in it."""
    if before is None and after is None:
        return set()
    if before is None or after is None:
        return set(_EVERY_KIND)
    changed = after.enforced.changed_pools(before.enforced) | after.rehearsed.changed_pools(before.rehearsed)
    general = {name for name in changed if name.startswith(GENERAL)}
    found = {OBSERVED + pool for pool in changed - general}
    each = (before.enforced, before.rehearsed, after.enforced, after.rehearsed)
    for kind in (name.removeprefix(GENERAL) for name in general):
        if kind == "ip" and any(limits.lists_networks for limits in each):
            found.add(f"{OBSERVED}ip")
        else:
            listed = {pool for limits in each for pool in limits.exact}
            names = changed_of_kind(kind, before.rule_of, after.rule_of, listed)
            found |= {f"{GENERAL}{OBSERVED}{kind}" if name in general else OBSERVED + name for name in names}
    return found
