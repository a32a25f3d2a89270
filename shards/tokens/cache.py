"""The pools of which this shard is a holder: tokens in use, and tokens kept for the next connection.

Messages in, messages out (`post`); no sockets, no clock.

C1  held = tokens granted by the home and not given back: what the home has in its ledger, but for messages on the way.
    cached = max(0, held - in_use) is derived. While the pool has a cap, nothing is taken beyond held.
C2  Without a cap in_use is counted here and nobody is told, so it may exceed held. When a cap appears, exactly the
    excess is reported, once; so the home knows of every connection, however often the cap came and went.
C3  A tight pool caches nothing: what is not in use has been given back. A pool is made tight by the home's reclaim,
    by a grant that says so, and by a report; a grant makes it loose again, and so does holding nothing.
C4  A token that was not needed for one turn of the sweep goes home.
"""

from collections.abc import Iterator
from typing import Final, cast

from shards.limits.caps import CapRule
from shards.tokens.homes import home_of
from shards.tokens.peers import Peers
from shards.tokens.pool import NO_LIMIT, Pool, Table


class HolderPool(Pool):
    """This shard's part in a pool whose home is another shard."""

    __slots__ = ("held", "home")

    def __init__(self, key: str, rule: CapRule, home: int) -> None:
        super().__init__(key, rule)
        self.home = home
        self.held = 0

    @property
    def cached(self) -> int:
        """Tokens that are here and not in use."""
        return max(0, self.held - self.in_use)


class Cache:
    """All shares of one shard."""

    def __init__(self, shards: int, table: Table, peers: Peers) -> None:
        self._shards: Final = shards
        self._table = table
        self._peers = peers

    def share(self, key: str) -> HolderPool:
        """The share in a pool, known from now on if it was not."""
        share = self._table.pools.get(key)
        if share is None:
            share = HolderPool(key, self._table.rule_of(key), home_of(key, self._shards))
            share.away = int(share.rule.cap is not None)
            self._limit(share)
            self._table.add(share)
        return cast(HolderPool, share)

    def shares(self, home: int) -> Iterator[HolderPool]:
        """The shares in the pools of one home."""
        for pool in self._table.pools.values():
            if isinstance(pool, HolderPool) and pool.home == home:
                yield pool

    def granted(self, key: str, n: int, loose: bool) -> HolderPool:
        """The home granted n tokens; `loose`: what is not needed may be cached."""
        share = self.share(key)
        self._hold(share, n)
        share.tight = not loose
        return share

    def settle(self, share: HolderPool) -> None:
        """Gives back what a tight pool may not cache."""
        if share.tight and share.cached:
            self._give(share, share.cached)

    def tighten(self, key: str) -> int:
        """The home wants back what is cached: makes the pool tight, returns how many tokens that frees. They are
        no longer held, so the caller must send them home."""
        share = self._table.pools.get(key)
        if share is None:
            return 0  # nothing here, or on its way home already
        share.tight = True
        spare = cast(HolderPool, share).cached
        self._hold(cast(HolderPool, share), -spare)
        return spare

    def change(self, share: HolderPool, rule: CapRule) -> None:
        """The pool has another rule. A cap that appears makes use beyond what is held known to the home."""
        self._count_away(share, -1)
        share.rule = rule
        share.away = int(rule.cap is not None)
        self._count_away(share, +1)
        self._limit(share)
        if rule.cap is not None and share.in_use > share.held and self._peers.is_up(share.home):
            self._report(share, share.in_use - share.held)

    def exceed(self, share: HolderPool) -> None:
        """A connection took a token that was not granted: the home hears of it, now or when it comes up."""
        if share.rule.cap is not None and self._peers.is_up(share.home):
            self._report(share, 1)

    def discard(self, share: HolderPool) -> None:
        """Forgets cached tokens: their home died, or may not have heard of a change."""
        share.tight = True
        self._hold(share, -share.cached)

    def rejoin(self, home: int) -> None:
        """A home came up and knows nothing: it hears of all use of its capped pools. Cached tokens are void."""
        for share in self.shares(home):
            self._hold(share, -share.held)
            if share.rule.cap is not None and share.in_use:
                self._report(share, share.in_use)

    def sweep(self, share: HolderPool) -> bool:
        """Sends home what was not needed since the last sweep; False when nothing is left that is worth remembering."""
        spare = share.held - max(share.peak, share.in_use)
        if spare > 0:
            self._give(share, spare)
        share.peak = share.in_use
        return share.in_use > 0 or share.held > 0

    def _report(self, share: HolderPool, n: int) -> None:
        self._peers.report(share.home, share.key, n)
        self._hold(share, n)
        share.tight = True

    def _give(self, share: HolderPool, n: int) -> None:
        self._hold(share, -n)
        self._peers.give(share.home, share.key, n)

    def _hold(self, share: HolderPool, n: int) -> None:
        share.held += n
        if not share.held:
            share.tight = False  # of nothing there is nothing to give back, and whatever comes says how it may be used
        self._table.away_held += n * share.away
        self._limit(share)

    def _limit(self, share: HolderPool) -> None:
        share.limit = NO_LIMIT if share.rule.cap is None else share.held

    def _count_away(self, share: HolderPool, sign: int) -> None:
        self._table.away_held += sign * share.held * share.away
        self._table.away_in_use += sign * share.in_use * share.away

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        shares = [pool for pool in self._table.pools.values() if isinstance(pool, HolderPool)]
        assert self._table.away_held == sum(share.held * share.away for share in shares)
        for share in shares:
            assert share.held >= 0
            assert share.limit == (NO_LIMIT if share.rule.cap is None else share.held)
            assert not (share.tight and share.cached), share.key
            if share.rule.cap is not None and self._peers.is_up(share.home):
                assert share.in_use <= share.held, share.key
