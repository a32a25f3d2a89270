"""The figures of a shard for the addresses and clients that are watched: their counts, and the rates and quotas at home here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.metrics.source_counts import SourceCounts
from shards.quotas.meters import KINDS
from shards.quotas.sharded_quotas import ShardedQuotas


class WatchedHere:
    """`rate(ip)`: connections a second of an address whose rate is at home here."""

    def __init__(self, sources: SourceCounts, meters: ShardedQuotas, rate: Callable[[str], float | None]) -> None:
        self._sources = sources
        self._meters = meters
        self._rate = rate

    def describe(self, addresses: Sequence[str], clients: Sequence[Sequence[str]]) -> dict[str, object]:
        """`counts`: {address: {outcome: connections since this shard started}}; `rates`: {address: connections a second}; `quotas`:
        QuotaUse of the clients, by (user, client id) as a quota tells them apart."""
        rates = {ip: rate for ip in addresses if (rate := self._rate(ip)) is not None}
        uses = (self._meters.use(kind, (user, client_id)) for user, client_id in clients for kind in KINDS)
        return {
            "counts": {ip: self._sources.of(ip) for ip in addresses},
            "rates": rates,
            "quotas": [use for use in uses if use is not None],
        }
