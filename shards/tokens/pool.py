"""A pool as one shard sees it, whether it is at home here (home_ledger.py) or elsewhere (holder_cache.py).

Both kinds look the same to the accept path, which compares two numbers and never asks where the home is:

taken_below_limit_only  A connection may take a token of a pool here at once, if and only if pool.level < pool.terms.limit. The
    level of a pool at home is the number of tokens that are not free, its limit the cap. The level of another pool is EVEN and
    what is in use, less what was granted, and its limit is EVEN. Both rise and fall by one with each token, and a change of the
    cap of many pools changes none of their levels.
tight_pools_keep_nothing  A token released to a pool whose terms are `tight` is not kept here: the caller reports it to the
    home (ConnectionsInFlight.returned).

All pools of a shard are in one PoolTable, so that a decision costs one look-up per pool.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Final, NamedTuple, Protocol

from shards.limits.caps import OBSERVED, CapRule
from shards.tokens.pool_terms import HERE, PoolMode, Terms, TermsTable

MANY: Final = ("ip", f"{OBSERVED}ip", "user", f"{OBSERVED}user")
"""The kinds of pool of which there may be a million."""
_OF_MANY: Final = tuple(f"{kind}:" for kind in MANY)


class Admitted:
    """The decision to let a connection in; there is one, ADMITTED, so that deciding allocates nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ADMITTED"


ADMITTED: Final = Admitted()


class Refused(NamedTuple):
    """The decision to turn a connection away: by which pool, under which rule of which configuration version.

    `unavailable`: not by the rule; the pool's home did not answer within the deadline.
    """

    pool: str
    rule: CapRule
    version: int
    unavailable: bool = False


class TokenWaiter(Protocol):
    """A connection that asked for tokens and has to wait for the decision; compared by identity, so it must be hashable."""

    def decided(self, decision: Admitted | Refused) -> None:
        """The decision, once, unless cancelled first. May call take(), release() and cancel()."""


class Pool:
    """The part of a pool that take() and release() need. There may be a million pools, so it has no field that can be done without.

    level   rises with each token that is taken here, up to the limit of its terms (taken_below_limit_only)
    terms   what it has in common with others: its rule, its home, its mode, its limit
    peak    the highest level since the last sweep; tokens beyond it may be given back to the home
    """

    __slots__ = ("key", "level", "terms")
    peak: int

    def __init__(self, key: str, terms: Terms) -> None:
        self.key = key
        self.terms = terms
        self.level = 0

    @property
    def in_use(self) -> int:
        """Tokens held by connections of this shard, open or in flight."""
        raise NotImplementedError

    @property
    def mode(self) -> PoolMode:
        """The use that may be made of its tokens that are not needed here."""
        return self.terms.mode

    @property
    def rule(self) -> CapRule:
        """The rule that limits it."""
        return self.terms.rule

    @rule.setter
    def rule(self, rule: CapRule) -> None:
        self.terms = self.terms.with_rule(rule)


class TokenTotals(NamedTuple):
    """Tokens of all pools on one shard, and how many pools it knows."""

    in_use: int
    cached: int
    pools: int


class PoolTable:
    """The pools one shard knows, running totals over them, and the wheel that visits each once per turn.

    The wheel exists because a sweep over a million pools at once would stop the loop for a second: each tick visits
    only those that were put on it one turn ago.
    """

    TICKS: Final = 16

    def __init__(self, rule_of: Callable[[str], CapRule]) -> None:
        self.rule_of = rule_of
        self.terms = TermsTable()
        self.changing: Callable[[Pool], None] | None = None  # brings a pool's rule up to date: newest_rule_decides
        self.pools: dict[str, Pool] = {}
        self.few: dict[str, Pool] = {}  # all but those of MANY
        self.in_use = 0  # tokens in use, all pools
        self.away_in_use = 0  # of those, of pools with a cap and a home elsewhere
        self.away_held = 0  # tokens granted to this shard in such pools
        self.ticks = 0  # of the wheel, TICKS a turn
        self._wheel: deque[list[Pool]] = deque([] for _ in range(self.TICKS))
        self._next_turn_s: float | None = None

    def begin_change(self, refresh: Callable[[Pool], None]) -> None:
        """Until `end_change`, a caller that asks for a pool by its key calls `refresh` first (newest_rule_decides)."""
        self.changing = refresh

    def end_change(self) -> None:
        """Every pool has the newest rule."""
        self.changing = None

    def add(self, pool: Pool) -> None:
        """Adds a pool; `due` returns it after one turn of the wheel."""
        self.pools[pool.key] = pool
        if not pool.key.startswith(_OF_MANY):
            self.few[pool.key] = pool
        self._wheel[-1].append(pool)

    def terms_of(self, key: str, home: int = HERE) -> Terms:
        """The terms of a pool that is new here."""
        return self.terms.of(key.partition(":")[0], self.rule_of(key), home)

    def forget(self, pool: Pool) -> None:
        """Removes a pool that `due` just returned."""
        del self.pools[pool.key]
        self.few.pop(pool.key, None)

    def matching(self, names: Collection[str]) -> list[Pool]:
        """The pools of these keys ("ip:10.0.0.1") and of these kinds ("ip": all addresses, "broker": all of them)."""
        found = {name: self.pools[name] for name in names if name in self.pools}
        kinds = {name for name in names if ":" not in name}
        if kinds:
            candidates = self.few if kinds.isdisjoint(MANY) else self.pools
            found.update((key, pool) for key, pool in candidates.items() if key.partition(":")[0] in kinds)
        return list(found.values())

    def all_as_of_now(self) -> Iterator[Pool]:
        """Every pool that is known now, though it may be forgotten before its turn; later ones may be among them."""
        return chain.from_iterable(list(self._wheel))

    def keep(self, pool: Pool) -> None:
        """Puts a pool that `due` just returned back on the wheel."""
        pool.terms.seen = self.ticks
        self._wheel[-1].append(pool)

    def due(self, now_s: float, turn_s: float) -> list[Pool]:
        """The pools whose turn it is; the caller keeps or forgets each."""
        if self._next_turn_s is None:
            self._next_turn_s = now_s + turn_s / self.TICKS
        found: list[Pool] = []
        for _ in range(self.TICKS):  # a late tick catches up at most one turn
            if now_s < self._next_turn_s:
                break
            self._next_turn_s += turn_s / self.TICKS
            self.ticks += 1
            self._wheel.append([])
            found += self._wheel.popleft()
        else:
            self._next_turn_s = now_s + turn_s / self.TICKS
        self.terms.tick = self.ticks
        return found

    def visited(self) -> None:
        """All pools that `due` returned were kept or forgotten."""
        self.terms.forget_unseen(self.ticks - self.TICKS)

    def occupy(self, pool: Pool, n: int = 1) -> None:
        """Takes n tokens of one pool, off the fast path."""
        pool.level += n
        if pool.level > pool.peak:
            pool.peak = pool.level  # type: ignore[misc]  # a HolderPool has the slot, a HomePool never gets here
        self.in_use += n
        self.away_in_use += n * pool.terms.away

    def vacate(self, pool: Pool, n: int = 1) -> None:
        """Gives n tokens of one pool back, off the fast path. If the pool is tight the caller reports them to the home
        (tight_pools_keep_nothing)."""
        pool.level -= n
        self.in_use -= n
        self.away_in_use -= n * pool.terms.away

    def totals(self) -> TokenTotals:
        """Three sums, kept up to date as tokens move: O(1) for any number of pools. `cached` counts capped pools only.

        While a home is away more may be in use of its pools than is held; that is taken off `cached`, down to 0.
        """
        return TokenTotals(self.in_use, max(0, self.away_held - self.away_in_use), len(self.pools))

    def check(self) -> None:
        """Raises AssertionError when a running total is not the sum of its parts."""
        pools = self.pools.values()
        assert self.in_use == sum(pool.in_use for pool in pools)
        assert self.away_in_use == sum(pool.in_use * pool.terms.away for pool in pools)
        assert all(pool.in_use >= 0 for pool in pools)
        assert all(self.terms.knows(terms) for terms in {pool.terms for pool in pools})  # terms_in_use_are_known
        swept = [pool for tick in self._wheel for pool in tick]
        assert len(swept) == len(self.pools)
        assert all(self.pools.get(pool.key) is pool for pool in swept)
