"""The addresses and users whose caps are closest to being reached, of the pools at home on one shard.

looked_at_in_the_sweep  There may be a million pools, and no question walks them: the wheel, which visits each pool once a turn to
    send idle tokens home (pool.py), hands over the pools that it visits, a sixteenth of all at a time. A pool that is new is
    looked at after a turn. Where there are few pools, a question looks at all of them, as they are.
out_is_the_use  A home knows the tokens that are out, not which of them another shard only caches: so a pool is ranked, and
    counted, by what is out. The shards that hold the tokens say how many are in use (describe.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from shards.limits.utilisation import HIGH_FROM, CloseLimits, Fullest, utilisation
from shards.tokens.home_pool import HomePool
from shards.tokens.pool import Pool, PoolTable

MOST: Final = 200
FEW: Final = 2000
_ADDRESS, _USER = "ip:", "user:"


class FullestPools:
    """The fullest pools of addresses and users; those of a broker and its listeners are few, and known by name."""

    def __init__(self, table: PoolTable) -> None:
        self._table = table
        self._turn = _Turn()
        self._ends_at = table.TICKS

    def visited(self, pools: Iterable[Pool]) -> None:
        """The wheel has visited the pools that were due."""
        self._turn.look(pools)
        if self._table.ticks >= self._ends_at:
            self._turn.end()
            self._ends_at = self._table.ticks + self._table.TICKS

    def addresses(self) -> list[str]:
        """The closest to their caps, at most MOST, the fullest first."""
        return [key.removeprefix(_ADDRESS) for key in self._seen().addresses.limits()]

    def close(self) -> CloseLimits:
        """The number of addresses that are close to their caps."""
        return self._seen().addresses.close

    def users(self) -> list[str]:
        """The users whose pools are the fullest."""
        return [key.removeprefix(_USER) for key in self._seen().users.limits()]

    def close_users(self) -> CloseLimits:
        """The number of users that are close to their caps."""
        return self._seen().users.close

    def _seen(self) -> _Turn:
        if len(self._table.pools) > FEW:
            return self._turn
        now = _Turn()
        now.look(self._table.pools.values())
        now.end()
        return now


class _Turn:
    """The pools that were seen in one turn of the wheel."""

    def __init__(self) -> None:
        self.addresses: Fullest[str] = Fullest(MOST)
        self.users: Fullest[str] = Fullest(MOST)
        self._of_kind = {_ADDRESS: self.addresses, _USER: self.users}

    def look(self, pools: Iterable[Pool]) -> None:
        """Takes in pools that the wheel has visited."""
        _look(self._of_kind, pools)

    def end(self) -> None:
        """The turn is over."""
        for fullest in self._of_kind.values():
            fullest.end_turn()


def _look(of_kind: Mapping[str, Fullest[str]], pools: Iterable[Pool]) -> None:
    """Most pools are far from their caps: few comparisons each, as there may be a million a turn."""
    passed = dict.fromkeys(of_kind, 0)
    for pool in pools:
        cap = pool.terms.rule.cap
        if cap is None or pool.__class__ is not HomePool:
            continue
        out = pool.level
        if not out:
            continue
        kind = pool.key[: pool.key.find(":") + 1]
        fullest = of_kind.get(kind)
        if fullest is None:
            continue
        share = utilisation(out, cap) if cap <= 0 else out / cap
        if share >= HIGH_FROM or share > fullest.floor:
            fullest.look(pool.key, share)
        else:
            passed[kind] += 1
    for kind, count in passed.items():
        of_kind[kind].pass_over(count)
