"""The keys counted most among any number of them, in bounded memory: the Space-Saving sketch.

top_talkers_are_bounded  At most `capacity` keys are kept.
true_count_within_error  A key's true count lies in [count - error, count].
heavy_keys_are_kept  Every key whose true count exceeds total / capacity is kept.

Source: Metwally, Agrawal, El Abbadi, ICDT 2005. A cache of cachetools would not do: what it evicts takes its count along,
and the newcomer would start at 1 instead of with that count as its possible error (true_count_within_error).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

KEPT = 256
"""Keys that are counted apart, unless another capacity is given."""


class TopTalkers:
    """The keys counted most among any number of them; `capacity` of them are kept."""

    def __init__(self, capacity: int = KEPT) -> None:
        self.capacity = capacity
        self.total = 0
        self._entries: dict[str, _Talker] = {}
        # One (count when pushed, key) for each entry; a count may have risen since, never fallen.
        self._least: list[tuple[int, str]] = []

    def add(self, key: str, what: str = "", amount: int = 1) -> None:
        """Count `key`; `what` (a reason) is counted apart inside it. Pass words of a bounded set only."""
        self.total += amount
        entry = self._entries.get(key)
        if entry is None:
            error = self._evict() if len(self._entries) >= self.capacity else 0
            entry = self._entries[key] = _Talker(error)
            heapq.heappush(self._least, (error + amount, key))
        entry.count += amount
        entry.by[what] = entry.by.get(what, 0) + amount

    def clear(self) -> None:
        """Starts counting anew."""
        self.total = 0
        self._entries.clear()
        self._least.clear()

    def _evict(self) -> int:
        """Forget the key counted least; its count becomes the newcomer's possible error."""
        while True:
            count, key = self._least[0]
            now = self._entries[key].count
            if now == count:
                heapq.heappop(self._least)
                del self._entries[key]
                return count
            heapq.heapreplace(self._least, (now, key))

    def top(self, most: int = KEPT) -> list[tuple[str, int, int, dict[str, int]]]:
        """(key, count, possible error, {what: count}) of the keys counted most, the most counted first."""
        leading = heapq.nlargest(most, self._entries.items(), key=lambda item: item[1].count)
        return [(key, entry.count, entry.error, dict(entry.by)) for key, entry in leading]

    def __len__(self) -> int:
        return len(self._entries)


class _Talker:
    __slots__ = ("by", "count", "error")

    def __init__(self, error: int) -> None:
        self.count = error
        self.error = error
        self.by: dict[str, int] = {}


def merge_top(tops: Iterable[Sequence[Sequence[Any]]], most: int = 50) -> list[tuple[str, int, int, dict[str, int]]]:
    """The top of several `TopTalkers.top()` answers together, counts added key by key."""
    merged: dict[str, list[Any]] = {}
    for top in tops:
        for key, count, error, by in top:
            into = merged.setdefault(key, [0, 0, {}])
            into[0] += count
            into[1] += error
            for what, times in by.items():
                into[2][what] = into[2].get(what, 0) + times
    ranked = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))
    return [(key, count, error, by) for key, (count, error, by) in ranked[:most]]
