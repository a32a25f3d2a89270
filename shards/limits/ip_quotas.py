"""`connection_creation_rate` by address (KIP-612): an address without a quota of its own has the default entity's.

INT_MAX is no quota, as in Kafka; given to an address it exempts that address from the default.
Source: SocketServer.ConnectionQuotas.connectionRateForIp (Apache Kafka).
"""

from collections.abc import Iterable, Mapping

from shards.limits.quota_entities import CONNECTION_RATE, Entity
from shards.settings.addresses import IPV6_BITS, counted_address
from shards.settings.ranges import INT_MAX


class IpQuotaTable:
    """`by_ip`: addresses (None: the default entity) and their quotas, in connections a second."""

    __slots__ = ("by_ip",)

    def __init__(self, quotas: Iterable[tuple[Entity, Mapping[str, float]]] = ()) -> None:
        """`quotas`: the quotas of entities of any type; those of others than addresses are left out."""
        self.by_ip: dict[str | None, float] = {
            entity[0][1]: values[CONNECTION_RATE]
            for entity, values in quotas
            if entity[0][0] == "ip" and CONNECTION_RATE in values
        }

    def counted_by(self, ipv6_prefix: int) -> "IpQuotaTable":
        """The table for addresses that count as `counted_address` says: of several that count as one the smallest quota holds."""
        if ipv6_prefix == IPV6_BITS:
            return self
        table = IpQuotaTable()
        for ip, per_s in self.by_ip.items():
            key = None if ip is None else counted_address(ip, ipv6_prefix)
            table.by_ip[key] = min(per_s, table.by_ip.get(key, per_s))
        return table

    def update(self, ip: str | None, per_s: float | None) -> None:
        """Set or, with None, remove the quota of an address in its normal spelling."""
        if per_s is None:
            self.by_ip.pop(ip, None)
        else:
            self.by_ip[ip] = per_s

    def quota(self, ip: str) -> float | None:
        """The quota of an address; None: it has none."""
        values = self.by_ip
        found = values.get(ip)
        if found is None:
            found = values.get(None)
        return None if found is None or found >= INT_MAX else found

    def quotas(self) -> list[float]:
        """Every quota that limits some address."""
        return [value for value in self.by_ip.values() if value < INT_MAX]

    def __bool__(self) -> bool:
        """True if any address may have a quota."""
        return bool(self.by_ip)
