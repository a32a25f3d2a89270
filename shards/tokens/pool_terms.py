"""The terms that many pools have in common, kept once: a million addresses have one rule, a few homes and three modes between them.

So a change of the general rule of a kind of pools is a change of a few terms, however many pools have them, and what a home recalls
of a kind is at hand no more at once.

terms_are_shared  Pools of one kind, rule, home and mode have the same terms, but for those that were recalled. A pool that gets
    another rule alone, or another mode, gets other terms; `TermsTable.change` gives other rules to terms.
recalled_is_not_at_hand  No connection takes a token that is cached of a pool with `recalled` terms. They are given back before
    a connection or a grant comes to the pool, or by the wheel, and then the pool gets terms that are not recalled
    (HolderCache.return_recalled). It gets such, too, when it becomes tight: then nothing is cached.
terms_in_use_are_known  A pool's terms are in the table, so that `change` and `recall` reach them. Terms that were not handed out
    for one turn of the wheel, and of which it met no pool, are forgotten.
"""

from enum import StrEnum
from typing import Final

from shards.limits.caps import CapRule

HERE: Final = -1
NO_LIMIT: Final = 1 << 62
EVEN: Final = 192
"""The level of a holder's pool when all its tokens are in use. Not 0, as CPython keeps the ints from -5 to 256 once: so the levels
of most pools take no memory."""


class PoolMode(StrEnum):
    """The uses that a shard may make of tokens of a pool that it doesn't need. A holder is not RECLAIMING."""

    OPEN = "open"  # cache them
    RECLAIMING = "reclaiming"  # holders were asked to send them home, and not all have answered
    TIGHT = "tight"  # no holder caches any: tokens that are out are in use, or on the way


class Terms:
    """The kind of a pool, its rule, the shard that is its home (HERE: this one), its mode, and what follows from them.

    limit     how high the pool's level may rise without asking the home (pool.py)
    tight     released tokens may not be cached here
    away      1 if the pool has a cap and its home is another shard, 0 if not
    recalled  the home has recalled what is cached
    seen      the tick of the wheel at which the wheel met a pool with these terms, or they were handed out, last
    """

    __slots__ = ("away", "home", "kind", "limit", "mode", "recalled", "rule", "seen", "table", "tight")

    def __init__(self, table: "TermsTable", kind: str, rule: CapRule, home: int, mode: PoolMode) -> None:
        self.table = table
        self.kind = kind
        self.rule = rule
        self.home = home
        self.mode = mode
        self.tight = mode is not PoolMode.OPEN
        self.recalled = False
        self.seen = 0
        self.away = int(home != HERE and rule.cap is not None)
        self.limit = self.derived_limit()

    def with_rule(self, rule: CapRule) -> "Terms":
        """The terms of a pool that gets another rule."""
        return self.table.of(self.kind, rule, self.home, self.mode)

    def with_mode(self, mode: PoolMode) -> "Terms":
        """The terms of a pool that gets another mode, or the same (recalled_is_not_at_hand)."""
        return self.table.of(self.kind, self.rule, self.home, mode)

    def derived_limit(self) -> int:
        """`limit`, as it follows from the rest."""
        cap = self.rule.cap
        if self.recalled:
            return -NO_LIMIT
        if cap is None:
            return NO_LIMIT
        if self.home != HERE:
            return EVEN
        return 0 if self.table.blocked else cap


class TermsTable:
    """The terms of one shard's pools. `blocked`: nothing of capped pools at home here is granted (no_grant_before_reports)."""

    def __init__(self) -> None:
        self.blocked = False
        self.tick = 0
        self._known: list[Terms] = []
        self._shared: dict[tuple[str, CapRule, int, PoolMode], Terms] = {}  # without those that were recalled

    def of(self, kind: str, rule: CapRule, home: int = HERE, mode: PoolMode = PoolMode.OPEN) -> Terms:
        """The terms of all pools that have these in common."""
        key = (kind, rule, home, mode)
        terms = self._shared.get(key)
        if terms is None:
            terms = self._shared[key] = Terms(self, kind, rule, home, mode)
            self._known.append(terms)
        terms.seen = self.tick
        return terms

    def change(self, kind: str, before: CapRule, rule: CapRule) -> list[Terms]:
        """All pools of a kind with the rule `before` get this one; both have a cap. Returns the terms that have it now."""
        changed = [terms for terms in self._known if terms.kind == kind and terms.rule == before]
        for terms in changed:
            terms.rule = rule
            terms.limit = terms.derived_limit()
        self._share()
        return changed

    def recall(self, home: int, kind: str | None) -> None:
        """Tokens cached of the pools of a home, of one kind or of all, are at hand no more."""
        for terms in self._known:
            if terms.home == home and kind in (None, terms.kind):
                terms.recalled = True
                terms.limit = -NO_LIMIT
        self._share()

    def unblock(self) -> None:
        """Tokens of capped pools at home here may be granted from now on."""
        self.blocked = False
        for terms in self._known:
            terms.limit = terms.derived_limit()

    def forget_unseen(self, since: int) -> None:
        """Forgets the terms that were not seen since a tick."""
        self._known = [terms for terms in self._known if terms.seen >= since]
        self._share()

    def _share(self) -> None:
        self._shared = {(each.kind, each.rule, each.home, each.mode): each for each in self._known if not each.recalled}

    def knows(self, terms: Terms) -> bool:
        """For check()."""
        return any(each is terms for each in self._known)
