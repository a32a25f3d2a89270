"""The groups of the consumer protocol of one shard; kept as kept_groups.py says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.kafka.groups.committed_offsets import MEMBERS, CommittedOffsets
from broker.kafka.groups.consumer.consumer_topics import ConsumerTopics
from broker.kafka.groups.consumer.group import ConsumerGroup
from broker.kafka.groups.consumer.member import ConsumerGroupConfig, ConsumerMember, Heartbeat
from broker.kafka.groups.consumer.records import from_row, to_row
from broker.kafka.groups.kept_group import KeptGroup
from broker.kafka.groups.modern.kept_groups import KeptGroups
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.wire import codes


class ConsumerGroups(KeptGroups[ConsumerGroup]):
    """Group id -> ConsumerGroup. `config(group id)` gives the settings in force."""

    kind = MEMBERS

    def __init__(
        self,
        store: CommittedOffsets,
        topics: ConsumerTopics,
        *,
        config: Callable[[str], ConsumerGroupConfig],
        most_members: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(store, most_members=(most_members, "turnstile.consumer.members.max"), now_ms=now_ms)
        self._topics = topics
        self._config = config

    def assignor(self, group: ConsumerGroup) -> str:
        return group.assignor(self._config(group.id))

    # --- requests ------------------------------------------------------------------------------------------------------

    def unknown_expressions(self, group_id: str) -> set[str]:
        """What the topics have to be matched with before `heartbeat`."""
        group = self._groups.get(group_id)
        return set() if group is None else group.unknown_expressions(self._topics)

    def unresolved(self, group_id: str) -> set[str]:
        """What members of the group brought and what is to be matched, then told to `resolve`."""
        group = self._groups.get(group_id)
        return set() if group is None else group.unresolved()

    def resolve(self, group_id: str, regex: str) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.resolve(regex)

    def heartbeat(self, group_id: str, request: Heartbeat, now_ms: int) -> HeartbeatResult:
        """Of a group that there is, or of a member that joins: then the group begins."""
        group = self._groups.get(group_id)
        if group is None and request.epoch != 0:
            return HeartbeatResult(codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group = group or ConsumerGroup(id=group_id)
        refused = self._has_room(group, request.member_id)
        if refused is not None:
            return refused
        result = self._serve(group, lambda: group.heartbeat(request, self._config(group.id), self._topics, now_ms))
        member = group.members.get(request.member_id)
        if not result.code and member is not None:
            self._deadlines.note(group_id, member.deadline_ms())
        return result

    def leave(self, group_id: str, member_id: str, instance_id: str | None, epoch: int, now_ms: int) -> HeartbeatResult:
        group = self._groups.get(group_id)
        if group is None:
            return HeartbeatResult(codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self._serve(group, lambda: group.leave(member_id, instance_id, epoch, now_ms))

    def remove(self, group: ConsumerGroup, member_id: str, instance_id: str | None, now_ms: int) -> int:
        """LeaveGroup, by an administrator."""
        result = self._serve(group, lambda: HeartbeatResult(group.remove(member_id, instance_id, now_ms)))
        return result.code

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _made(self, group_id: str, kept: KeptGroup) -> ConsumerGroup:
        epoch, assignment_epoch, fingerprint = kept.row
        now_ms, config = self._now_ms(), self._config(group_id)
        group = ConsumerGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, fingerprint=fingerprint, changed_ms=now_ms
        )
        for member_id, row in kept.members.items():
            group.restore(from_row(member_id, row), config, now_ms)
        return group

    def _row(self, member: ConsumerMember) -> Sequence[object]:
        return to_row(member)
