"""The messages from handlers to the home of a streams group; the answer stands at each message (groups/messages.py)."""

from typing import NamedTuple

from broker.kafka.groups.streams.member import StreamsHeartbeat
from broker.kafka.groups.streams.tasks import PackedTasks


class StreamsGroupHeartbeat(NamedTuple):
    """The fields of a StreamsResult."""

    group: str
    heartbeat: StreamsHeartbeat


class DescribeStreamsGroup(NamedTuple):
    """The fields of a StreamsDescription; [] for a group that there is not, ["other"] for one of another protocol."""

    group: str


class DescribedMember(NamedTuple):
    """A member as StreamsGroupDescribe tells it."""

    id: str
    epoch: int
    facts: tuple[object, ...]
    assigned: PackedTasks
    target: PackedTasks


class StreamsDescription(NamedTuple):
    """`partitions`: the number of each internal topic, by name; None: topics are missing."""

    state: str
    epoch: int
    assignment_epoch: int
    topology: tuple[object, ...] | None
    partitions: dict[str, int] | None
    members: list[DescribedMember]
