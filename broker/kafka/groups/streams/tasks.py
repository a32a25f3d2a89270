"""Tasks of a streams application: a subtopology and the number of a partition; and the tasks of one member, by role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from broker.kafka.groups.consumer.records import packed, unpacked
from broker.kafka.groups.modern.member import PackedPartitions

Task = tuple[str, int]
"""(subtopology, partition)."""
TaskSet = frozenset[Task]
NO_TASKS: TaskSet = frozenset()


class Tasks(NamedTuple):
    """`active` tasks process records, `standby` tasks keep a copy of their state. Kafka 4.3 assigns no warm-up tasks."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby)

    def both(self, other: Tasks) -> Tasks:
        """The tasks that are in both, role by role."""
        return Tasks(self.active & other.active, self.standby & other.standby)

    def without(self, other: Tasks) -> Tasks:
        return Tasks(self.active - other.active, self.standby - other.standby)

    def plus(self, other: Tasks) -> Tasks:
        return Tasks(self.active | other.active, self.standby | other.standby)

    def has_any(self, other: Tasks) -> bool:
        """True if any task of `other` is here in the same role."""
        return bool(self.both(other))

    def has_all(self, other: Tasks) -> bool:
        return not other.without(self)


NOTHING = Tasks()
PackedTasks: TypeAlias = tuple[list[PackedPartitions], list[PackedPartitions]]
"""(subtopology, numbers of its tasks) of each role: active, standby."""


def to_row(tasks: Tasks) -> PackedTasks:
    """Tasks as msgpack carries them."""
    return packed(tasks.active), packed(tasks.standby)


def from_row(row: Sequence[Any]) -> Tasks:
    active, standby = row
    return Tasks(unpacked(active), unpacked(standby))
