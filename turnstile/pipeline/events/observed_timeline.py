"""The timeline as the limits that were observed instead of enforced (docs/rehearsal.md): the same versions and periods, other
caps and client quotas.

observed_while_every_version_observes_it  a cap counts as observed while every version that may be in force observes it, as the
    widest of their caps counts
"""

from shards.limits.caps import CLUSTER, NO_RATE, OBSERVED, RateRule
from shards.limits.ip_quotas import IpQuotaTable
from shards.limits.observed_limits import ObservedLimits
from shards.limits.quota_entities import CONNECTION_RATE, Entity
from turnstile.pipeline.events.config_states import OBSERVED_QUOTA, QUOTA
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import ONE_OF_KIND, UNLIMITED, VersionLimits


class ObservedVersionLimits(VersionLimits):
    """The limits that one version observes on one broker."""

    def __init__(self, observed: ObservedLimits, would_be: VersionLimits) -> None:
        """`would_be`: the version if what is observed were set."""
        inter_broker = would_be.inter_broker  # None where it is the only listener
        super().__init__(observed.rehearsed, IpQuotaTable(), inter_broker, listeners=2, ssl=would_be.ssl)
        self.observed = observed

    def cap(self, kind: str, key: str, *, refusing: bool = True, slots: bool = True) -> int:
        rules = [self.observed.rule_of(pool) for pool in _pools(kind, key)]
        is_exempt = kind == "broker" and key == self.inter_broker
        return min(
            (rule.cap for rule in rules if rule.cap is not None and not (rule.wait and is_exempt)), default=UNLIMITED
        )

    def rate(self, kind: str, key: str) -> float:
        """The observed rate of the whole cluster, by the name of its window; infinite where it would be the one in force."""
        rates = self.rates(kind)
        return rates[0] if rates else float("inf")

    def rates(self, kind: str) -> list[float]:
        """The observed rate as a list; rates of other kinds have ObservedTimeline.observed_rate."""
        rule = self.observed.rehearsed.rate_of(CLUSTER)
        is_other = kind == OBSERVED + CLUSTER and self.observed.has_other_cluster_rate
        return [rule.rate] if is_other and rule.rate is not None else []


def _pools(kind: str, key: str) -> tuple[str, ...]:
    if kind in ONE_OF_KIND:
        return (kind,)
    return ("broker", "broker:all") if kind == "broker" else (f"{kind}:{key}",)


def _rate_of(limits: VersionLimits, pool: str) -> RateRule:
    kind, _, key = pool.partition(":")
    if kind == "ip":
        rate = limits.ip_quotas.quota(key)
        return NO_RATE if rate is None else RateRule(rate, CONNECTION_RATE)
    return limits.limits.core_rate_of(key) if kind == "core" else limits.limits.rate_of(pool)


class ObservedTimeline(Timeline):
    """Made of the timeline of what was enforced."""

    def __init__(self, enforced: Timeline) -> None:
        self.__dict__.update(enforced.__dict__)
        self._limits = {}
        self._would_be: dict[tuple[int, int], VersionLimits] = {}
        self._enforced = enforced

    @property
    def observes(self) -> bool:
        """True if any version observes a cap, or a rate by a setting."""
        return any(self._is_observing(version, broker) for version in self.versions for broker in self.brokers)

    @property
    def begins(self) -> list[int]:
        """The versions with which the observed world of a broker begins, and has all open connections."""
        return [
            version
            for version in self.versions
            if any(self._has_world(version, each) and not self._has_world(version - 1, each) for each in self.brokers)
        ]

    def observed_rate(self, version: int, broker: int, pool: str) -> RateRule:
        """The creation rate that a version observes, of `cluster`, `broker`, `listener:NAME`, `ip:ADDRESS`, `user:NAME` or
        `core:ADDRESS` (of each shard); NO_RATE where it would be that in force."""
        enforced = _rate_of(self._enforced.limits(version, broker), pool)
        rehearsed = _rate_of(self._rehearsed(version, broker), pool)
        return NO_RATE if rehearsed == enforced else rehearsed

    def client_quotas(self, version: int) -> dict[str, dict[Entity, float]] | None:
        """The quotas in force with the observed ones in them; none where none is observed."""
        observed = self._quotas_of(version, (OBSERVED_QUOTA,))
        return self._quotas_of(version, (QUOTA, OBSERVED_QUOTA)) if observed and any(observed.values()) else observed

    def _has_world(self, version: int, broker: int) -> bool:
        """True if there are observed pools, as broker/accept/observed_world.py has it."""
        limits = self.limits(version, broker)
        enforced, would_be = self._enforced.limits(version, broker), self._rehearsed(version, broker)
        other_ip_rates = enforced.ip_quotas.by_ip != would_be.ip_quotas.by_ip
        return isinstance(limits, ObservedVersionLimits) and limits.observed.has_other_world(
            other_ip_rates=other_ip_rates
        )

    def _is_observing(self, version: int, broker: int) -> bool:
        return bool(self.observed_settings(version, broker))

    def _rehearsed(self, version: int, broker: int) -> VersionLimits:
        """The limits of a version for a broker if the observed ones were set."""
        key = version, broker if broker in self._own else -1
        found = self._would_be.get(key)
        if found is None:
            found = self._would_be[key] = self.read(*key, with_observed=True)
        return found

    def _compute(self, version: int, broker: int) -> VersionLimits:
        enforced = self._enforced.limits(version, broker)
        would_be = self._rehearsed(version, broker)
        observed = ObservedLimits(enforced.limits, would_be.limits)
        return ObservedVersionLimits(observed, would_be)
