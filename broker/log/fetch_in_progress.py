"""One Fetch: what it asks of its partitions, what their homes have answered, and how the bytes are shared among them.

As in Kafka, partitions are filled in their order up to the bytes asked for, and the last batch of each may be cut: clients
drop that piece and fetch it again. A first batch is not cut. If it does not fit, its partition gets nothing, but the first
partition that has anything gets that batch whole. Sources: ReplicaManager.readFromLog, LogSegment.read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.log import records
from broker.log.partitions import Answer


class PartitionFetch(NamedTuple):
    """What a Fetch asks of one partition; `epoch` is the leader epoch the client knows, or -1. `committed`: isolation level
    read_committed."""

    topic: str
    partition: int
    epoch: int
    offset: int
    max_bytes: int
    committed: bool = False


class FetchInProgress:
    """`answers`: as Partitions.read gives them, of each partition that is `wanted`, None until its home has
    answered. `by_home`: indexes of partitions by the shard they are at home at."""

    def __init__(
        self, wanted: Sequence[PartitionFetch], *, max_bytes: int, min_bytes: int, wait_ms: int, client: str
    ) -> None:
        self.wanted = wanted
        self.max_bytes = max_bytes
        self.wait_ms = wait_ms
        self.client = client
        self.answers: list[Any] = [None] * len(wanted)
        self.by_home: dict[int, list[int]] = {}
        self._min_bytes = min_bytes
        self._room_bytes = max_bytes  # the answer may not have more now

    def wanted_of(self, indexes: Sequence[int]) -> list[PartitionFetch]:
        """What is asked of these partitions."""
        return [self.wanted[index] for index in indexes]

    def answered(self, indexes: Sequence[int], answers: Sequence[Answer]) -> None:
        """The home of these partitions answers as if they could have all the bytes; `share` follows."""
        for index, answer in zip(indexes, answers, strict=True):
            self.answers[index] = answer

    def share(self, room_bytes: int) -> None:
        """Gives `room_bytes` to the partitions, in the order of the request."""
        self._room_bytes = room_bytes
        left_bytes, nothing_yet = room_bytes, True
        for index, (asked, answer) in enumerate(zip(self.wanted, self.answers, strict=True)):
            batches = _cut(answer[3], min(asked.max_bytes, left_bytes), nothing_yet)
            if batches is not answer[3]:
                self.answers[index] = (*answer[:3], batches, *answer[4:])
            if batches:
                left_bytes -= len(batches)
                nothing_yet = False

    @property
    def enough(self) -> bool:
        """Whether to answer now: an error is told at once, as Kafka does."""
        answers = self.answers
        least_bytes = min(self._min_bytes, self._room_bytes)
        return not answers or self._size_bytes() >= least_bytes or any(answer[0] for answer in answers)

    @property
    def missing_bytes(self) -> int:
        """By how much the logs have to grow until there is enough."""
        return max(self._min_bytes - self._size_bytes(), 1)

    def ends_at(self, home: int) -> list[tuple[str, int, int]]:
        """(topic, partition, end of its log as it was read) of the partitions of a home."""
        return [
            (self.wanted[index].topic, self.wanted[index].partition, self.answers[index][1])
            for index in self.by_home[home]
        ]

    def _size_bytes(self) -> int:
        return sum(len(answer[3]) for answer in self.answers)


def _cut(batches: bytes, max_bytes: int, at_least_one: bool) -> bytes:
    """What PartitionLog.read gives of them within `max_bytes`."""
    if not batches or len(batches) <= max_bytes:
        return batches
    first_bytes = records.header_at(batches, 0).size
    if first_bytes > max_bytes:
        return batches[:first_bytes] if at_least_one else b""
    return batches[:max_bytes]
