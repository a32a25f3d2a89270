"""Members of consumer groups (KIP-848) and share groups (KIP-932) alike. Source: ModernGroupMember of Kafka 4.1."""

from typing import NamedTuple, TypeAlias

from broker.wire import codes

LEAVE = -1
LEAVE_STATIC = -2
"""The epochs by which a member leaves, and by which a static one says that it comes back within its session."""

TopicIdPartition = tuple[str, int]
"""(topic id in hex, number of the partition)."""
TopicIdPartitions = frozenset[TopicIdPartition]
PackedPartitions: TypeAlias = tuple[str, list[int]]
"""(topic id in hex, numbers of its partitions), as rows of records have them; msgpack makes a list of it."""
NOTHING: TopicIdPartitions = frozenset()


class HeartbeatResult(NamedTuple):
    """`assignment` None: as it was."""

    code: int
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: TopicIdPartitions | None = None

    def fields(self) -> list[object]:
        """The answer as msgpack carries it: partitions as [[topic id, number], ...]."""
        return [*self[:-1], None if self.assignment is None else sorted(self.assignment)]


def fenced(epoch: int, request_epoch: int) -> HeartbeatResult:
    """FENCED_MEMBER_EPOCH, to a member whose heartbeat has another epoch than the coordinator's."""
    kind = "greater" if request_epoch > epoch else "smaller"
    return HeartbeatResult(
        codes.FENCED_MEMBER_EPOCH,
        f"Member epoch {request_epoch} is {kind} than the coordinator's, {epoch}: "
        "the member is to give up its partitions and join again.",
    )


def unknown_member(group_id: str, member_id: str) -> HeartbeatResult:
    """UNKNOWN_MEMBER_ID, to one that is not a member."""
    return HeartbeatResult(codes.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def too_many_members(kind: str, max_size: int) -> HeartbeatResult:
    """GROUP_MAX_SIZE_REACHED, to one that would be a member too many of a group of `kind`."""
    return HeartbeatResult(codes.GROUP_MAX_SIZE_REACHED, f"The {kind} group has {max_size} members, as many as it may.")
