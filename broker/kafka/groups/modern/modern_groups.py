"""The groups of one modern protocol (consumer, share, streams) and one shard: written before a change is answered, ticked when due.

answered_group_is_written
    What an answer says has been written: a member that heartbeats after the death of this process is known to the next.
failed_change_is_undone
    If a change can't be written, or a mistake was made, the group is again as it was last written, with new sessions; the
    client is told to try again, or of an UNKNOWN_SERVER_ERROR.
members_are_bounded
    There are at most `members_max` members in all; a new one beyond is refused with GROUP_MAX_SIZE_REACHED.

No clock; `now_ms` comes in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.group_map import GroupMap
from broker.kafka.groups.modern.modern_group import ModernGroup
from broker.kafka.groups.modern.topics import GroupTopics
from broker.runtime.logger import Logger
from broker.wire import codes

log = Logger()


class MemberRequest(Protocol):
    """A heartbeat. `epoch` 0: the member joins."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int: ...


class MemberResult(Protocol):
    """The answer to a member: `code` NONE, or an error of Kafka's."""

    @property
    def code(self) -> int: ...


class ModernGroupConfig(Protocol):
    """The settings in force for one group."""

    @property
    def session_ms(self) -> int: ...


G = TypeVar("G", bound=ModernGroup[Any])
Q = TypeVar("Q", bound=MemberRequest)
R = TypeVar("R", bound=MemberResult)
C = TypeVar("C", bound=ModernGroupConfig)
T = TypeVar("T", bound=GroupTopics)


class ModernGroups(GroupMap[G], Generic[G, Q, R, C, T]):
    """Group id -> group. `now_ms` is asked for sessions that begin anew.

    G is the class of the groups, Q that of their members' heartbeats, R that of the answers, C that of a group's settings, T
    that of the topics.
    """

    kind: int
    """The kind of the groups' records (committed_offsets.py)."""
    title: str
    """The word for such a group in messages to clients."""
    members_max: str
    """The setting that bounds the members of all groups of the protocol."""

    def __init__(
        self,
        store: CommittedOffsets,
        topics: T,
        *,
        config: Callable[[str], C],
        setting: Callable[[str], int],
        now_ms: Callable[[], int],
    ) -> None:
        """`config(group id)` gives the settings in force for a group, `setting(name)` one of the broker's."""
        super().__init__()
        self._store = store
        self._topics = topics
        self._config = config
        self._setting = setting
        self._now_ms = now_ms
        self._members = 0

    @abstractmethod
    def _begun(self, group_id: str) -> G:
        """A group without members."""

    @abstractmethod
    def _heartbeat(self, group: G, request: Q, now_ms: int) -> R:
        """The group's answer to a member."""

    @abstractmethod
    def _refused(self, code: int, message: str | None = None) -> R:
        """An answer that is an error."""

    @abstractmethod
    def _made(self, group_id: str, row: Sequence[Any]) -> G:
        """A group as its row says, without members."""

    @abstractmethod
    def _member(self, member_id: str, row: Sequence[object]) -> object:
        """A member as its row says."""

    @abstractmethod
    def _row(self, member: Any) -> Sequence[object]:
        """The row that is written of a member."""

    def load(self) -> None:
        """Restores all that was written; called once the configuration is known."""
        for group_id in self._store:
            if self._store.stored_group(group_id, self.kind) is not None:
                self._restore(group_id)
                self._members += self._count(group_id)

    # --- requests --------------------------------------------------------------------------------------------------------

    def heartbeat(self, group_id: str, request: Q, now_ms: int) -> R:
        """The answer of a group that there is, or to a member that joins: then the group begins."""
        group = self._groups.get(group_id)
        if group is None and request.epoch != 0:
            return self._refused(codes.GROUP_ID_NOT_FOUND, f"{self.title} {group_id} not found.")
        group = group or self._begun(group_id)
        full = self._full(group, request.member_id)
        if full is not None:
            return self._refused(codes.GROUP_MAX_SIZE_REACHED, full)
        result = self._serve(group, partial(self._heartbeat, group, request, now_ms))
        member = group.members.get(request.member_id)
        if not result.code and member is not None:
            self._deadlines.note(group_id, member.deadline_ms())
        return result

    def _left(self, group_id: str, leave: Callable[[G], R]) -> R:
        """The answer to a member that leaves a group."""
        group = self._groups.get(group_id)
        if group is None:
            return self._refused(codes.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self._serve(group, partial(leave, group))

    # --- time ------------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        super().clear()
        self._members = 0

    def _look_at(self, group: G, now_ms: int) -> None:
        self._serve(group, partial(self._tick, group, now_ms))
        self._deadlines.note(group.id, self._groups[group.id].next_deadline_ms())

    def _tick(self, group: G, now_ms: int) -> R:
        group.tick(now_ms)
        return self._refused(codes.NONE)

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _full(self, group: G, member_id: str) -> str | None:
        """The message to one that would be a member too many (members_are_bounded); None: there is room."""
        if self._members < self._setting(self.members_max) or member_id in group.members:
            return None
        return f"The coordinator has as many members as {self.members_max} says."

    def _serve(self, group: G, step: Callable[[], R]) -> R:
        """The answer of `step`, once what it changed is written (answered_group_is_written, failed_change_is_undone)."""
        before = self._count(group.id)
        try:
            result = step()
            changes = group.take_changes()
            if changes is not None:
                row, members = changes
                rows = {name: None if member is None else self._row(member) for name, member in members.items()}
                self._store.store_group(group.id, self.kind, row, rows)
                self._groups[group.id] = group
        except OSError as fault:
            log.error("a change of a group was not written", group=group.id, error=str(fault))
            result = self._refused(codes.COORDINATOR_NOT_AVAILABLE, "The change could not be written.")
            self._restore(group.id)
        except Exception as fault:
            log.error("a mistake in serving a group", group=group.id, exc_info=fault)
            result = self._refused(codes.UNKNOWN_SERVER_ERROR)
            self._restore(group.id)
        self._members += self._count(group.id) - before
        return result

    def _count(self, group_id: str) -> int:
        group = self._groups.get(group_id)
        return 0 if group is None else len(group.members)

    def _restore(self, group_id: str) -> None:
        """The group as it was last written, whose members' sessions begin now; no group, if it never was."""
        stored = self._store.stored_group(group_id, self.kind)
        if stored is None:
            self._groups.pop(group_id, None)
            return
        group = self._groups[group_id] = self._made(group_id, stored.row)
        group.changed_ms = self._now_ms()
        session_ms = self._config(group_id).session_ms
        for member_id, row in stored.members.items():
            group.restore(self._member(member_id, row), session_ms, group.changed_ms)
        self._deadlines.note(group_id, group.next_deadline_ms())
