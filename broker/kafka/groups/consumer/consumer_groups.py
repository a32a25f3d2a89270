"""The groups of the consumer protocol of one shard; written and restored as modern_groups.py says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.committed_offsets import MEMBERS
from broker.kafka.groups.consumer.consumer_topics import ConsumerTopics
from broker.kafka.groups.consumer.group import ConsumerGroup
from broker.kafka.groups.consumer.member import ConsumerGroupConfig, ConsumerMember, Heartbeat
from broker.kafka.groups.consumer.records import from_row, to_row
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.kafka.groups.modern.modern_groups import ModernGroups


class ConsumerGroups(ModernGroups[ConsumerGroup, Heartbeat, HeartbeatResult, ConsumerGroupConfig, ConsumerTopics]):
    """Group id -> ConsumerGroup."""

    kind = MEMBERS
    title = "Group"
    members_max = "turnstile.consumer.members.max"

    def assignor(self, group: ConsumerGroup) -> str:
        """The name of the assignor that makes the group's target."""
        return group.assignor(self._config(group.id))

    # --- requests ------------------------------------------------------------------------------------------------------

    def unknown_expressions(self, group_id: str) -> set[str]:
        """The expressions that have to be matched with the topics before `heartbeat`."""
        group = self._groups.get(group_id)
        return set() if group is None else group.unknown_expressions(self._topics)

    def unresolved(self, group_id: str) -> set[str]:
        """The expressions that members of the group brought and that are to be matched, then told to `resolve`."""
        group = self._groups.get(group_id)
        return set() if group is None else group.unresolved()

    def resolve(self, group_id: str, regex: str) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.resolve(regex)

    def leave(self, group_id: str, member_id: str, instance_id: str | None, epoch: int, now_ms: int) -> HeartbeatResult:
        return self._left(group_id, lambda group: group.leave(member_id, instance_id, epoch, now_ms))

    def remove(self, group: ConsumerGroup, member_id: str, instance_id: str | None, now_ms: int) -> int:
        """LeaveGroup, by an administrator."""
        result = self._serve(group, lambda: HeartbeatResult(group.remove(member_id, instance_id, now_ms)))
        return result.code

    def _heartbeat(self, group: ConsumerGroup, request: Heartbeat, now_ms: int) -> HeartbeatResult:
        return group.heartbeat(request, self._config(group.id), self._topics, now_ms)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _begun(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(id=group_id)

    def _refused(self, code: int, message: str | None = None) -> HeartbeatResult:
        return HeartbeatResult(code, message)

    def _made(self, group_id: str, row: Sequence[Any]) -> ConsumerGroup:
        epoch, assignment_epoch, fingerprint = row
        return ConsumerGroup(id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, fingerprint=fingerprint)

    def _member(self, member_id: str, row: Sequence[Any]) -> ConsumerMember:
        return from_row(member_id, row)

    def _row(self, member: ConsumerMember) -> Sequence[object]:
        return to_row(member)
