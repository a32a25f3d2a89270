"""The streams groups of one shard; kept as kept_groups.py says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.kafka.groups.committed_offsets import STREAMS, CommittedOffsets
from broker.kafka.groups.kept_group import KeptGroup
from broker.kafka.groups.modern.kept_groups import KeptGroups
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.streams.group import StreamsGroup
from broker.kafka.groups.streams.member import StreamsGroupConfig, StreamsHeartbeat, StreamsMember, StreamsResult
from broker.kafka.groups.streams.records import from_row, to_row
from broker.kafka.groups.streams.topology import topology_of
from broker.wire import codes


class StreamsGroups(KeptGroups[StreamsGroup]):
    """Group id -> StreamsGroup. `config(group id)` gives the settings in force."""

    kind = STREAMS

    def __init__(
        self,
        store: CommittedOffsets,
        topics: GroupTopics,
        *,
        config: Callable[[str], StreamsGroupConfig],
        most_members: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(store, most_members=(most_members, "turnstile.streams.members.max"), now_ms=now_ms)
        self._topics = topics
        self._config = config

    def state(self, group: StreamsGroup) -> str:
        """As ListGroups and StreamsGroupDescribe spell it."""
        return group.state(self._topics)

    # --- requests ------------------------------------------------------------------------------------------------------

    def heartbeat(self, group_id: str, request: StreamsHeartbeat, now_ms: int) -> StreamsResult:
        """Of a group that there is, or of a member that joins: then the group begins."""
        group = self._groups.get(group_id)
        if group is None and request.epoch != 0:
            return StreamsResult(codes.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        group = group or StreamsGroup(id=group_id)
        refused = self._has_room(group, request.member_id)
        if refused is not None:
            return StreamsResult(refused.code, refused.message)
        config = self._config(group_id)
        result = self._answered(group, lambda: group.heartbeat(request, config, self._topics, now_ms))
        member = group.members.get(request.member_id)
        if not result.code and member is not None:
            self._deadlines.note(group_id, member.deadline_ms())
        return result

    def leave(self, group_id: str, member_id: str, now_ms: int) -> StreamsResult:
        group = self._groups.get(group_id)
        if group is None:
            return StreamsResult(codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self._answered(group, lambda: group.leave(member_id, now_ms))

    def _answered(self, group: StreamsGroup, step: Callable[[], StreamsResult]) -> StreamsResult:
        """What `step` answers, once what it changed is written; or why that could not be."""
        answers: list[StreamsResult] = []

        def answer() -> HeartbeatResult:
            answers.append(step())
            return HeartbeatResult(answers[0].code, answers[0].message)

        result = self._serve(group, answer)
        if answers and answers[0].code == result.code:
            return answers[0]
        return StreamsResult(result.code, result.message)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _made(self, group_id: str, kept: KeptGroup) -> StreamsGroup:
        epoch, assignment_epoch, topology, fingerprint, validated, standby_replicas = kept.row
        now_ms, config = self._now_ms(), self._config(group_id)
        group = StreamsGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, topology=topology_of(topology), changed_ms=now_ms,
            fingerprint=fingerprint, validated=validated, standby_replicas=standby_replicas,
        )  # fmt: skip
        for member_id, row in kept.members.items():
            group.restore(from_row(member_id, row), config, now_ms)
        return group

    def _row(self, member: StreamsMember) -> Sequence[object]:
        return to_row(member)
