"""The coordinator of streams groups (KIP-1071) at their home: it answers heartbeats, and describes groups.

Its operations are called by handlers on any shard, so they take and return what msgpack carries. Source: GroupCoordinatorService of
Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.modern.home import HomeOfGroups, ModernCoordinator
from broker.kafka.groups.modern.member import LEAVE
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.router import Operations
from broker.kafka.groups.streams import tasks
from broker.kafka.groups.streams.endpoints import Endpoint
from broker.kafka.groups.streams.group import StreamsGroup
from broker.kafka.groups.streams.member import StreamsHeartbeat, StreamsResult
from broker.kafka.groups.streams.messages import (
    DescribedMember,
    DescribeStreamsGroup,
    StreamsDescription,
    StreamsGroupHeartbeat,
)
from broker.kafka.groups.streams.streams_groups import StreamsGroups
from broker.kafka.groups.streams.topology import topology_of
from broker.wire import codes


class StreamsCoordinator(ModernCoordinator[StreamsGroups]):
    """The streams groups that are at home on one shard. `topics`: those of the cluster."""

    def __init__(self, groups: StreamsGroups, topics: GroupTopics, home: HomeOfGroups) -> None:
        super().__init__(groups, home)
        self._topics = topics
        self.operations: Operations = {
            StreamsGroupHeartbeat: self.heartbeat,
            DescribeStreamsGroup: self.describe,
        }

    def heartbeat(self, group: str, fields: Sequence[object]) -> list[object]:
        """Takes the fields of a StreamsHeartbeat, and returns those of a StreamsResult; tasks are packed by tasks.to_row."""
        return self._answer(group, heartbeat_of(fields)).fields()

    def _answer(self, group: str, request: StreamsHeartbeat) -> StreamsResult:
        if (
            self._groups.get(group) is None
            and self._home.is_known(group)
            and not (request.epoch == 0 and self._home.make_way(group))
        ):
            return StreamsResult(codes.GROUP_ID_NOT_FOUND, f"Group {group} is not a streams group.")
        if request.epoch == LEAVE:
            return self._groups.leave(group, request.member_id, self._home.now_ms())
        result = self._groups.heartbeat(group, request, self._home.now_ms())
        self._home.served()
        return result

    def describe(self, group_id: str) -> StreamsDescription | list[str]:
        group = self._groups.get(group_id)
        if group is None:
            return self._undescribed(group_id)
        return self._described(group)

    def _described(self, group: StreamsGroup) -> StreamsDescription:
        configured = group.configured(self._topics)
        return StreamsDescription(
            self._groups.state(group),
            group.epoch,
            group.assignment_epoch,
            group.topology,
            None if configured is None or configured.tasks is None else dict(configured.partitions),
            [
                DescribedMember(
                    member.id,
                    member.epoch,
                    member.facts,
                    tasks.to_row(member.progress.assigned),
                    tasks.to_row(member.target),
                )
                for member in group.members.values()
            ],
        )


def heartbeat_of(fields: Sequence[Any]) -> StreamsHeartbeat:
    """A StreamsHeartbeat of the fields that came over the mesh, with its tasks unpacked."""
    request = StreamsHeartbeat(*fields)
    return request._replace(
        topology=topology_of(request.topology),
        owned=None if request.owned is None else tasks.from_row(request.owned),
        endpoint=None if request.endpoint is None else Endpoint(*request.endpoint),
        tags=None if request.tags is None else tuple((key, value) for key, value in request.tags),
    )
