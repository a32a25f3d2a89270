"""One consumer group of the classic protocol: generations, rebalances, waiting members. No I/O and no clock; `now_ms` comes in.

    EMPTY -- join --> PREPARING -- all rejoined, or time is up --> COMPLETING -- leader synced --> STABLE
      ^                 |  ^                                          |                              |
      +-- none left ----+  +------- join, leave, a member lost -------+------------------------------+

Joins and syncs may wait: their `Reply` is kept and called later, exactly once. Everything else is answered at once.
Members, their ids and the leader are in membership.py. This file is long: a state machine's rules are read together.

Invariants (`check` asserts them)
G1  A generation has one leader; the generation only rises.
G2  Nobody waits for a sync outside COMPLETING, nor for a join outside PREPARING.
G3  A reply is called exactly once, or is still held by its member.
G4  EMPTY means no members; every other state but PREPARING has some.
G5  Ticked again and again at one instant, a group comes to rest: no deadline of it stays at or before that instant.

Source: KIP-62, KIP-134 (initial delay), KIP-345 (static members), KIP-389 (group.max.size), KIP-394 (known member id),
KIP-559, KIP-800, KIP-814 (skip assignment); ClassicGroup and GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from broker.groups.members import GroupConfig, JoinGroupResult, JoinRequest, Member, Reply, SyncGroupResult
from broker.groups.membership import Membership
from broker.protocol import codes

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""How long a member that was never told its id may wait for its first rebalance; it can't send heartbeats yet."""


class GroupState(Enum):
    """Named as DescribeGroups and ListGroups spell them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


_NEXT = {
    GroupState.EMPTY: {GroupState.PREPARING},
    GroupState.PREPARING: {GroupState.COMPLETING, GroupState.EMPTY},
    GroupState.COMPLETING: {GroupState.STABLE, GroupState.PREPARING},
    GroupState.STABLE: {GroupState.PREPARING},
}


@dataclass(slots=True)
class ClassicGroup:
    """One group. `outbox` holds (reply, answer) pairs that the caller delivers after each call."""

    id: str
    new_id: Callable[[], str]
    generation: int = 0
    protocol_type: str | None = None
    state: GroupState = GroupState.EMPTY
    protocol: str | None = None
    membership: Membership = field(default_factory=Membership)
    pending: dict[str, int] = field(default_factory=dict)  # ids handed out by KIP-394 and not yet used -> deadline
    unsynced: set[str] = field(default_factory=set)
    outbox: list[tuple[Reply, Any]] = field(default_factory=list)
    changed_ms: int = 0
    _initial: bool = False  # the join phase that started from EMPTY: waits its delay out, however many have joined
    _grown: bool = False
    _delay_ms: int = 0
    _phase_deadline_ms: int | None = None
    _last_call_ms: int = 0  # end of the rebalance timeout: an initial delay is never drawn out beyond it

    @property
    def members(self) -> dict[str, Member]:
        return self.membership.members

    # --- requests ----------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int) -> None:
        """Answers now or once the rebalance completes: NONE, or the code of the first rule the request breaks."""
        answer = self._join(request, reply, limits, now_ms)
        if answer is not None:
            self.outbox.append((reply, answer))

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol: tuple[str | None, str | None],
        assignments: Iterable[tuple[str, bytes]],
        reply: Reply,
        now_ms: int,
    ) -> None:
        """Answers with the member's assignment, once the leader has given one. `protocol`: (type, name) or Nones."""
        code = self._known(member_id, instance_id, generation)
        wrong_type = protocol[0] is not None and protocol[0] != self.protocol_type
        if not code and (wrong_type or (protocol[1] is not None and protocol[1] != self.protocol)):
            code = codes.INCONSISTENT_GROUP_PROTOCOL
        if not code and self.state is GroupState.PREPARING:
            code = codes.REBALANCE_IN_PROGRESS
        if code:
            self.outbox.append((reply, SyncGroupResult(code)))
            return
        member = self.members[member_id]
        self.unsynced.discard(member_id)
        if self.state is GroupState.STABLE:
            self._beat(member, now_ms)
            self._all_synced()
            self.outbox.append((reply, self._synced(member)))
            return
        self._drop_sync(member, codes.REBALANCE_IN_PROGRESS)
        member.syncing = reply
        if member_id == self.membership.leader:
            self._assign(dict(assignments), now_ms)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> int:
        code = self._known(member_id, instance_id, generation)
        if code:
            return code
        self._beat(self.members[member_id], now_ms)
        return codes.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING else codes.NONE

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> int:
        """One member goes; an administrator may name a static member by its instance id alone (member id "")."""
        if member_id in self.pending:
            del self.pending[member_id]
            self._maybe_complete_join(now_ms)
            return codes.NONE
        if instance_id is not None and not member_id:
            member_id = self.membership.instances.get(instance_id, "")
        code = self.membership.identify(member_id, instance_id)
        if not code:
            self._lose(self.members[member_id], now_ms)
        return code

    def may_commit(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> int:
        """Whether this identity may commit offsets. Without one (generation -1, no member) only for an empty group."""
        if generation < 0 and self.state is GroupState.EMPTY:
            return codes.NONE
        if generation < 0 and not member_id and instance_id is None:
            return codes.UNKNOWN_MEMBER_ID
        code = self._known(member_id, instance_id, generation)
        if not code and self.state is GroupState.COMPLETING:
            # It has the generation from its join but no assignment yet: what it read it may not own any more.
            return codes.REBALANCE_IN_PROGRESS
        if not code:
            self._beat(self.members[member_id], now_ms)
        return code

    # --- time --------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        deadlines = [m.expires_ms for m in self.members.values() if m.expires_ms is not None]
        deadlines += self.pending.values()
        if self._phase_deadline_ms is not None:
            deadlines.append(self._phase_deadline_ms)
        return min(deadlines, default=None)

    def tick(self, now_ms: int) -> None:
        """Removes members whose sessions have expired, and ends a phase whose deadline has passed."""
        late = [member_id for member_id, deadline_ms in self.pending.items() if deadline_ms <= now_ms]
        for member_id in late:
            del self.pending[member_id]
        for member in list(self.members.values()):
            expires_ms = member.expires_ms
            if member.id in self.members and expires_ms is not None and expires_ms <= now_ms:
                self._lose(member, now_ms)
        if self._phase_deadline_ms is not None and self._phase_deadline_ms <= now_ms:
            self._end_phase(now_ms)
        elif late:
            self._maybe_complete_join(now_ms)

    @property
    def unused(self) -> bool:
        """Whether it has no generation, no member and no handed-out member id: it need not be kept."""
        return not self.members and not self.pending and self.state is GroupState.EMPTY and not self.generation

    def check(self) -> None:
        self.membership.check()
        assert (self.state is GroupState.EMPTY) <= (not self.members), "G4"
        assert self.members or self.state in (GroupState.EMPTY, GroupState.PREPARING), "G4"
        for member in self.members.values():
            assert member.joining is None or self.state is GroupState.PREPARING, "G2"
            assert member.syncing is None or self.state is GroupState.COMPLETING, "G2"

    # --- joining -----------------------------------------------------------------------------------------------

    def _join(self, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int) -> JoinGroupResult | None:
        if not self._has_room(request.member_id, limits.max_size):
            self.pending.pop(request.member_id, None)
            return JoinGroupResult(codes.GROUP_MAX_SIZE_REACHED, request.member_id)
        if not self._supports(request):
            return JoinGroupResult(codes.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if request.member_id in self.pending and request.instance_id is not None:
            # Only dynamic members are handed out ids. Kafka raises IllegalStateException, which clients read as this code.
            return JoinGroupResult(codes.UNKNOWN_SERVER_ERROR, request.member_id)
        if request.member_id in self.pending or (not request.member_id and request.instance_id is None):
            return self._join_dynamic(request, reply, limits, now_ms)
        if not request.member_id:
            return self._join_static(request, reply, limits, now_ms)
        code = self.membership.identify(request.member_id, request.instance_id)
        if code:
            return JoinGroupResult(code, request.member_id)
        member = self.members[request.member_id]
        same = member.protocols == request.protocols
        leads = member.id == self.membership.leader
        if same and (self.state is GroupState.COMPLETING or (self.state is GroupState.STABLE and not leads)):
            self._beat(member, now_ms)
            return self._joined(member)  # its answer was lost on the way
        self._rejoin(member, request, reply, limits, now_ms)
        return None

    def _join_dynamic(
        self, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int
    ) -> JoinGroupResult | None:
        member_id = request.member_id or f"{request.client_id}-{self.new_id()}"
        if not request.member_id and request.id_required:
            self.pending[member_id] = now_ms + request.session_ms
            return JoinGroupResult(codes.MEMBER_ID_REQUIRED, member_id)
        self.pending.pop(member_id, None)
        self._add(member_id, request, reply, limits, now_ms)
        return None

    def _join_static(
        self, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int
    ) -> JoinGroupResult | None:
        """A static member without an id is new, or has restarted and takes the place of its former self."""
        assert request.instance_id is not None
        member_id = f"{request.instance_id}-{self.new_id()}"
        former_id = self.membership.instances.get(request.instance_id)
        if former_id is None:
            self._add(member_id, request, reply, limits, now_ms)
            return None
        former_leader = self.membership.leader or ""
        member = self._replace(former_id, member_id)
        if self.state is not GroupState.STABLE:
            self._rejoin(member, request, reply, limits, now_ms)
            return None
        member.protocols = request.protocols
        member.session_ms, member.rebalance_ms = request.session_ms, request.rebalance_ms
        if self.membership.choose_protocol() != self.protocol:
            self._rejoin(member, request, reply, limits, now_ms)
            return None
        self._beat(member, now_ms)
        if request.can_skip:
            leads = member.id == self.membership.leader
            return self._joined(member)._replace(skip_assignment=leads)
        # It can't be told to skip the assignment, so it must not learn that it leads.
        return self._joined(member)._replace(leader=former_leader, members=())

    def _replace(self, former_id: str, member_id: str) -> Member:
        member = self.members[former_id]
        self._drop_join(member, JoinGroupResult(codes.FENCED_INSTANCE_ID, former_id))
        self._drop_sync(member, codes.FENCED_INSTANCE_ID)
        self.unsynced.discard(former_id)
        self.membership.rename(member, member_id)
        return member

    def _add(self, member_id: str, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int) -> None:
        if not self.members:
            self.protocol_type = request.protocol_type
        self._grown = self._grown or (self.state is GroupState.PREPARING and self._initial)
        # A first join is announced by no heartbeat, and a closed connection isn't noticed: hence the long deadline.
        member = Member(
            member_id, request.instance_id, request.client_id, request.client_host, request.session_ms,
            request.rebalance_ms, request.protocols, now_ms + NEW_MEMBER_TIMEOUT_MS, joining=reply,
        )  # fmt: skip
        self.membership.add(member)
        self._rebalance(limits.initial_delay_ms, now_ms)

    def _rejoin(self, member: Member, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int) -> None:
        member.protocols = request.protocols
        member.session_ms, member.rebalance_ms = request.session_ms, request.rebalance_ms
        self._drop_join(member, JoinGroupResult(codes.REBALANCE_IN_PROGRESS, member.id))
        member.joining = reply
        self._rebalance(limits.initial_delay_ms, now_ms)

    def _has_room(self, member_id: str, max_size: int) -> bool:
        member = self.members.get(member_id)
        if self.state is GroupState.EMPTY:
            return True
        if self.state is GroupState.PREPARING:
            return (member is not None and member.joining is not None) or len(self.membership.joined()) < max_size
        return member is not None or len(self.members) < max_size

    def _supports(self, request: JoinRequest) -> bool:
        if not self.members:
            return bool(request.protocol_type and request.protocols)
        offered = [name for name, _ in request.protocols]
        return request.protocol_type == self.protocol_type and self.membership.supports_any(offered)

    # --- phases ------------------------------------------------------------------------------------------------

    def _rebalance(self, initial_delay_ms: int, now_ms: int) -> None:
        """Makes sure that a join phase is under way, and ends it if this was the last one it waited for."""
        if self.state is not GroupState.PREPARING:
            self._drop_syncs()
            self._initial = self.state is GroupState.EMPTY
            timeout_ms = self.membership.longest_rebalance_ms()
            self._last_call_ms = now_ms + timeout_ms
            self._phase_deadline_ms = now_ms + (min(initial_delay_ms, timeout_ms) if self._initial else timeout_ms)
            self._delay_ms = initial_delay_ms
            self._grown = False
            self._turn(GroupState.PREPARING, now_ms)
        elif self._phase_deadline_ms is None:
            self._phase_deadline_ms = now_ms + self.membership.longest_rebalance_ms()
        self._maybe_complete_join(now_ms)

    def _maybe_complete_join(self, now_ms: int) -> None:
        if self.state is not GroupState.PREPARING or self._initial or self.pending:
            return
        if len(self.membership.joined()) == len(self.members):
            self._complete_join(now_ms)

    def _end_phase(self, now_ms: int) -> None:
        if self.state is GroupState.PREPARING:
            if self._initial and self._grown and now_ms < self._last_call_ms:
                self._grown = False
                self._phase_deadline_ms = min(now_ms + self._delay_ms, self._last_call_ms)
            else:
                self._complete_join(now_ms)
        else:
            for member in [self.members[member_id] for member_id in self.unsynced]:
                self._forget(member)
            self._start_over(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """The next generation: without the dynamic members that have not rejoined; static ones stay while their sessions last."""
        for member in [m for m in self.members.values() if m.joining is None and m.instance_id is None]:
            self._forget(member)
        self._initial = False
        joined = self.membership.joined()
        if self.members and not joined:
            # Only absent static members are left. The phase has no deadline until one of them rejoins; their sessions do.
            self._phase_deadline_ms = None
            return
        self.generation += 1
        self._phase_deadline_ms = None
        if not self.members:
            self.protocol = None
            self._turn(GroupState.EMPTY, now_ms)
            return
        if self.membership.leader is None or self.members[self.membership.leader].joining is None:
            self.membership.leader = joined[0].id
        self.protocol = self.membership.choose_protocol()
        self._phase_deadline_ms = now_ms + self.membership.longest_rebalance_ms()
        self._turn(GroupState.COMPLETING, now_ms)
        self.unsynced = set(self.members)
        for member in self.members.values():
            self._beat(member, now_ms)
            member.new = False
            self._drop_join(member, self._joined(member))

    def _assign(self, assignments: dict[str, bytes], now_ms: int) -> None:
        self._turn(GroupState.STABLE, now_ms)
        self._all_synced()
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            self._beat(member, now_ms)
            if member.syncing is not None:
                reply, member.syncing = member.syncing, None
                self.outbox.append((reply, self._synced(member)))

    def _all_synced(self) -> None:
        """With the last sync the deadline for syncing is off; at that deadline members that have not synced are removed."""
        if not self.unsynced:
            self._phase_deadline_ms = None

    def _lose(self, member: Member, now_ms: int) -> None:
        """A member left or was not heard of: the others rebalance, or the join phase no longer waits for it."""
        self._drop_join(member, JoinGroupResult(codes.UNKNOWN_MEMBER_ID))
        self._drop_sync(member, codes.UNKNOWN_MEMBER_ID)
        self._forget(member)
        if self.state is GroupState.PREPARING:
            self._maybe_complete_join(now_ms)
        else:
            self._start_over(now_ms)

    def _start_over(self, now_ms: int) -> None:
        """From COMPLETING or STABLE into a join phase, which ends at once when no member is left."""
        self._drop_syncs()
        self._initial = False
        self._phase_deadline_ms = now_ms + self.membership.longest_rebalance_ms()
        self._turn(GroupState.PREPARING, now_ms)
        self._maybe_complete_join(now_ms)

    # --- small parts -------------------------------------------------------------------------------------------

    def _turn(self, state: GroupState, now_ms: int) -> None:
        if state not in _NEXT[self.state]:
            raise AssertionError(f"group {self.id}: {self.state} -> {state}")
        self.state, self.changed_ms = state, now_ms

    def _beat(self, member: Member, now_ms: int) -> None:
        member.deadline_ms = now_ms + member.session_ms

    def _forget(self, member: Member) -> None:
        self.membership.remove(member)
        self.unsynced.discard(member.id)

    def _drop_join(self, member: Member, answer: JoinGroupResult) -> None:
        if member.joining is not None:
            reply, member.joining = member.joining, None
            self.outbox.append((reply, answer))

    def _drop_sync(self, member: Member, code: int) -> None:
        if member.syncing is not None:
            reply, member.syncing = member.syncing, None
            self.outbox.append((reply, SyncGroupResult(code)))

    def _drop_syncs(self) -> None:
        for member in self.members.values():
            self._drop_sync(member, codes.REBALANCE_IN_PROGRESS)
            if self.state is GroupState.COMPLETING:
                member.assignment = b""
        self.unsynced.clear()

    def _known(self, member_id: str, instance_id: str | None, generation: int) -> int:
        code = self.membership.identify(member_id, instance_id)
        return code or (codes.NONE if generation == self.generation else codes.ILLEGAL_GENERATION)

    def _joined(self, member: Member) -> JoinGroupResult:
        protocol, leader = self.protocol or "", self.membership.leader or ""
        everyone: tuple[tuple[str, str | None, bytes], ...] = ()
        if member.id == leader:
            everyone = tuple((m.id, m.instance_id, m.metadata(protocol)) for m in self.members.values())
        return JoinGroupResult(codes.NONE, member.id, self.generation, self.protocol_type, protocol, leader, everyone)

    def _synced(self, member: Member) -> SyncGroupResult:
        return SyncGroupResult(codes.NONE, self.protocol_type, self.protocol, member.assignment)
