"""The groups of one shard: which exist, when each is to be looked at next, which replies are due. No I/O, no clock.

empty_groups_are_dropped  A group without a generation, a member or a handed-out member id is not stored.
generations_remembered_before_told  A new generation is remembered before any member hears of it.
assignments_written_before_told  The members of a generation and what they are assigned are written before any of them hears of
    its assignment: members whose shard is killed go on with their next heartbeat or commit. If the write fails, the group works
    on, and the death of this process ends it for its members.
mistakes_end_one_group  A mistake in serving a group ends that group alone, as the death of its shard would: its members are
    told UNKNOWN_MEMBER_ID and join again, its committed offsets stay. The call that met the mistake is answered
    UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from broker.kafka.groups.classic.group import ClassicGroup
from broker.kafka.groups.classic.members import GroupConfig, JoinGroupResult, JoinRequest, Reply, SyncGroupResult
from broker.kafka.groups.classic.messages import SyncGroup
from broker.kafka.groups.classic.records import group_row, restored, to_row
from broker.kafka.groups.committed_offsets import CLASSIC, LastGeneration
from broker.kafka.groups.group_map import GroupMap
from broker.kafka.groups.stored_group import StoredGroup
from broker.runtime.logger import Logger
from broker.wire import codes

T = TypeVar("T")

log = Logger()


class GroupStore(Protocol):
    """CommittedOffsets, as far as groups are stored there; changes raise OSError if they can't be written."""

    def __iter__(self) -> Iterator[str]: ...

    def generation(self, group: str) -> LastGeneration: ...

    def store_generation(self, group: str, generation: int, protocol_type: str | None) -> None: ...

    def stored_group(self, group: str, kind: int) -> StoredGroup | None: ...

    def store_group(
        self, group: str, kind: int, row: Sequence[object], members: Mapping[str, Sequence[object] | None]
    ) -> None: ...

    def forget_members(self, group: str) -> None: ...


class ClassicGroups(GroupMap[ClassicGroup]):
    """Group id -> ClassicGroup. Its collaborators:

    `limits()` gives the settings in force, `new_id()` a fresh random part of a member id, `store` keeps what outlives this
    process, and `on_fault(group id, exception)` is told of a group that a mistake has ended (mistakes_end_one_group).
    """

    def __init__(
        self,
        *,
        limits: Callable[[], GroupConfig],
        new_id: Callable[[], str],
        store: GroupStore,
        on_fault: Callable[[str, Exception], None] = lambda *_: None,
    ) -> None:
        super().__init__()
        self._limits = limits
        self._new_id = new_id
        self._store = store
        self._on_fault = on_fault

    def load(self, now_ms: int) -> None:
        """All groups that had members when they were last written."""
        for group_id in self._store:
            stored = self._store.stored_group(group_id, CLASSIC)
            if stored is not None and stored.members:
                known = self._store.generation(group_id).generation
                group = self._groups[group_id] = restored(group_id, stored, known, now_ms, self._new_id)
                self._deadlines.note(group_id, group.next_deadline_ms())

    # --- requests ----------------------------------------------------------------------------------------------

    def join(self, group_id: str, request: JoinRequest, reply: Reply, now_ms: int) -> None:
        limits = self._limits()
        group = self._groups.get(group_id)
        if not group_id:
            reply(JoinGroupResult(codes.INVALID_GROUP_ID, request.member_id))
        elif not limits.min_session_ms <= request.session_ms <= limits.max_session_ms:
            reply(JoinGroupResult(codes.INVALID_SESSION_TIMEOUT, request.member_id))
        elif group is None and request.member_id:
            reply(JoinGroupResult(codes.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            if group is None:
                generation, protocol_type = self._store.generation(group_id)
                group = ClassicGroup(
                    id=group_id,
                    new_id=self._new_id,
                    generation=generation,
                    last_generation=generation,
                    protocol_type=protocol_type,
                    changed_ms=now_ms,
                )
                self._groups[group_id] = group
            failed = JoinGroupResult(codes.UNKNOWN_SERVER_ERROR, request.member_id)
            self._serve(group, lambda: group.join(request, reply, limits, now_ms), None, (reply, failed))

    def sync(self, request: SyncGroup, reply: Reply, now_ms: int) -> None:
        group = self._groups.get(request.group)
        if group is None:
            reply(SyncGroupResult(codes.UNKNOWN_MEMBER_ID if request.group else codes.INVALID_GROUP_ID))
            return
        self._serve(
            group,
            lambda: group.sync(request, reply, now_ms),
            None,
            (reply, SyncGroupResult(codes.UNKNOWN_SERVER_ERROR)),
        )

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> int:
        group = self._groups.get(group_id)
        if group is None:
            return codes.UNKNOWN_MEMBER_ID if group_id else codes.INVALID_GROUP_ID
        beat = partial(group.heartbeat, member_id, instance_id, generation, now_ms)
        return self._guarded(
            group, beat, codes.UNKNOWN_SERVER_ERROR
        )  # deadlines only move away: deadlines_are_noted holds

    def leave(self, group_id: str, members: Collection[tuple[str, str | None]], now_ms: int) -> list[int]:
        """One code per (member id, instance id)."""
        group = self._groups.get(group_id)
        if group is None:
            return [codes.UNKNOWN_MEMBER_ID for _ in members]
        return self._serve(
            group,
            lambda: [group.leave(member_id, instance_id, now_ms) for member_id, instance_id in members],
            [codes.UNKNOWN_SERVER_ERROR for _ in members],
        )

    def may_commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> int:
        group = self._groups.get(group_id)
        if group is None:
            if generation < 0:
                return codes.NONE  # a consumer that assigns itself its partitions, or an administrator
            # A group that has had a generation has lost its members, or a mistake has ended it.
            known = self._store.generation(group_id).generation
            return codes.UNKNOWN_MEMBER_ID if known else codes.ILLEGAL_GENERATION
        may_commit = partial(group.may_commit, member_id, instance_id, generation, now_ms)
        return self._guarded(group, may_commit, codes.UNKNOWN_SERVER_ERROR)

    # --- serving -----------------------------------------------------------------------------------------------

    def _look_at(self, group: ClassicGroup, now_ms: int) -> None:
        self._serve(group, partial(group.tick, now_ms), None)

    def _serve(
        self, group: ClassicGroup, step: Callable[[], T], failed: T, waiting: tuple[Reply, object] | None = None
    ) -> T:
        """Runs `step` on a group, delivers its answers and notes its next deadline."""
        known = group.generation
        result = self._guarded(group, step, failed, waiting)
        if group.id in self._groups:
            self._settle(group, known)
        return result

    def _guarded(
        self, group: ClassicGroup, step: Callable[[], T], failed: T, waiting: tuple[Reply, object] | None = None
    ) -> T:
        """Returns what `step` does. If it raises, the group ends (mistakes_end_one_group) and `failed` is returned.

        `waiting`: the reply that the step was given, and what it is answered if the step raises.
        """
        try:
            return step()
        except Exception as fault:
            self._on_fault(group.id, fault)
            self._end(group, waiting)
            return failed

    def _end(self, group: ClassicGroup, waiting: tuple[Reply, object] | None) -> None:
        answers = group.outbox
        for member in group.members.values():
            if member.joining is not None:
                answers.append((member.joining, JoinGroupResult(codes.UNKNOWN_MEMBER_ID, member.id)))
            if member.syncing is not None:
                answers.append((member.syncing, SyncGroupResult(codes.UNKNOWN_MEMBER_ID)))
        if waiting is not None:
            answers = [(reply, answer) for reply, answer in answers if reply is not waiting[0]] + [waiting]
        del self._groups[group.id]
        self._deadlines.forget(group.id)
        if self._store.stored_group(group.id, CLASSIC) is not None:
            self._write(group.id, partial(self._store.forget_members, group.id))
        for reply, answer in answers:
            reply(answer)

    def _settle(self, group: ClassicGroup, known: int) -> None:
        if group.generation != known:
            self._write(
                group.id, partial(self._store.store_generation, group.id, group.generation, group.protocol_type)
            )
        if group.is_unwritten:
            self._write(group.id, partial(self._keep, group))
            group.is_unwritten = False
        answers, group.outbox = group.outbox, []
        if group.unused:
            self.drop(group.id)
        else:
            self._deadlines.note(group.id, group.next_deadline_ms())
        for reply, answer in answers:
            reply(answer)

    def _keep(self, group: ClassicGroup) -> None:
        """Writes the members that are not as they were last written."""
        stored = self._store.stored_group(group.id, CLASSIC)
        before = {} if stored is None else stored.members
        rows = {member.id: to_row(member, group.protocol or "") for member in group.members.values()}
        changed: dict[str, Sequence[object] | None] = {
            each: row for each, row in rows.items() if before.get(each) != row
        }
        changed.update((each, None) for each in before if each not in rows)
        self._store.store_group(group.id, CLASSIC, group_row(group), changed)

    def _write(self, group_id: str, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as fault:
            # Records are worth having, but no reason to keep a group from working.
            log.error("a change of a group was not written", group=group_id, error=str(fault))
