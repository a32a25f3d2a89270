"""The share groups of one shard; kept as kept_groups.py says.

share_groups_are_bounded
    There are at most `most_groups()` of them; a member that would begin another is refused with GROUP_MAX_SIZE_REACHED. Share
    groups stay when their members have left, until they are deleted, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from broker.kafka.groups.committed_offsets import SHARE, CommittedOffsets
from broker.kafka.groups.consumer.records import unpacked
from broker.kafka.groups.kept_group import KeptGroup
from broker.kafka.groups.modern.kept_groups import KeptGroups
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.share.group import ShareGroup
from broker.kafka.groups.share.member import ShareGroupConfig, ShareHeartbeat, ShareMember
from broker.kafka.groups.share.records import from_row, to_row
from broker.runtime.partitions_by_topic import by_topic
from broker.wire import codes


class ShareGroups(KeptGroups[ShareGroup]):
    """Group id -> ShareGroup. `config(group id)` gives the settings in force."""

    kind = SHARE

    def __init__(
        self,
        store: CommittedOffsets,
        topics: GroupTopics,
        *,
        config: Callable[[str], ShareGroupConfig],
        most_members: Callable[[], int],
        most_groups: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(store, most_members=(most_members, "turnstile.share.members.max"), now_ms=now_ms)
        self._topics = topics
        self._config = config
        self._most_groups = most_groups

    # --- requests ------------------------------------------------------------------------------------------------------

    def heartbeat(self, group_id: str, request: ShareHeartbeat, now_ms: int) -> HeartbeatResult:
        """Of a group that there is, or of a member that joins: then the group begins."""
        group = self._groups.get(group_id)
        if group is None and request.epoch != 0:
            return HeartbeatResult(codes.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        group = group or ShareGroup(id=group_id)
        refused = self._has_room(group, request.member_id) or self._has_room_for(group)
        if refused is not None:
            return refused
        result = self._serve(group, lambda: group.heartbeat(request, self._config(group.id), self._topics, now_ms))
        member = group.members.get(request.member_id)
        if not result.code and member is not None:
            self._deadlines.note(group_id, member.session_deadline_ms)
        return result

    def is_costly(self, group_id: str, request: ShareHeartbeat) -> bool:
        """Whether the heartbeat is to wait for its turn."""
        group = self._groups.get(group_id)
        return group is not None and group.is_costly(request, self._topics)

    def leave(self, group_id: str, member_id: str, now_ms: int) -> HeartbeatResult:
        group = self._groups.get(group_id)
        if group is None:
            return HeartbeatResult(codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self._serve(group, lambda: group.leave(member_id, now_ms))

    def initialize(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> HeartbeatResult:
        """There is a state of these partitions (topic id, number); the group begins, if there was none."""
        group = self._groups.get(group_id) or ShareGroup(id=group_id)
        refused = self._has_room_for(group)
        if refused is not None:
            return refused
        return self._serve(group, partial(_initialize, group, partitions))

    def uninitialize(self, group: ShareGroup, topic_ids: Iterable[str]) -> HeartbeatResult:
        """There is none of these topics any more."""
        return self._serve(group, partial(_uninitialize, group, topic_ids))

    def forget_topics(self, group: ShareGroup, exists: Callable[[str], bool]) -> None:
        """What is said of topics that are gone."""
        gone = [topic_id for topic_id in group.initialized if not exists(topic_id)]
        if gone:
            self.uninitialize(group, gone)

    def _has_room_for(self, group: ShareGroup) -> HeartbeatResult | None:
        if group.id in self._groups or len(self._groups) < self._most_groups():
            return None
        message = "The coordinator has as many share groups as turnstile.share.groups.max says."
        return HeartbeatResult(codes.GROUP_MAX_SIZE_REACHED, message)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _made(self, group_id: str, kept: KeptGroup) -> ShareGroup:
        epoch, assignment_epoch, fingerprint, initialized = kept.row
        now_ms, config = self._now_ms(), self._config(group_id)
        group = ShareGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, fingerprint=fingerprint, changed_ms=now_ms,
            initialized={topic: frozenset(numbers) for topic, numbers in by_topic(unpacked(initialized)).items()},
        )  # fmt: skip
        for member_id, row in kept.members.items():
            group.restore(from_row(member_id, row), config, now_ms)
        return group

    def _row(self, member: ShareMember) -> Sequence[object]:
        return to_row(member)


def _initialize(group: ShareGroup, partitions: Iterable[tuple[str, int]]) -> HeartbeatResult:
    group.initialize(by_topic(partitions).items())
    return HeartbeatResult(codes.NONE)


def _uninitialize(group: ShareGroup, topic_ids: Iterable[str]) -> HeartbeatResult:
    group.uninitialize(topic_ids)
    return HeartbeatResult(codes.NONE)
