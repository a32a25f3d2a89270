"""The messages from handlers to the home of a share group; the answer stands at each message (groups/messages.py)."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from broker.kafka.groups.share.member import ShareHeartbeat


class SharePlace(NamedTuple):
    topic_id: UUID
    partition: int


class ShareOffset(NamedTuple):
    """The place of a share group in a partition. `code` is a Kafka error, 0 for none; `start_offset` is -1 while nothing was
    fetched yet, `lag`, in records, -1 if unknown."""

    code: int = 0
    start_offset: int = -1
    leader_epoch: int = 0
    lag: int = -1


class ShareGroupHeartbeat(NamedTuple):
    """The fields of a HeartbeatResult."""

    group: str
    heartbeat: ShareHeartbeat


class DescribeShareGroup(NamedTuple):
    """[state, epoch, assignment epoch, assignor, members], as ShareCoordinator.describe says."""

    group: str


class DescribeShareOffsets(NamedTuple):
    """DescribedOffsets. `topics`: [topic, [partition, ...]] each; None: all of the group."""

    group: str
    topics: Sequence[tuple[str, Sequence[int]]] | None


class AlterShareOffsets(NamedTuple):
    """AlteredOffsets. `topics`: [topic, [[partition, start offset], ...]] each."""

    group: str
    topics: Sequence[tuple[str, Sequence[tuple[int, int]]]]


class DeleteShareOffsets(NamedTuple):
    """DeletedOffsets. `topics`: their names."""

    group: str
    topics: Sequence[str]


class PartitionOffset(NamedTuple):
    """`start_offset` and `lag` are -1 where nothing is known."""

    partition: int
    start_offset: int
    leader_epoch: int
    lag: int


class DescribedOffsets(NamedTuple):
    """`topics`: (topic, its id in hex or None, partitions)."""

    code: int
    topics: Sequence[tuple[str, str | None, Sequence[PartitionOffset]]]


class AlteredTopic(NamedTuple):
    """`topic_id` in hex, None if there is no such topic; `partitions`: (partition, code) each."""

    name: str
    topic_id: str | None
    partitions: Sequence[tuple[int, int]]


class AlteredOffsets(NamedTuple):
    code: int
    topics: Sequence[AlteredTopic]


class DeletedOffsets(NamedTuple):
    """`topics`: (topic, its id in hex or None, code, message or None)."""

    code: int
    topics: Sequence[tuple[str, str | None, int, str | None]]
