"""The messages from handlers to the home of a share group; the answer stands at each message (groups/messages.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.kafka.groups.share.member import ShareHeartbeat


class ShareGroupHeartbeat(NamedTuple):
    """The fields of a HeartbeatResult."""

    group: str
    heartbeat: ShareHeartbeat


class DescribeShareGroup(NamedTuple):
    """[state, epoch, assignment epoch, assignor, members], as ShareCoordinator.describe says."""

    group: str


class DescribeShareOffsets(NamedTuple):
    """[code, topics], as ShareCoordinator.offsets says. `topics`: [topic, [partition, ...]] each; None: all of the group."""

    group: str
    topics: Sequence[Any] | None


class AlterShareOffsets(NamedTuple):
    """[code, topics], as ShareCoordinator.alter_offsets says. `topics`: [topic, [[partition, start offset], ...]] each."""

    group: str
    topics: Sequence[Any]


class DeleteShareOffsets(NamedTuple):
    """[code, topics], as ShareCoordinator.delete_offsets says. `topics`: their names."""

    group: str
    topics: Sequence[str]
