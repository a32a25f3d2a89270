"""The pools of which connections in flight on one shard give up their tokens, as the home recalled those of a whole kind.

in_flight_beyond_a_cut  Of pools with another home it concerns all of the kind, as this shard does not know how many tokens are out.
    Of those at home here it concerns the ones of which more is out than their cap.
"""

from collections.abc import Iterable, Mapping

from shards.tokens.attempt_queues import Attempt
from shards.tokens.pool import Pool
from shards.tokens.pool_terms import HERE


class RecalledInFlight:
    """Pools recalled in this pass on the shard `me`; `pools` are all that it knows. `kinds` is empty if none were."""

    def __init__(self, me: int, pools: Mapping[str, Pool]) -> None:
        self._me = me
        self._pools = pools
        self.kinds: set[tuple[int, str | None]] = set()  # home, kind of its pools or all

    def add(self, home: int, kind: str | None) -> None:
        """A home recalls its pools of a kind, or all of them."""
        self.kinds.add((home, kind))

    def take(self, waiting: Iterable[Attempt], suspended: Iterable[tuple[tuple[str, ...], bool]]) -> set[str]:
        """The pools that were recalled, of which these hold tokens: connections that wait, and the pools of suspended ones with
        whether they still hold them. What was recalled is forgotten."""
        if not self.kinds:
            return set()
        held = {key for attempt in waiting for key in attempt.taken}
        held.update(key for pools, is_held in suspended if is_held for key in pools)
        found = {key for key in held if self._is_recalled(self._pools[key])}
        self.kinds.clear()
        return found

    def _is_recalled(self, pool: Pool) -> bool:
        terms = pool.terms
        if terms.home == HERE:
            return (self._me, terms.kind) in self.kinds and pool.level > terms.limit
        return (terms.home, terms.kind) in self.kinds or (terms.home, None) in self.kinds
