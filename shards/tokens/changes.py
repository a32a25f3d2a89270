"""A change of the rules, carried to the pools of one shard: to those that are waited for at once, to the others in pieces.

newest_rule_decides  Whatever is decided about a pool is decided by the rule of the newest version: PoolTable.changing
    brings it up to date when it is asked for by its key, and the pools that are waited for have their rules at once. Only
    what needs no decision, a token at hand or one that is given back, may go on under an earlier rule.
changes_go_in_pieces  One piece is PIECE pools, so the loop serves everything else in between, however many addresses are
    tracked.
applied_when_all_pools_have_it  A version is applied here, and peers hear of it (tokens.py, done_when_all_peers_confirm),
    when every pool has its rule or that of a later version.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final

from shards.limits.caps import UNLIMITED
from shards.tokens.cache import Cache, HolderPool
from shards.tokens.home_ledger import Ledger
from shards.tokens.home_pool import HomePool
from shards.tokens.peers import Peers
from shards.tokens.pool import MANY, Pool, PoolTable
from shards.tokens.pool_terms import terms_of
from shards.tokens.waiting import Waiting

PIECE: Final = 3000

PendingVersion = tuple[int, Callable[[], None], bool]
"""A version, what to call when it is done, and whether every pool has to be looked at for it."""


class Changes:
    """The versions on their way to the pools of one shard. `on_applied(version, done)` is told each version that is applied
    (applied_when_all_pools_have_it), in order; `version` is the last of them."""

    def __init__(
        self,
        version: int,
        table: PoolTable,
        cache: Cache,
        ledger: Ledger,
        waiting: Waiting,
        peers: Peers,
        *,
        piece: int,
        on_applied: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self.version = version
        self._table = table
        self._cache = cache
        self._ledger = ledger
        self._waiting = waiting
        self._peers = peers
        self._piece: Final = piece
        self._on_applied = on_applied
        self._rest: Iterator[Pool] | None = None  # the pools that the sweep under way has not looked at
        self._of_this_sweep: list[PendingVersion] = []  # the versions that are applied when it ends
        self._of_the_next: deque[PendingVersion] = deque()  # the versions that came since it began

    @property
    def under_way(self) -> bool:
        """True if some pool may still have the rule of an earlier version."""
        return self._rest is not None

    def begin(self, version: int, done: Callable[[], None], names: Collection[str] | None) -> None:
        """`rule_of` speaks for `version` from now on; `names` are the pools and kinds of pool that may have another rule."""
        table = self._table
        is_wide = names is None or any(kind in names for kind in MANY)
        if not is_wide or len(table.pools) <= self._piece:
            self._change(list(table.pools.values()) if names is None else table.matching(names))
            if self._rest is None:
                self._note_applied(version, done)
            else:
                self._of_the_next.append((version, done, False))
            return
        self._of_the_next.append((version, done, True))
        if self._rest is None:
            self._sweep()
        waited_for = dict.fromkeys((*table.few, *sorted(self._ledger.contended), *self._waiting.queues.pools()))
        self._change([table.pools[key] for key in waited_for])

    def go_on(self) -> bool:
        """The next piece of the sweep under way, if any; True while something is left to do."""
        if self._rest is None:
            return False
        piece = list(islice(self._rest, self._piece))
        for pool in self._refresh_plain(piece):
            if self._table.pools.get(pool.key) is pool:  # else it was forgotten
                self.refresh(pool)
        if len(piece) == self._piece:
            return True
        self._rest = None
        self._table.end_change()
        for version, done, _ in self._of_this_sweep:
            self._note_applied(version, done)
        while self._of_the_next and not self._of_the_next[0][2]:
            self._note_applied(*self._of_the_next.popleft()[:2])
        if self._of_the_next:
            self._sweep()
        return self.under_way

    def refresh(self, pool: Pool) -> None:
        """A pool that nobody waits for gets the rule of the newest version."""
        if not self._renew(pool):
            return
        if isinstance(pool, HomePool):
            self._ledger.enforce(pool)
        elif isinstance(pool, HolderPool) and self._peers.is_dead(pool.home):
            # It can't revoke what was taken under the earlier rule until now (cuts_revoke_in_flight).
            self._waiting.discard(pool)

    def _refresh_plain(self, piece: list[Pool]) -> list[Pool]:
        """Gives plain pools their rule, at a fraction of what refresh() costs: those that go from a cap to a cap under which
        nothing has to be revoked, served or reclaimed. Returns the others, as they were."""
        if self._ledger.blocked:
            return piece
        rest: list[Pool] = []
        rule_of = self._table.rule_of
        before = after = terms_of(UNLIMITED)
        for pool in piece:
            terms, rule = pool.terms, rule_of(pool.key)
            if terms is not before or rule is not after.rule:  # nearly all have the same of both
                before, after = terms, terms_of(rule, terms.home, terms.mode)
            if terms.tight or rule.cap is None or terms.rule.cap is None:
                rest.append(pool)
            elif isinstance(pool, HolderPool):
                pool.terms = after  # its limit is what it holds
            elif isinstance(pool, HomePool) and pool.in_use + pool.lent <= rule.cap:
                pool.terms = after
                pool.limit = rule.cap - pool.lent
            else:
                rest.append(pool)
        return rest

    def _sweep(self) -> None:
        """A look at every pool begins; it serves all versions that have come."""
        self._of_this_sweep, self._of_the_next = list(self._of_the_next), deque()
        self._rest = self._table.all_as_of_now()
        self._table.begin_change(self.refresh)

    def _change(self, pools: list[Pool]) -> None:
        """Gives each of these pools its rule, and only then serves, reclaims and revokes by the new rules."""
        for pool in [pool for pool in pools if self._renew(pool)]:
            if isinstance(pool, HomePool):
                self._ledger.enforce(pool)
            elif isinstance(pool, HolderPool):
                self._waiting.serve(pool)

    def _renew(self, pool: Pool) -> bool:
        """Gives a pool the rule of the newest version; whether that is another one."""
        rule = self._table.rule_of(pool.key)
        if rule == pool.terms.rule:
            return False
        self._waiting.renew(pool)
        if isinstance(pool, HomePool):
            self._ledger.change(pool, rule)
        elif isinstance(pool, HolderPool):
            self._cache.change(pool, rule)
        return True

    def _note_applied(self, version: int, done: Callable[[], None]) -> None:
        self.version = version
        self._on_applied(version, done)
