"""The figures of a shard for the addresses and clients that are watched: their counts, and the rates and quotas at home here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.metrics.source_counts import SourceCounts
from shards.quotas.meters import KINDS
from shards.quotas.sharded_quotas import ShardedQuotas


class WatchedFigures:
    """`rate(key)`: connections a second of an address or user, such as `user:alice`, whose rate is at home here."""

    def __init__(self, sources: SourceCounts, meters: ShardedQuotas, rate: Callable[[str], float | None]) -> None:
        self._sources = sources
        self._meters = meters
        self._rate = rate

    def describe(self, addresses: Sequence[str], clients: Sequence[Sequence[str]]) -> dict[str, object]:
        """`counts`: {address: {outcome: connections since this shard started}}; `rates`: {key: connections a second} of the
        addresses and of clients that are a user; `quotas`: QuotaUse of the clients, by (user, client id) as a quota tells them
        apart."""
        keys = [f"ip:{ip}" for ip in addresses] + [f"user:{user}" for user, client_id in clients if not client_id]
        rates = {key: rate for key in keys if (rate := self._rate(key)) is not None}
        uses = (self._meters.use(kind, (user, client_id)) for user, client_id in clients for kind in KINDS)
        return {
            "counts": {ip: self._sources.of(ip) for ip in addresses},
            "rates": rates,
            "quotas": [use for use in uses if use is not None],
        }
