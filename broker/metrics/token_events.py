"""The journal's events of tokens that move between shards: `grant` and `reclaim`, written by a pool's home."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.journal.writer import JournalWriter
from broker.metrics.shard_counters import ShardCounters

_POOLS_PER_EVENT = 1000  # of the pools of a dead shard


class TokenEvents:
    """The token events of shard `shard`. `version()` is the configuration version in force for its tokens."""

    def __init__(self, shard: int, journal: JournalWriter, counters: ShardCounters, version: Callable[[], int]) -> None:
        self._shard = shard
        self._journal = journal
        self._counters = counters
        self._version = version

    def granted(self, pool: str, peer: int, tokens: int, is_reported: bool) -> None:
        """Shard `peer` holds so many tokens more. `is_reported`: it has taken them unasked, and says so now."""
        if not is_reported and peer != self._shard:
            self._counters.add("grants", tokens)
        detail = {"pool": pool, "to": peer, "tokens": tokens}
        self._add("grant", {**detail, "reported": True} if is_reported else detail)

    def reclaimed(self, pool: str, peer: int, tokens: int, is_asked_for: bool) -> None:
        """Shard `peer` has given so many tokens back."""
        detail = {"pool": pool, "from": peer, "tokens": tokens}
        self._add("reclaim", detail if is_asked_for else {**detail, "unasked": True})

    def lost(self, peer: int, pools: Mapping[str, int]) -> None:
        """Shard `peer` died: so many tokens of each pool are free again."""
        each = list(pools.items())
        for start in range(0, len(each), _POOLS_PER_EVENT):
            lost = dict(each[start : start + _POOLS_PER_EVENT])
            self._add("reclaim", {"from": peer, "tokens": sum(lost.values()), "lost": lost})

    def _add(self, kind: str, detail: Mapping[str, object]) -> None:
        self._journal.moved(kind, detail, self._version())
