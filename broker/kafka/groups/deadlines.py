"""The times at which the groups of a shard, or its share partitions, are to be looked at next. No clock.

every_deadline_has_an_entry  Every group with a deadline has an entry in the heap at or before it, if `note` was told of
    each that came nearer.
rounds_are_bounded  A round looks at A_ROUND members, and at most those of one group more.
deadline_heap_is_bounded  The heap is at most a few times as long as there are groups.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K", bound=tuple | str)  # type: ignore[type-arg]

A_ROUND = 2000
"""Members that are looked at in one round, a few milliseconds; then everything else in the process has its turn."""
A_GROUP = 30
"""The number of members that take as long as what is done once for a group: a record is written."""


class Deadlines(Generic[K]):
    """Deadlines by the ids of groups, or other keys."""

    def __init__(self) -> None:
        self._due: list[tuple[int, K]] = []
        self._earliest: dict[K, int] = {}

    def note(self, group_id: K, deadline_ms: int | None) -> None:
        """The group has something to do then, or earlier if that was noted before."""
        if deadline_ms is not None and deadline_ms < self._earliest.get(group_id, deadline_ms + 1):
            self._earliest[group_id] = deadline_ms
            heapq.heappush(self._due, (deadline_ms, group_id))
            if len(self._due) > 2 * len(self._earliest) + 64:
                self._due = [(due_ms, group_id) for group_id, due_ms in self._earliest.items()]
                heapq.heapify(self._due)

    def next_ms(self) -> int | None:
        """The earliest time at which something is to be done; it may turn out to be nothing."""
        return self._due[0][0] if self._due else None

    def take(self, now_ms: int) -> K | None:
        """A group that is due, the one due first; nothing is noted of it any more. None: no other is due."""
        while self._due and self._due[0][0] <= now_ms:
            deadline_ms, group_id = heapq.heappop(self._due)
            if self._earliest.get(group_id) == deadline_ms:  # else an earlier entry replaced it
                del self._earliest[group_id]
                return group_id
        return None

    def round(self, now_ms: int, meet: Callable[[K], int]) -> bool:
        """Calls `meet` with groups that are due, once each, until it has told of A_ROUND members; whether others may be due.

        Any number of groups may be due at once: their clients may have died together.
        """
        left, met = A_ROUND, set[K]()
        while left > 0:
            group_id = self.take(now_ms)
            if group_id is None:
                return False
            if group_id in met:
                self.note(group_id, now_ms)
                return False
            met.add(group_id)
            left -= meet(group_id) + A_GROUP
        return True

    def forget(self, group_id: K) -> None:
        self._earliest.pop(group_id, None)

    def clear(self) -> None:
        self._earliest.clear()
        self._due.clear()
