"""One version of the configuration for a broker's pools: their caps and their rates."""

from collections.abc import Collection

from shards.limits.caps import CLUSTER
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.ip_quotas import IpQuotaTable

UNLIMITED = 1 << 62
ONE_OF_KIND = ("ssl", CLUSTER)
"""Kinds of pool whose key is the kind."""


class VersionLimits:
    """One version for one broker; `limits` are its settings, read as the broker read them."""

    def __init__(
        self,
        limits: ConnectionLimits,
        ip_quotas: IpQuotaTable,
        inter_broker: str | None = None,
        listeners: int = 1,
        ssl: Collection[str] = (),
    ) -> None:
        """`listeners`: how many the broker has; the inter-broker one is special only beside another. `ssl`: those with TLS."""
        self.limits = limits
        self.ip_quotas = ip_quotas
        self.inter_broker = inter_broker if listeners > 1 else None
        self.ssl = frozenset(ssl)

    def cap(self, kind: str, key: str, *, refusing: bool = True, slots: bool = True) -> int:
        """The cap of a pool: kind broker, listener, ssl, ip, user or cluster; UNLIMITED when it has none.

        The broker's is asked with the listener as key: the inter-broker one is exempt from max.connections (KIP-402).
        Without `slots` max.connections stops no connection, without `refusing` kafka_connections_max stops none.
        """
        limits = self.limits
        if kind != "broker":
            cap = limits.rule_of(kind if kind in ONE_OF_KIND else f"{kind}:{key}").cap
        else:
            shared = limits.waiting.cap if slots and key != self.inter_broker else None
            above = limits.refusing.cap if refusing else None
            cap = min((each for each in (above, shared) if each is not None), default=None)
        return UNLIMITED if cap is None else cap

    def rate(self, kind: str, key: str) -> float:
        """New connections a second that a pool may have; infinite when it has no limit."""
        limits = self.limits
        if kind == "ip":
            rate = self.ip_quotas.quota(key)
        elif kind in ("listener", "user"):
            rate = limits.rate_of(f"{kind}:{key}").rate
        elif kind == CLUSTER:
            rate = limits.rate_of(CLUSTER).rate
        elif kind == "core":  # the bucket of every address without one of its own
            rate = None if limits.core_overrides() else limits.most_of_core_rate(limits.core_rate)
        elif kind == "core_ip":
            rule = limits.core_rate_of(key)
            rate = None if rule == limits.core_rate else limits.most_of_core_rate(rule)
        else:
            rate = limits.rate_of("broker").rate
        return float("inf") if rate is None else rate

    def rates(self, kind: str) -> list[float]:
        """Every rate that this version sets for pools of a kind."""
        limits = self.limits
        if kind == "ip":
            return self.ip_quotas.quotas()
        if kind == "core_ip":
            return limits.core_overrides()
        if kind == "core":
            return [self.rate(kind, "")] if limits.core_rate.rate is not None else []
        if kind == "user":
            return [
                rule.rate for rule in (limits.user_rate_default, *limits.user_rates.values()) if rule.rate is not None
            ]
        rules = [limits.rate_of(CLUSTER if kind == CLUSTER else "broker")]
        if kind == "listener":
            rules += limits.listener_rates()
        return [rule.rate for rule in rules if rule.rate is not None]
