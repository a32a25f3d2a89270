"""Members of consumer groups (KIP-848) and share groups (KIP-932) alike. Source: ModernGroupMember of Kafka 4.1."""

from __future__ import annotations

from typing import Any, NamedTuple

LEAVE = -1
LEAVE_STATIC = -2
"""The epochs by which a member leaves, and by which a static one says that it comes back within its session."""

TopicIdPartition = tuple[str, int]
"""(topic id in hex, number of the partition)."""
TopicIdPartitions = frozenset[TopicIdPartition]
NOTHING: TopicIdPartitions = frozenset()


class HeartbeatResult(NamedTuple):
    """`assignment` None: as it was."""

    code: int
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: TopicIdPartitions | None = None

    def fields(self) -> list[Any]:
        """As msgpack carries it: partitions as [[topic id, number], ...]."""
        return [*self[:-1], None if self.assignment is None else sorted(self.assignment)]
