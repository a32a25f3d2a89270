"""A modern group, which is stored with its members: of the consumer protocol (KIP-848), a share group (KIP-932) or a streams
group (KIP-1071).

A change of what members ask for raises the epoch of the group; the assignment epoch follows when each member has the target of
that epoch. Targets are made at most once in `*.assignment.interval.ms`: heartbeats until then are answered by the last ones. A
member is fenced when its deadline has passed. No I/O and no clock; `now_ms` comes in.

Invariants
group_changes_are_taken_once  Each change is in the answer of exactly one `take_changes`.
targets_keep_their_interval  Two targets of a group in one process are made at least the interval apart.

Source: ModernGroup, StreamsGroup of Kafka 4.3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from broker.wire import codes


class ModernMember(Protocol):
    """A member of such a group. `session_deadline_ms`: when it is fenced, if nothing is heard of it."""

    id: str
    target: Any
    session_deadline_ms: int

    @property
    def epoch(self) -> int: ...

    def deadline_ms(self) -> int:
        """The time at which it is fenced, if nothing is heard of it and it does not revoke what it is to."""


M = TypeVar("M", bound=ModernMember)
FIRST_EPOCH = 1
"""Both epochs of a group that has had no member. The first one raises that of the group to 2, so a member of epoch 1 has been
assigned nothing. Source: ModernGroup, TargetAssignmentMetadata.INITIAL of Kafka 4.3."""


class GroupChanges(NamedTuple, Generic[M]):
    """The changes of a group that are to be written: its row, and the members that changed, None for one that is gone."""

    row: Sequence[object]
    members: dict[str, M | None]


@dataclass(slots=True, kw_only=True, eq=False)
class ModernGroup(ABC, Generic[M]):
    """`fingerprint` is of the topics that members asked for when the epoch was last raised, "" of none; `changed_ms`: when a
    member last left, or what one has last changed; `assigned_ms`: when targets were last made in this process, None: never."""

    id: str
    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    fingerprint: str = ""
    members: dict[str, M] = field(default_factory=dict)
    changed_ms: int = 0
    assigned_ms: int | None = None
    _topics_version: int = -1
    _changed: set[str] = field(default_factory=set)
    _group_changed: bool = False

    # --- offsets ---------------------------------------------------------------------------------------------------

    def may_fetch(self, member_id: str | None, epoch: int) -> int:
        """NONE if this member may read committed offsets, else the code; an administrator has no id and an epoch below 0."""
        if member_id is None and epoch < 0:
            return codes.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return codes.UNKNOWN_MEMBER_ID
        return codes.NONE if epoch == member.epoch else codes.STALE_MEMBER_EPOCH

    # --- time ------------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """The time at which the first member is to be fenced; None: there is no member."""
        return min((member.deadline_ms() for member in self.members.values()), default=None)

    def tick(self, now_ms: int) -> None:
        """Fences members whose sessions are over, and those that did not revoke in time."""
        for member in self._overdue(now_ms):
            self._remove(member, now_ms)

    def _overdue(self, now_ms: int) -> list[M]:
        return [each for each in self.members.values() if each.deadline_ms() <= now_ms]

    # --- what is kept ------------------------------------------------------------------------------------------------

    def take_changes(self) -> GroupChanges[M] | None:
        """All changes since the last call; None: nothing has changed."""
        if not self._changed and not self._group_changed:
            return None
        changes = {member_id: self.members.get(member_id) for member_id in self._changed}
        self._changed = set()
        self._group_changed = False
        return GroupChanges(self._row(), changes)

    @abstractmethod
    def _row(self) -> Sequence[object]:
        """The group's own record, without its members, in msgpack's types."""

    def restore(self, member: M, session_ms: int, now_ms: int) -> None:
        """Takes in a member of before this process: its session begins anew."""
        member.session_deadline_ms = now_ms + session_ms
        self.members[member.id] = member

    # --- epochs and targets ------------------------------------------------------------------------------------------

    def _remove(self, member: M, now_ms: int) -> None:
        """The others get what it had at their next heartbeats."""
        del self.members[member.id]
        self._release(member)
        self._changed.add(member.id)
        self._raise_epoch()
        self.changed_ms = now_ms

    def _release(self, member: M) -> None:
        """Drops what else the group notes of a member that is gone."""

    def _raise_epoch(self) -> None:
        self.epoch += 1
        self._group_changed = True

    def _may_assign(self, interval_ms: int, now_ms: int) -> bool:
        """True if targets may be made anew (targets_keep_their_interval). Source: canComputeNextTargetAssignment."""
        return self.assigned_ms is None or not interval_ms or now_ms >= self.assigned_ms + interval_ms

    def _set_targets(self, targets: Mapping[str, object], now_ms: int) -> None:
        """`targets`, by member id, are those of the group's epoch."""
        for member_id, target in targets.items():
            if target != self.members[member_id].target:
                self.members[member_id].target = target
                self._changed.add(member_id)
        self.assignment_epoch = self.epoch
        self.assigned_ms = now_ms
        self._group_changed = True


def fingerprint_of(facts: object) -> str:
    """A digest of what groups compare by its `repr`, such as the topics that members ask for."""
    return blake2b(repr(facts).encode(), digest_size=12).hexdigest()
