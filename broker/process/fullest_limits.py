"""The limits of a shard that are closest to being reached: of addresses' and users' caps, rates, and clients' quotas.

bounded  An answer has at most MOST limits of each kind, whatever the number of addresses and clients, and no question walks all
    of them. Caps are looked at in the sweep of the tokens (shards/tokens/fullest_pools.py), quotas QUOTAS_AT_ONCE a tick. Of
    the rates only those of the RATES latest addresses and users to connect are looked at: one that is close to its rate has
    just connected.
as_it_is_now  A limit that is told of is told with its use at the time of the answer, however long ago it was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from shards.config.image import ClusterImage
from shards.limits.precedence import Key
from shards.limits.utilisation import Fullest, utilisation
from shards.quotas.meters import KINDS, QuotaUse
from shards.quotas.sharded_quotas import ShardedQuotas
from shards.tokens.tokens import Tokens

MOST: Final = 200
QUOTAS_AT_ONCE: Final = 1000
FEW_QUOTAS: Final = 500
RATES: Final = 1000
LatestRates = Callable[[int], list[tuple[str, float]]]


class FullestLimits:
    """`rates(most)`: (key, connections a second) of addresses and users at home here that have a rate, the latest to connect
    first."""

    def __init__(self, tokens: Tokens, meters: ShardedQuotas, image: ClusterImage, rates: LatestRates) -> None:
        self._tokens = tokens
        self._meters = meters
        self._image = image
        self._rates = rates
        self._quotas = _QuotaTurn(meters)
        self._turn: Iterator[tuple[str, Key]] = iter(())

    def tick(self) -> None:
        """Looks at some quotas; to be called a few times a second."""
        if self._quotas.look(islice(self._turn, QUOTAS_AT_ONCE)) < QUOTAS_AT_ONCE:
            self._quotas.end()
            self._turn = self._meters.sensor_keys()

    def describe(self) -> dict[str, object]:
        """Each at most MOST, the fullest first, and CloseLimits of all that were looked at: `addresses`, the closest to their caps,
        and `close`; `users` and `close_users`, the same of users; `rates`, [[key, connections a second]], and `close_rates`,
        {kind of key: CloseLimits}; `quotas`, QuotaUse of clients of each kind, and `close_quotas`, {kind: CloseLimits}."""
        pools, quotas, rates = self._tokens.fullest, self._quotas, self._connection_rates()
        if self._meters.sensors().kept <= FEW_QUOTAS:
            quotas = _QuotaTurn(self._meters)
            quotas.look(self._meters.sensor_keys())
            quotas.end()
        return {
            "addresses": pools.addresses(),
            "close": pools.close(),
            "users": pools.users(),
            "close_users": pools.close_users(),
            "rates": [rate for seen in rates.values() for rate in seen.limits()],
            "close_rates": {kind: seen.close for kind, seen in rates.items()},
            "quotas": quotas.uses(),
            "close_quotas": {kind: seen.close for kind, seen in quotas.seen.items()},
        }

    def _connection_rates(self) -> dict[str, Fullest[tuple[str, float]]]:
        seen: dict[str, Fullest[tuple[str, float]]] = {"ip": Fullest(MOST), "user": Fullest(MOST)}
        for key, per_s in self._rates(RATES):
            rule = self._image.rate_of(key)
            if per_s > 0 and rule.rate is not None:
                seen[key.partition(":")[0]].look((key, per_s), utilisation(per_s, rule.rate))
        for each in seen.values():
            each.end_turn()
        return seen


class _QuotaTurn:
    """The quotas closest to being reached, by kind."""

    def __init__(self, meters: ShardedQuotas) -> None:
        self._meters = meters
        self.seen: dict[str, Fullest[Key]] = {kind: Fullest(MOST) for kind in KINDS}

    def look(self, keys: Iterable[tuple[str, Key]]) -> int:
        """Looks at the quotas of these keys; at how many."""
        looked = 0
        for kind, key in keys:
            looked += 1
            use = self._meters.use(kind, key)
            if use is not None and use.used > 0:
                self.seen[kind].look(key, utilisation(use.used, use.limit))
        return looked

    def end(self) -> None:
        for seen in self.seen.values():
            seen.end_turn()

    def uses(self) -> list[QuotaUse]:
        uses = (self._meters.use(kind, key) for kind, seen in self.seen.items() for key in seen.limits())
        return [use for use in uses if use is not None]
