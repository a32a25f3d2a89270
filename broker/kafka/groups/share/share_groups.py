"""The share groups of one shard; written and restored as modern_groups.py says.

share_groups_are_bounded
    There are at most `turnstile.share.groups.max` of them; a member that would begin another is refused with
    GROUP_MAX_SIZE_REACHED. Share groups stay when their members have left, until they are deleted, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from broker.kafka.groups.committed_offsets import SHARE
from broker.kafka.groups.consumer.records import unpacked
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.kafka.groups.modern.modern_groups import ModernGroups
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.share.group import ShareGroup
from broker.kafka.groups.share.member import ShareGroupConfig, ShareHeartbeat, ShareMember
from broker.kafka.groups.share.records import from_row, to_row
from broker.runtime.partitions_by_topic import by_topic
from broker.wire import codes

MOST_GROUPS = "turnstile.share.groups.max"


class ShareGroups(ModernGroups[ShareGroup, ShareHeartbeat, HeartbeatResult, ShareGroupConfig, GroupTopics]):
    """Group id -> ShareGroup."""

    kind = SHARE
    title = "Share group"
    members_max = "turnstile.share.members.max"

    # --- requests ------------------------------------------------------------------------------------------------------

    def is_costly(self, group_id: str, request: ShareHeartbeat) -> bool:
        """True if the heartbeat is to wait for its turn."""
        group = self._groups.get(group_id)
        return group is not None and group.is_costly(request, self._topics)

    def leave(self, group_id: str, member_id: str, now_ms: int) -> HeartbeatResult:
        return self._left(group_id, lambda group: group.leave(member_id, now_ms))

    def initialize(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> HeartbeatResult:
        """There is a state of these partitions (topic id, number); the group begins, if there was none."""
        group = self._groups.get(group_id) or self._begun(group_id)
        full = self._too_many_groups(group_id)
        if full is not None:
            return self._refused(codes.GROUP_MAX_SIZE_REACHED, full)
        return self._serve(group, partial(_initialize, group, partitions))

    def uninitialize(self, group: ShareGroup, topic_ids: Iterable[str]) -> HeartbeatResult:
        """There is none of these topics any more."""
        return self._serve(group, partial(_uninitialize, group, topic_ids))

    def forget_topics(self, group: ShareGroup, exists: Callable[[str], bool]) -> None:
        """Drops the partitions of topics that are gone."""
        gone = [topic_id for topic_id in group.initialized if not exists(topic_id)]
        if gone:
            self.uninitialize(group, gone)

    def _full(self, group: ShareGroup, member_id: str) -> str | None:
        return super()._full(group, member_id) or self._too_many_groups(group.id)

    def _too_many_groups(self, group_id: str) -> str | None:
        if group_id in self._groups or len(self._groups) < self._setting(MOST_GROUPS):
            return None
        return f"The coordinator has as many share groups as {MOST_GROUPS} says."

    def _heartbeat(self, group: ShareGroup, request: ShareHeartbeat, now_ms: int) -> HeartbeatResult:
        return group.heartbeat(request, self._config(group.id), self._topics, now_ms)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _begun(self, group_id: str) -> ShareGroup:
        return ShareGroup(id=group_id)

    def _refused(self, code: int, message: str | None = None) -> HeartbeatResult:
        return HeartbeatResult(code, message)

    def _made(self, group_id: str, row: Sequence[Any]) -> ShareGroup:
        epoch, assignment_epoch, fingerprint, initialized = row
        return ShareGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, fingerprint=fingerprint,
            initialized={topic: frozenset(numbers) for topic, numbers in by_topic(unpacked(initialized)).items()},
        )  # fmt: skip

    def _member(self, member_id: str, row: Sequence[Any]) -> ShareMember:
        return from_row(member_id, row)

    def _row(self, member: ShareMember) -> Sequence[object]:
        return to_row(member)


def _initialize(group: ShareGroup, partitions: Iterable[tuple[str, int]]) -> HeartbeatResult:
    group.initialize(by_topic(partitions).items())
    return HeartbeatResult(codes.NONE)


def _uninitialize(group: ShareGroup, topic_ids: Iterable[str]) -> HeartbeatResult:
    group.uninitialize(topic_ids)
    return HeartbeatResult(codes.NONE)
