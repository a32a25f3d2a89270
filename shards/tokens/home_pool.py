"""Pools at their home: token counts, modes, and waiting borrows. home_ledger.py decides when they change."""

from collections import deque
from typing import Final

from shards.limits.caps import CapRule
from shards.tokens.pool import Pool
from shards.tokens.pool_terms import PoolMode, Terms

SEVERAL: Final = -1
_MOST: Final = (1 << 30) - 1  # no in_use is above it, and ints of one digit compare faster


# "Dry": no token is free while a connection waits, or more tokens are out than the cap allows.
TRANSITIONS: Final = (
    (PoolMode.OPEN, PoolMode.RECLAIMING),  # dry
    (PoolMode.OPEN, PoolMode.TIGHT),  # dry, and no holder has any
    (PoolMode.RECLAIMING, PoolMode.TIGHT),  # all have answered
    (
        PoolMode.TIGHT,
        PoolMode.RECLAIMING,
    ),  # more out than the cap allows: connections in flight give theirs up, too
    (PoolMode.TIGHT, PoolMode.OPEN),  # half empty, or no cap any more
)


class HomePool(Pool):
    """A pool at its home.

    lent     tokens out to other shards, all together
    holder   the shard that has all of them, SEVERAL when lent_tokens.py has the shares; means nothing while none is out
    """

    __slots__ = ("holder", "lent")
    peak = _MOST  # no peak is remembered: a home keeps its tokens

    def __init__(self, key: str, terms: Terms) -> None:
        super().__init__(key, terms)
        self.lent = 0
        self.holder = SEVERAL

    @property
    def in_use(self) -> int:
        return self.level - self.lent

    @property
    def out(self) -> int:
        """Tokens that are not free: in use at home, or lent."""
        return self.level

    def lend(self, n: int) -> None:
        """n more tokens are out to other shards; fewer, where n is negative."""
        self.lent += n
        self.level += n

    def may_cache(self, shards: int) -> bool:
        """True if holders may keep what they don't use: there must be more tokens than shards (the RFC's rule)."""
        cap = self.terms.rule.cap
        return not self.terms.tight and (cap is None or cap > shards)

    def is_roomy(self, shards: int) -> bool:
        """True if a tight pool may be cached again: it is half empty."""
        cap = self.terms.rule.cap
        return cap is None or (cap > shards and 2 * self.out <= cap)

    def enter(self, mode: PoolMode) -> None:
        """Changes the mode; anything but a transition of the table is a bug."""
        if mode is self.mode:
            return
        if (self.mode, mode) not in TRANSITIONS:
            raise RuntimeError(f"{self.key}: {self.mode.value} can't become {mode.value}")
        self.terms = self.terms.with_mode(mode)


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
    returns   the number of returns of the pool that was read before that probe was sent (full_pools.py)
    """

    __slots__ = ("awaiting", "borrows", "covered", "returns")

    def __init__(self) -> None:
        self.borrows: deque[PendingBorrow] = deque()
        self.awaiting: dict[int, int] = {}
        self.covered = 0
        self.returns: int | None = None

    def refusable(self, rule: CapRule) -> bool:
        """True if connections wait that a full pool refuses under this rule."""
        return not rule.wait or any(borrow.at_once for borrow in self.borrows)
