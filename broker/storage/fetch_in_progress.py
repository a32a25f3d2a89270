"""One Fetch: what it asks of its partitions, what they have answered, and how the bytes are shared among them.

As in Kafka, partitions are filled in their order up to the bytes asked for, and the last batch of each may be cut: clients
drop that piece and fetch it again. A first batch is not cut. If it does not fit, its partition gets nothing, but the first
partition that has anything gets that batch whole. Sources: ReplicaManager.readFromLog, LogSegment.read.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.storage.partitions import PartitionAnswer


class PartitionFetch(NamedTuple):
    """One partition of a Fetch request; `epoch` is the leader epoch the client knows, or -1. `committed`: isolation level
    read_committed."""

    topic: str
    partition: int
    epoch: int
    offset: int
    max_bytes: int
    committed: bool = False


def shared_out(wanted: Sequence[PartitionFetch], most_bytes: int) -> Sequence[PartitionFetch]:
    """Partitions that ask for more than `most_bytes` in all, each cut to an equal share of them.

    Source: the fetch planner of Redpanda (`kafka_max_bytes_per_fetch`).
    """
    if sum(each.max_bytes for each in wanted) <= most_bytes:
        return wanted
    share = most_bytes // len(wanted)
    return [each._replace(max_bytes=min(each.max_bytes, share)) for each in wanted]


class FetchInProgress:
    """`answers`: as `Partitions.do("read")` gives them, of each partition that is `wanted`."""

    def __init__(self, wanted: Sequence[PartitionFetch], *, max_bytes: int, min_bytes: int) -> None:
        self.wanted = wanted
        self.max_bytes = max_bytes
        self.answers: list[Any] = [None] * len(wanted)
        self._min_bytes = min_bytes
        self.begin(max_bytes)

    def begin(self, room_bytes: int) -> None:
        """All partitions are to be read, in order; the answer may have so many bytes now."""
        self._room_bytes = self._left_bytes = room_bytes
        self._size_bytes = 0
        self._failed = False

    def asked(self, index: int) -> tuple[object, ...]:
        """The item of `Partitions.do("read")` for this partition, after those in front of it."""
        topic, partition, epoch, offset, max_bytes, committed = self.wanted[index]
        return topic, partition, epoch, offset, min(max_bytes, self._left_bytes), committed, not self._size_bytes, True

    def take(self, answer: PartitionAnswer) -> None:
        """Takes in its answer."""
        size = len(answer[3])
        self._size_bytes += size
        self._left_bytes -= size
        self._failed = self._failed or bool(answer[0])

    @property
    def enough(self) -> bool:
        """True if to answer now: an error is told at once, as Kafka does."""
        least_bytes = min(self._min_bytes, self._room_bytes)
        return not self.answers or self._failed or self._size_bytes >= least_bytes

    @property
    def missing_bytes(self) -> int:
        """The bytes by which the logs have to grow until there is enough."""
        return max(self._min_bytes - self._size_bytes, 1)
