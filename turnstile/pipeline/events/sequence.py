"""Missing events: gaps in `seq`."""

from collections.abc import Iterable
from typing import NamedTuple

Incarnation = tuple[int, int, int]
"""A process while it ran: broker (-1 is the coordinator), shard, epoch."""


class Gap(NamedTuple):
    """Events `first` to `last` of a process are missing. `before_ns`: its last event before them, 0 if there is none."""

    broker: int
    shard: int
    epoch: int
    first: int
    last: int
    before_ns: int

    def sentence(self) -> str:
        """The gap in words."""
        where = "the coordinator" if self.broker < 0 else f"broker {self.broker} shard {self.shard}"
        return f"{where}, epoch {self.epoch}: seq {self.first} to {self.last}"


def first_gaps(missing: Iterable[Gap]) -> dict[Incarnation, Gap]:
    """(broker, shard, epoch) -> the first of its gaps."""
    found: dict[Incarnation, Gap] = {}
    for gap in sorted(missing, reverse=True):
        found[gap[:3]] = gap
    return found
