"""The groups of one protocol and one shard, by their ids, and the deadlines at which they are looked at. No clock.

deadlines_are_noted  Every group with a deadline has one noted at or before it (deadlines.py).
one_look_per_group_and_tick  `tick` looks at each group once, however many of its deadlines have passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sized
from functools import partial
from typing import Generic, Protocol, TypeVar

from broker.kafka.groups.deadlines import Deadlines


class AnyGroup(Protocol):
    """A group of any protocol."""

    @property
    def members(self) -> Sized:
        """The members by their ids."""


G = TypeVar("G", bound=AnyGroup)


class GroupMap(ABC, Generic[G]):
    """Group id -> group."""

    def __init__(self) -> None:
        self._groups: dict[str, G] = {}
        self._deadlines: Deadlines[str] = Deadlines()

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[G]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> G | None:
        return self._groups.get(group_id)

    def drop(self, group_id: str) -> None:
        """Drops a group without members."""
        group = self._groups.pop(group_id, None)
        assert group is None or not group.members
        self._deadlines.forget(group_id)

    def clear(self) -> None:
        """Drops every group with its members, whose connections are closed by now."""
        self._groups.clear()
        self._deadlines.clear()

    def next_deadline_ms(self) -> int | None:
        """The earliest time at which `tick` has something to do; it may turn out to be nothing."""
        return self._deadlines.next_ms()

    def tick(self, now_ms: int) -> bool:
        """A round of the groups that are due; True if more may be (deadlines.py)."""
        return self._deadlines.round(now_ms, partial(self._meet, now_ms))

    def _meet(self, now_ms: int, group_id: str) -> int:
        """Looks at a group that is due; returns the number of members that were looked at."""
        group = self._groups[group_id]
        looked_at = len(group.members)
        self._look_at(group, now_ms)
        return looked_at

    @abstractmethod
    def _look_at(self, group: G, now_ms: int) -> None:
        """Does what is due in a group, and notes its next deadline."""
