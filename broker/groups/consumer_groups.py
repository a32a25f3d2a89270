"""The groups of the consumer protocol of one shard: kept before anybody hears of a change, and looked at when they are due.

K1  What an answer says has been written: a member that heartbeats after the death of this process is known to the next.
K2  If a change can't be written, or a mistake was made, the group is again as it was last written, with new sessions; the
    client is told to try again, or of an UNKNOWN_SERVER_ERROR.
K3  There are at most `most_members()` members in all; a new one beyond is refused with GROUP_MAX_SIZE_REACHED.

No clock; `now_ms` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import structlog

from broker.groups.committed_offsets import CommittedOffsets
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupConfig, Heartbeat, HeartbeatResult
from broker.groups.consumer.records import from_row, to_row
from broker.groups.consumer_topics import ConsumerTopics
from broker.groups.deadlines import Deadlines
from broker.protocol import codes

log = structlog.get_logger(__name__)


class ConsumerGroups:
    """Group id -> ConsumerGroup. `config()` gives the settings in force; `now_ms` is asked for sessions that begin anew."""

    def __init__(
        self,
        store: CommittedOffsets,
        topics: ConsumerTopics,
        *,
        config: Callable[[str], ConsumerGroupConfig],
        most_members: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._topics = topics
        self._config = config
        self._most_members = most_members
        self._now_ms = now_ms
        self._groups: dict[str, ConsumerGroup] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        self._members = 0

    def load(self) -> None:
        """All that was kept; called once the configuration is known."""
        for group_id in self._store:
            if self._store.consumer(group_id) is not None:
                self._restore(group_id)
                self._members += self._count(group_id)

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

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
        if self._members >= self._most_members() and request.member_id not in group.members:
            return HeartbeatResult(
                codes.GROUP_MAX_SIZE_REACHED,
                "The coordinator has as many members as turnstile.consumer.members.max says.",
            )
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

    def drop(self, group_id: str) -> None:
        """An empty group that is gone from the store."""
        self._groups.pop(group_id, None)
        self._deadlines.forget(group_id)

    def clear(self) -> None:
        """Nothing is left of any group."""
        self._groups.clear()
        self._deadlines.clear()
        self._members = 0

    # --- time ------------------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def tick(self, now_ms: int) -> None:
        for group in [self._groups[group_id] for group_id in self._deadlines.take(now_ms)]:
            self._serve(group, partial(_tick, group, now_ms))
            self._deadlines.note(group.id, self._groups[group.id].next_deadline_ms())

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _serve(self, group: ConsumerGroup, step: Callable[[], HeartbeatResult]) -> HeartbeatResult:
        """What `step` returns, once what it changed is written (K1, K2)."""
        before = self._count(group.id)
        try:
            result = step()
            changes = group.take_changes()
            if changes is not None:
                row, members = changes
                self._store.keep(group.id, row, {name: None if m is None else to_row(m) for name, m in members.items()})
                self._groups[group.id] = group
        except OSError as fault:
            log.error("a change of a consumer group was not written", group=group.id, error=str(fault))
            result = HeartbeatResult(codes.COORDINATOR_NOT_AVAILABLE, "The change could not be written.")
            self._restore(group.id)
        except Exception as fault:
            log.error("a mistake in serving a consumer group", group=group.id, exc_info=fault)
            result = HeartbeatResult(codes.UNKNOWN_SERVER_ERROR)
            self._restore(group.id)
        self._members += self._count(group.id) - before
        return result

    def _count(self, group_id: str) -> int:
        group = self._groups.get(group_id)
        return 0 if group is None else len(group.members)

    def _restore(self, group_id: str) -> None:
        """As it was last written; nothing, if it never was."""
        kept = self._store.consumer(group_id)
        if kept is None:
            self._groups.pop(group_id, None)
            return
        epoch, assignment_epoch, fingerprint = kept.epochs
        now_ms, config = self._now_ms(), self._config(group_id)
        group = ConsumerGroup(
            id=group_id, epoch=epoch, assignment_epoch=assignment_epoch, fingerprint=fingerprint, changed_ms=now_ms
        )
        for member_id, row in kept.members.items():
            group.restore(from_row(member_id, row), config, now_ms)
        self._groups[group_id] = group
        self._deadlines.note(group_id, group.next_deadline_ms())


def _tick(group: ConsumerGroup, now_ms: int) -> HeartbeatResult:
    group.tick(now_ms)
    return HeartbeatResult(codes.NONE)
