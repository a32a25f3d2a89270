"""The pools of which this shard is a holder: tokens in use, and tokens kept for the next connection.

Messages in, messages out (`post`); no sockets, no clock.

cached_is_derived  held = tokens granted by the home and not given back: what the home has in its ledger, but for messages
    on the way. cached = max(0, held - in_use) is derived. While the pool has a cap, nothing is taken beyond held.
uncapped_use_is_counted  Without a cap in_use is counted here and the home is not told, so in_use may exceed held. When a
    cap appears, exactly the excess is reported, once; so the home knows of every connection, however often the cap came and
    went.
tight_pools_cache_nothing  A tight pool caches nothing: what is not in use has been given back. A pool is made tight by the
    home's reclaim, by a grant that says so, by a report, and when what was recalled is given back; a grant that may be cached ends
    that, and so does holding nothing.
idle_tokens_go_home  A token that was not needed for one turn of the sweep is given back to the home.
"""

from collections.abc import Iterator
from typing import Any, Final

from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.peers import Peers
from shards.tokens.pool import Pool, PoolTable
from shards.tokens.pool_terms import EVEN, PoolMode, Terms


class HolderPool(Pool):
    """This shard's part in a pool whose home is another shard."""

    __slots__ = ("held", "peak")

    def __init__(self, key: str, terms: Terms) -> None:
        super().__init__(key, terms)
        self.held = 0
        self.level = self.peak = EVEN

    @property
    def in_use(self) -> int:
        return self.level - EVEN + self.held

    @property
    def home(self) -> int:
        """The shard that grants its tokens."""
        return self.terms.home

    @property
    def tight(self) -> bool:
        """True if what is not in use is given back (tight_pools_cache_nothing)."""
        return self.terms.tight

    @tight.setter
    def tight(self, tight: bool) -> None:
        if tight is not self.terms.tight:
            self.terms = self.terms.with_mode(PoolMode.TIGHT if tight else PoolMode.OPEN)

    @property
    def cached(self) -> int:
        """Tokens that are here and not in use."""
        return max(0, EVEN - self.level)

    @property
    def beyond(self) -> int:
        """Tokens in use that were not granted."""
        return max(0, self.level - EVEN)


class HolderCache:
    """The pools of one shard whose homes are other shards."""

    def __init__(self, shards: int, table: PoolTable, peers: Peers) -> None:
        self._shards: Final = shards
        self._table = table
        self._peers = peers

    def pool_of(self, key: str) -> HolderPool:
        """This shard's part of a pool; the pool is known from now on."""
        known: Any = self._table.pools.get(key)
        if known is not None:
            pool: HolderPool = known  # a cast() would be called for every token
            if self._table.changing is not None:
                self._table.changing(pool)
            if pool.terms.recalled:
                self.return_recalled(pool)
        else:
            pool = HolderPool(key, self._table.terms_of(key, home_of(key, self._shards)))
            self._table.add(pool)
        return pool

    def pools_of(self, home: int) -> Iterator[HolderPool]:
        """The pools here that are at home on one shard."""
        for pool in self._table.pools.values():
            if isinstance(pool, HolderPool) and pool.terms.home == home:
                yield pool

    def add_granted(self, key: str, n: int, may_cache: bool) -> HolderPool:
        """The home granted n tokens; `may_cache`: tokens that are not in use may be cached."""
        pool = self.pool_of(key)
        self._hold(pool, n)
        pool.tight = not may_cache
        return pool

    def return_recalled(self, pool: HolderPool) -> None:
        """Gives back what the home has recalled (recalled_is_not_at_hand). What is in use may be beyond the cap, so it is not to be
        cached either, until the home says so."""
        if pool.cached:
            self._give(pool, pool.cached)
        pool.terms = pool.terms.with_mode(PoolMode.TIGHT if pool.held else PoolMode.OPEN)

    def return_if_tight(self, pool: HolderPool) -> None:
        """Gives cached tokens back to the home if the pool is tight."""
        if pool.tight and pool.cached:
            self._give(pool, pool.cached)

    def tighten(self, key: str) -> int:
        """The home reclaims cached tokens: makes the pool tight and returns how many tokens were cached. They are no
        longer held, so the caller must send them home."""
        pool: Any = self._table.pools.get(key)
        if pool is None:
            return 0  # nothing here, or on its way home already
        pool.tight = True
        spare: int = pool.cached
        self._hold(pool, -spare)
        return spare

    def change_rule(self, pool: HolderPool, rule: CapRule) -> None:
        """The pool has another rule. A cap that appears makes use beyond what is held known to the home."""
        if pool.terms.recalled:
            self.return_recalled(pool)
        before = pool.terms.rule
        if (before.cap is None) == (rule.cap is None):
            pool.rule = rule  # the tokens here limit it as before, or nothing does
            return
        self._count_away(pool, -1)
        pool.rule = rule
        self._count_away(pool, +1)
        if rule.cap is not None and pool.beyond and self._peers.is_up(pool.home):
            self._report(pool, pool.beyond)

    def report_forced(self, pool: HolderPool, n: int) -> None:
        """Connections took n tokens that were not granted: the home hears of it, now or when it comes up."""
        if pool.terms.rule.cap is not None and self._peers.is_up(pool.home):
            self._report(pool, n)

    def report_all(self, home: int) -> None:
        """A home came up, or is linked again: it hears of all use that it has to count. Cached tokens are void."""
        for pool in self.pools_of(home):
            used = pool.in_use if pool.terms.rule.cap is not None else min(pool.in_use, pool.held)
            self._hold(pool, -pool.held)
            if used:
                self._report(pool, used)

    def sweep(self, pool: HolderPool) -> bool:
        """Gives back the tokens that were not needed since the last sweep. False when the pool can be forgotten: no token
        of it is in use or held."""
        if pool.terms.recalled:
            self.return_recalled(pool)
        spare = EVEN - max(pool.peak, pool.level)
        if spare > 0:
            self._give(pool, spare)
        pool.peak = pool.level
        return pool.in_use > 0 or pool.held > 0

    def _report(self, pool: HolderPool, n: int) -> None:
        self._peers.outbox.report(pool.home, pool.key, n)
        self._hold(pool, n)
        pool.tight = True

    def _give(self, pool: HolderPool, n: int) -> None:
        self._hold(pool, -n)
        self._peers.outbox.give(pool.home, pool.key, n)

    def _hold(self, pool: HolderPool, n: int) -> None:
        pool.held += n
        pool.level -= n
        pool.peak -= n
        if not pool.held:
            pool.tight = False  # nothing is held, so nothing is to be given back; the next grant sets `tight` again
        self._table.away_held += n * pool.terms.away

    def _count_away(self, pool: HolderPool, sign: int) -> None:
        self._table.away_held += sign * pool.held * pool.terms.away
        self._table.away_in_use += sign * pool.in_use * pool.terms.away

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        pools = [pool for pool in self._table.pools.values() if isinstance(pool, HolderPool)]
        assert self._table.away_held == sum(pool.held * pool.terms.away for pool in pools)
        for pool in pools:
            assert pool.held >= 0
            assert not (pool.tight and pool.cached), pool.key
            if pool.terms.rule.cap is not None and self._peers.is_up(pool.home):
                assert pool.in_use <= pool.held, pool.key
