"""Pools at their home: token counts, grants by shard, and waiting borrows. ledger.py decides when they change."""

from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from shards.limits.caps import CapRule
from shards.tokens.pool import Pool


class HomePoolMode(Enum):
    """What holders may do with tokens they don't use."""

    OPEN = "open"  # cache them
    RECLAIMING = "reclaiming"  # holders were asked to send them home, and not all have answered
    TIGHT = "tight"  # no holder caches any: tokens that are out are in use, or on the way


# "Dry": no token is free while a connection waits, or more tokens are out than the cap allows.
TRANSITIONS: Final = (
    (HomePoolMode.OPEN, HomePoolMode.RECLAIMING),  # dry
    (HomePoolMode.OPEN, HomePoolMode.TIGHT),  # dry, and no holder has any
    (HomePoolMode.RECLAIMING, HomePoolMode.TIGHT),  # all have answered
    (
        HomePoolMode.TIGHT,
        HomePoolMode.RECLAIMING,
    ),  # more out than the cap allows: connections in flight give theirs up, too
    (HomePoolMode.TIGHT, HomePoolMode.OPEN),  # half empty, or no cap any more
)


class HomePool(Pool):
    """A pool at its home.

    granted  tokens out to other shards: the sum of what the ledger has for each
    mode     whether holders may cache; `tight` is True unless it is OPEN
    """

    __slots__ = ("granted", "mode")

    def __init__(self, key: str, rule: CapRule) -> None:
        super().__init__(key, rule)
        self.granted = 0
        self.mode = HomePoolMode.OPEN

    @property
    def out(self) -> int:
        """Tokens that are not free: in use at home, or granted."""
        return self.in_use + self.granted

    def may_cache(self, shards: int) -> bool:
        """Whether holders may keep what they don't use: there must be more tokens than shards (the RFC's rule)."""
        cap = self.rule.cap
        return self.mode is HomePoolMode.OPEN and (cap is None or cap > shards)

    def is_roomy(self, shards: int) -> bool:
        """Whether a tight pool may be cached again: it is half empty."""
        cap = self.rule.cap
        return cap is None or (cap > shards and 2 * self.out <= cap)

    def enter(self, mode: HomePoolMode) -> None:
        """Changes the mode; anything but a transition of the table is a bug."""
        if mode is self.mode:
            return
        if (self.mode, mode) not in TRANSITIONS:
            raise RuntimeError(f"{self.key}: {self.mode.value} can't become {mode.value}")
        self.mode = mode
        self.tight = mode is not HomePoolMode.OPEN


class PendingBorrow:
    """A borrow that was not served in full: `count` connections of `peer` wait, with tickets from `first` to `last`.

    `at_once`: they do not wait for others to close, whatever the rule.
    """

    __slots__ = ("arrival", "at_once", "count", "first", "last", "peer")

    def __init__(self, peer: int, count: int, first: int, last: int, arrival: int, at_once: bool) -> None:
        self.peer = peer
        self.count = count
        self.first = first
        self.last = last
        self.at_once = at_once
        self.arrival = arrival  # rises with every PendingBorrow of this ledger


class Contention:
    """A pool for which connections wait, or whose holders have not all answered a `reclaim`.

    borrows   the borrows not yet served in full, in order of arrival
    awaiting  {shard: answers to `reclaim` that it still owes}
    covered   the probe under way covers borrows up to this arrival; 0 for none
    """

    __slots__ = ("awaiting", "borrows", "covered")

    def __init__(self) -> None:
        self.borrows: deque[PendingBorrow] = deque()
        self.awaiting: dict[int, int] = {}
        self.covered = 0

    def refusable(self, rule: CapRule) -> bool:
        """Whether connections wait that a full pool refuses under this rule."""
        return not rule.wait or any(borrow.at_once for borrow in self.borrows)


class Grants:
    """Tokens that are out to other shards, by shard and pool: what each was granted and has not given back.

    `unsure` are the tokens of a shard whose links were lost: an upper bound of what it holds, until it has reported.
    """

    def __init__(self, others: Iterable[int]) -> None:
        self._of: dict[int, dict[str, int]] = {shard: {} for shard in others}
        self._unsure: dict[int, dict[str, int]] = {}

    def add(self, shard: int, pool: HomePool, n: int) -> None:
        """n more tokens are out to a shard."""
        of = self._of[shard]
        of[pool.key] = of.get(pool.key, 0) + n
        pool.granted += n

    def take_back(self, shard: int, pool: HomePool, n: int) -> None:
        """A shard gave n tokens back; more than it was granted is a bug."""
        of = self._of[shard]
        left = of.get(pool.key, 0) - n
        if left < 0:
            raise RuntimeError(f"{pool.key}: shard {shard} gives back {-left} tokens more than it was granted")
        if left:
            of[pool.key] = left
        else:
            del of[pool.key]
        pool.granted -= n

    def doubt(self, shard: int) -> None:
        """The links to a shard were lost, and with them what was on its way in either direction."""
        unsure = self._unsure.setdefault(shard, {})
        for key, n in self._of[shard].items():
            unsure[key] = unsure.get(key, 0) + n
        self._of[shard] = {}

    def reported(self, shard: int, pool: HomePool, n: int) -> int:
        """A shard reports n tokens in use; returns how many of them were not granted here."""
        unsure = self._unsure.get(shard, {})
        sure = min(n, unsure.get(pool.key, 0))
        if sure:
            unsure[pool.key] -= sure
            pool.granted -= sure
        self.add(shard, pool, n)
        return n - sure

    def settle(self, shard: int) -> dict[str, int]:
        """A shard has reported all its use, or is dead: returns {pool: unsure tokens that it does not hold}."""
        return self._unsure.pop(shard, {})

    def is_unsure(self, key: str) -> bool:
        """Whether a shard whose links were lost may have tokens of a pool."""
        return any(key in unsure for unsure in self._unsure.values())

    def drop(self, shard: int) -> dict[str, int]:
        """Forgets a dead shard; returns {pool: tokens it had}, which the caller subtracts from its pools."""
        self.doubt(shard)
        return self.settle(shard)

    def holds(self, shard: int, key: str) -> bool:
        """Whether a shard surely has tokens of a pool."""
        return key in self._of[shard]

    def holders(self, key: str) -> list[int]:
        """The shards that may have tokens of a pool."""
        return [shard for shard, of in self._of.items() if key in of or self._unsure.get(shard, {}).get(key)]

    def of(self, key: str) -> dict[int, int]:
        """Tokens of a pool, by shard; of a lost shard, the most that it may have."""
        found = {shard: of.get(key, 0) + self._unsure.get(shard, {}).get(key, 0) for shard, of in self._of.items()}
        return {shard: n for shard, n in found.items() if n}

    def sure(self) -> dict[int, dict[str, int]]:
        """{shard: {pool: tokens}} of all shards but for what is unsure; a copy."""
        return {shard: dict(of) for shard, of in self._of.items()}

    def unsure(self) -> dict[int, dict[str, int]]:
        """{shard: {pool: tokens}} of shards whose links were lost and that have not reported since; a copy."""
        return {shard: dict(of) for shard, of in self._unsure.items()}

    def check(self, pools: Mapping[str, HomePool]) -> None:
        """Raises AssertionError unless every grant is of a known pool, and every pool's sum is right."""
        sums = dict.fromkeys(pools, 0)
        for of in (*self._of.values(), *self._unsure.values()):
            for key, n in of.items():
                assert n >= 0, key
                sums[key] += n
        assert all(n > 0 for of in self._of.values() for n in of.values())
        assert sums == {key: pool.granted for key, pool in pools.items()}
