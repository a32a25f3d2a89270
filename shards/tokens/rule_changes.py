"""A change of the rules, carried to the pools of one shard.

From one cap to another, all pools of a kind that no setting names have their rule by a change of the few terms that they have in
common (pool_terms.py), however many they are. Other changes that concern more pools than one piece have to be carried to each of
them, as what is in use without a cap is not known to its home, and a network's pools are not told apart. Pools for which
connections wait get their rule at once, the others in pieces.

cut_for_all_recalls  A home that cuts the cap of a whole kind does not look for the pools of which more is out. It recalls them
    all, by one message to each holder, before it says `sync`; it grants by the new cap from then on, and every grant under the
    earlier one went out before on the same link. So what was granted by an earlier cap is in use by open connections, or was
    recalled.
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
from typing import Final, NamedTuple

from shards.limits.caps import GENERAL
from shards.tokens.connections_in_flight import ConnectionsInFlight
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import HomePool
from shards.tokens.peers import Peers
from shards.tokens.pool import MANY, Pool, PoolTable
from shards.tokens.pool_terms import HERE, Terms

PIECE: Final = 3000

PendingVersion = tuple[int, Callable[[], None], bool]
"""A version, what to call when it is done, and whether every pool has to be looked at for it."""


class _GeneralChange(NamedTuple):
    """New general rules. `terms`: those that have another rule now; `kinds`: those of which each pool has to be looked at."""

    terms: list[Terms]
    kinds: list[str]


class RuleChanges:
    """The versions on their way to the pools of one shard. `on_applied(version, done)` is told each version that is applied
    (applied_when_all_pools_have_it), in order; `version` is the last of them."""

    def __init__(
        self,
        version: int,
        table: PoolTable,
        cache: HolderCache,
        ledger: HomeLedger,
        in_flight: ConnectionsInFlight,
        peers: Peers,
        *,
        piece: int,
        on_applied: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self.version = version
        self._table = table
        self._cache = cache
        self._ledger = ledger
        self._in_flight = in_flight
        self._peers = peers
        self._piece: Final = piece
        self._on_applied = on_applied
        self._general = {kind: table.rule_of(f"{kind}:") for kind in MANY}
        """The rule of the pools of each kind that no setting names."""
        self._rest: Iterator[Pool] | None = None  # the pools that the sweep under way has not looked at
        self._of_this_sweep: list[PendingVersion] = []  # the versions that are applied when it ends
        self._of_the_next: deque[PendingVersion] = deque()  # the versions that came since it began

    @property
    def under_way(self) -> bool:
        """True if some pool may still have the rule of an earlier version."""
        return self._rest is not None

    def begin(self, version: int, done: Callable[[], None], names: Collection[str] | None) -> None:
        """`rule_of` speaks for `version` from now on; `names` are the pools and kinds of pool that may have another rule
        (Tokens.apply)."""
        table = self._table
        changed, kinds = self._change_general(names)
        is_wide = names is None or any(kind in names or kind in kinds for kind in MANY)
        if not is_wide or len(table.pools) <= self._piece:
            self._change(list(table.pools.values()) if names is None else table.matching((*names, *kinds)))
            self._enforce_contended(changed)
            if self._rest is None:
                self._note_applied(version, done)
            else:
                self._of_the_next.append((version, done, False))
            return
        self._of_the_next.append((version, done, True))
        if self._rest is None:
            self._sweep()
        waited_for = dict.fromkeys((*table.few, *sorted(self._ledger.contended), *self._in_flight.queues.pools()))
        self._change([table.pools[key] for key in waited_for])
        self._enforce_contended(changed)

    def continue_sweep(self) -> bool:
        """The next piece of the sweep under way, if any; True while something is left to do."""
        if self._rest is None:
            return False
        piece = list(islice(self._rest, self._piece))
        for pool in self._refresh_plain(piece):
            if self._table.pools.get(pool.key) is pool:  # else the pool was forgotten
                self.refresh_rule(pool)
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

    def refresh_rule(self, pool: Pool) -> None:
        """A pool that no connection waits for gets the rule of the newest version."""
        if self._renew(pool) and isinstance(pool, HomePool):
            self._ledger.enforce(pool)

    def _refresh_plain(self, piece: list[Pool]) -> list[Pool]:
        """Gives plain pools their rule, at a fraction of what refresh_rule() costs: those that go from a cap to a cap under which
        nothing has to be revoked, served or reclaimed. Returns the others, as they were."""
        if self._ledger.blocked:
            return piece
        rest: list[Pool] = []
        rule_of = self._table.rule_of
        before: Terms | None = None
        after: Terms | None = None
        for pool in piece:
            terms, rule = pool.terms, rule_of(pool.key)
            if terms is not before or after is None or rule is not after.rule:  # nearly all have the same of both
                before, after = terms, terms.with_rule(rule)
            if terms.tight or terms.recalled or rule.cap is None or terms.rule.cap is None:
                rest.append(pool)
            elif isinstance(pool, HolderPool) or pool.level <= rule.cap:
                pool.terms = after
            else:
                rest.append(pool)
        return rest

    def _change_general(self, names: Collection[str] | None) -> _GeneralChange:
        """Gives the pools that no setting names their rule, for the kinds of which `names` says so."""
        changed: list[Terms] = []
        kinds: list[str] = []
        for kind in MANY:
            before, rule = self._general[kind], self._table.rule_of(f"{kind}:")
            self._general[kind] = rule
            if names is None or f"{GENERAL}{kind}" not in names:
                continue
            if before.cap is None or rule.cap is None:
                kinds.append(kind)
                continue
            of_kind = self._table.terms.change(kind, before, rule)
            changed += of_kind
            if rule.cap < before.cap and any(terms.home == HERE for terms in of_kind):
                self._recall(kind)
        return _GeneralChange(changed, kinds)

    def _recall(self, kind: str) -> None:
        """The cap of all pools of a kind at home here was cut (cut_for_all_recalls)."""
        self._peers.outbox.post_all(("recall", kind))
        self._in_flight.recall(self._peers.me, kind)

    def _enforce_contended(self, changed: list[Terms]) -> None:
        """Pools of these terms at home here, for which connections wait, are served or reclaimed by their new rule."""
        if changed:
            for key in sorted(self._ledger.contended):
                pool = self._table.pools[key]
                if isinstance(pool, HomePool) and any(pool.terms is terms for terms in changed):
                    self._ledger.enforce(pool)

    def _sweep(self) -> None:
        """A look at every pool begins; it serves all versions that have come."""
        self._of_this_sweep, self._of_the_next = list(self._of_the_next), deque()
        self._rest = self._table.all_as_of_now()
        self._table.begin_change(self.refresh_rule)

    def _change(self, pools: list[Pool]) -> None:
        """Gives each of these pools its rule, and only then serves, reclaims and revokes by the new rules."""
        for pool in [pool for pool in pools if self._renew(pool)]:
            if isinstance(pool, HomePool):
                self._ledger.enforce(pool)
            elif isinstance(pool, HolderPool):
                self._in_flight.serve_waiting(pool)

    def _renew(self, pool: Pool) -> bool:
        """Gives a pool the rule of the newest version. True if it had another one."""
        rule = self._table.rule_of(pool.key)
        if rule == pool.terms.rule:
            return False
        if isinstance(pool, HomePool):
            self._ledger.change_rule(pool, rule)
        elif isinstance(pool, HolderPool):
            self._cache.change_rule(pool, rule)
        return True

    def _note_applied(self, version: int, done: Callable[[], None]) -> None:
        self.version = version
        self._on_applied(version, done)
