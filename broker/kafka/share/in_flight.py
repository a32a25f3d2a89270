"""The records in flight of a share partition, as runs of neighbours in one state. Pure: a change makes a new list.

A list of runs is in the order of offsets and without gaps. Neighbours that are alike are one run, so a list is as long as there
are differences, not as there are records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple


class RecordState(IntEnum):
    """The states of records, numbered as those that Kafka persists (RecordState)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


TERMINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Run(NamedTuple):
    """Offsets `first` to `last`, both included. `deliveries`: how often they were delivered. If they are ACQUIRED, `member` holds
    them until `until_ms`; "" and 0 else."""

    first: int
    last: int
    state: RecordState
    deliveries: int
    member: str = ""
    until_ms: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def cut(self, first: int, last: int) -> Run:
        """The part of it in these bounds."""
        return self._replace(first=max(self.first, first), last=min(self.last, last))


Runs = Sequence[Run]


def overlapping(runs: Runs, first: int, last: int) -> list[Run]:
    """The parts of runs in [first, last], in order."""
    found = []
    for run in runs[_index(runs, first) :]:
        if run.first > last:
            break
        if run.last >= first:
            found.append(run.cut(first, last))
    return found


def changed(runs: Runs, first: int, last: int, change: Callable[[Run], Run]) -> list[Run]:
    """The same with `change` made to all that is in [first, last]."""
    made: list[Run] = []
    for run in runs:
        if run.last < first or run.first > last:
            made.append(run)
            continue
        if run.first < first:
            made.append(run._replace(last=first - 1))
        made.append(change(run.cut(first, last)))
        if run.last > last:
            made.append(run._replace(first=last + 1))
    return merged(made)


def laid(runs: Runs, put: Iterable[Run]) -> list[Run]:
    """`put` in place of what was there before, or behind it. Offsets of which nothing is known are AVAILABLE, never delivered."""
    made = [*runs]
    for run in put:
        end = made[-1].last + 1 if made else run.first
        if run.first > end:
            made.append(Run(end, run.first - 1, RecordState.AVAILABLE, 0))
        kept = [each.cut(each.first, run.first - 1) for each in made if each.first < run.first]
        behind = [each.cut(run.last + 1, each.last) for each in made if each.last > run.last]
        made = [*kept, run, *behind]
    return merged(made)


def merged(runs: Iterable[Run]) -> list[Run]:
    made: list[Run] = []
    for run in runs:
        if made and made[-1][2:] == run[2:]:
            made[-1] = made[-1]._replace(last=run.last)
        else:
            made.append(run)
    return made


def _index(runs: Runs, offset: int) -> int:
    """The index of the run that has the offset; 0 if the offset is before all runs."""
    return max(bisect_right(runs, offset, key=lambda run: run.first) - 1, 0)
