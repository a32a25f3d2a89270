"""The groups with members of one protocol and one shard: kept before anybody hears of a change, looked at when they are due.

answered_group_is_written
    What an answer says has been written: a member that heartbeats after the death of this process is known to the next.
failed_change_is_undone
    If a change can't be written, or a mistake was made, the group is again as it was last written, with new sessions; the
    client is told to try again, or of an UNKNOWN_SERVER_ERROR.
members_are_bounded
    There are at most `most_members()` members in all; a new one beyond is refused with GROUP_MAX_SIZE_REACHED.

No clock; `now_ms` comes in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.deadlines import Deadlines
from broker.kafka.groups.kept_group import KeptGroup
from broker.kafka.groups.modern.member import HeartbeatResult
from broker.runtime.logger import Logger
from broker.wire import codes

log = Logger()


class MemberGroup(Protocol):
    """What a group does that is kept here."""

    id: str
    members: dict[str, Any]

    def take_changes(self) -> tuple[list[Any], dict[str, Any]] | None:
        """(the group's row, the members that changed; None for one that is gone); None: nothing."""

    def next_deadline_ms(self) -> int | None: ...

    def tick(self, now_ms: int) -> None: ...


G = TypeVar("G", bound=MemberGroup)


class KeptGroups(ABC, Generic[G]):
    """Group id -> group. `kind` is that of its records (committed_offsets.py); `now_ms` is asked for sessions that begin anew."""

    kind: int

    def __init__(
        self, store: CommittedOffsets, *, most_members: tuple[Callable[[], int], str], now_ms: Callable[[], int]
    ) -> None:
        """`most_members`: how many there may be (members_are_bounded), and which setting says so."""
        self._store = store
        self._most_members, self._most_setting = most_members
        self._now_ms = now_ms
        self._groups: dict[str, G] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        self._members = 0

    @abstractmethod
    def _made(self, group_id: str, kept: KeptGroup) -> G:
        """A group as its records say, whose members' sessions begin now."""

    @abstractmethod
    def _row(self, member: Any) -> Sequence[Any]:
        """What is kept of a member."""

    def load(self) -> None:
        """All that was kept; called once the configuration is known."""
        for group_id in self._store:
            if self._store.kept(group_id, self.kind) is not None:
                self._restore(group_id)
                self._members += self._count(group_id)

    def __iter__(self) -> Iterator[G]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> G | None:
        return self._groups.get(group_id)

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

    def tick(self, now_ms: int) -> bool:
        """A round of the groups that are due; whether more may be (deadlines.py)."""
        return self._deadlines.round(now_ms, partial(self._meet, now_ms))

    def _meet(self, now_ms: int, group_id: str) -> int:
        group = self._groups[group_id]
        looked_at = len(group.members)
        self._serve(group, partial(_tick, group, now_ms))
        self._deadlines.note(group_id, self._groups[group_id].next_deadline_ms())
        return looked_at

    # --- keeping -----------------------------------------------------------------------------------------------------------

    def _has_room(self, group: G, member_id: str) -> HeartbeatResult | None:
        """What one that would be a member too many is answered (members_are_bounded)."""
        if self._members < self._most_members() or member_id in group.members:
            return None
        message = f"The coordinator has as many members as {self._most_setting} says."
        return HeartbeatResult(codes.GROUP_MAX_SIZE_REACHED, message)

    def _serve(self, group: G, step: Callable[[], HeartbeatResult]) -> HeartbeatResult:
        """What `step` returns, once what it changed is written (answered_group_is_written, failed_change_is_undone)."""
        before = self._count(group.id)
        try:
            result = step()
            changes = group.take_changes()
            if changes is not None:
                row, members = changes
                rows = {name: None if member is None else self._row(member) for name, member in members.items()}
                self._store.keep(group.id, self.kind, row, rows)
                self._groups[group.id] = group
        except OSError as fault:
            log.error("a change of a group was not written", group=group.id, error=str(fault))
            result = HeartbeatResult(codes.COORDINATOR_NOT_AVAILABLE, "The change could not be written.")
            self._restore(group.id)
        except Exception as fault:
            log.error("a mistake in serving a group", group=group.id, exc_info=fault)
            result = HeartbeatResult(codes.UNKNOWN_SERVER_ERROR)
            self._restore(group.id)
        self._members += self._count(group.id) - before
        return result

    def _count(self, group_id: str) -> int:
        group = self._groups.get(group_id)
        return 0 if group is None else len(group.members)

    def _restore(self, group_id: str) -> None:
        """As it was last written; nothing, if it never was."""
        kept = self._store.kept(group_id, self.kind)
        if kept is None:
            self._groups.pop(group_id, None)
            return
        group = self._groups[group_id] = self._made(group_id, kept)
        self._deadlines.note(group_id, group.next_deadline_ms())


def _tick(group: MemberGroup, now_ms: int) -> HeartbeatResult:
    group.tick(now_ms)
    return HeartbeatResult(codes.NONE)
