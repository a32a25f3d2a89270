"""The streams groups of one shard; written and restored as modern_groups.py says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.committed_offsets import STREAMS
from broker.kafka.groups.modern.modern_groups import ModernGroups
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.streams.group import StreamsGroup
from broker.kafka.groups.streams.member import StreamsGroupConfig, StreamsHeartbeat, StreamsMember, StreamsResult
from broker.kafka.groups.streams.records import from_row, to_row
from broker.kafka.groups.streams.topology import topology_of


class StreamsGroups(ModernGroups[StreamsGroup, StreamsHeartbeat, StreamsResult, StreamsGroupConfig, GroupTopics]):
    """Group id -> StreamsGroup."""

    kind = STREAMS
    title = "Streams group"
    members_max = "turnstile.streams.members.max"

    def state(self, group: StreamsGroup) -> str:
        """The state of a group, as ListGroups and StreamsGroupDescribe spell it."""
        return group.state(self._topics)

    # --- requests ------------------------------------------------------------------------------------------------------

    def leave(self, group_id: str, member_id: str, now_ms: int) -> StreamsResult:
        return self._left(group_id, lambda group: group.leave(member_id, now_ms))

    def _heartbeat(self, group: StreamsGroup, request: StreamsHeartbeat, now_ms: int) -> StreamsResult:
        return group.heartbeat(request, self._config(group.id), self._topics, now_ms)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _begun(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(id=group_id)

    def _refused(self, code: int, message: str | None = None) -> StreamsResult:
        return StreamsResult(code, message)

    def _made(self, group_id: str, row: Sequence[Any]) -> StreamsGroup:
        epoch, assignment_epoch, topology, fingerprint, validated, standby_replicas = row
        return StreamsGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, topology=topology_of(topology),
            fingerprint=fingerprint, validated=validated, standby_replicas=standby_replicas,
        )  # fmt: skip

    def _member(self, member_id: str, row: Sequence[object]) -> StreamsMember:
        return from_row(member_id, row)

    def _row(self, member: StreamsMember) -> Sequence[object]:
        return to_row(member)
