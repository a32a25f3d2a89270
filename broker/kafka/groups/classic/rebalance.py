"""The rebalances of a classic group: its states, the deadlines of its phases, and the answers that members wait for.

    EMPTY -- join --> PREPARING -- all rejoined, or time is up --> COMPLETING -- leader synced --> STABLE
      ^                 |  ^                                          |                              |
      +-- none left ----+  +------- join, leave, a member lost -------+------------------------------+

No I/O and no clock; `now_ms` comes in. A join waits through PREPARING, a sync through COMPLETING: their `Reply` is kept by
the member and called later, exactly once.

Invariants (`check` asserts joins_and_syncs_in_their_states and empty_means_no_members)
one_leader_a_generation  A generation has one leader, and a number above that of every earlier one.
joins_and_syncs_in_their_states  No member waits for a sync outside COMPLETING, nor for a join outside PREPARING.
replies_called_once  A reply is called exactly once, or is still held by its member.
empty_means_no_members  EMPTY means no members; every other state but PREPARING has some.
ticked_groups_come_to_rest  Ticked again and again at one instant, a group comes to rest: no deadline of it stays at or
    before that instant.

Source: KIP-62, KIP-134 (initial delay); ClassicGroup and GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from broker.kafka.groups.classic.members import JoinGroupResult, Member, Reply, SyncGroupResult
from broker.kafka.groups.classic.membership import Membership
from broker.wire import codes


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


@dataclass(slots=True, kw_only=True, eq=False)
class Rebalance:
    """The rebalances of group `id`, one after the other. `outbox` holds (reply, answer) pairs that the caller delivers.

    `last_generation`: the highest that was used; above `generation` after a crash that interrupted a rebalance. `is_unwritten`: the
    members are not those of the last record (classic/records.py).
    """

    id: str
    generation: int = 0
    last_generation: int = 0
    protocol_type: str | None = None
    state: GroupState = GroupState.EMPTY
    protocol: str | None = None
    membership: Membership = field(default_factory=Membership)
    pending: dict[str, int] = field(default_factory=dict)  # ids handed out by KIP-394 and not yet used -> deadline
    unsynced: set[str] = field(default_factory=set)
    outbox: list[tuple[Reply, object]] = field(default_factory=list)
    changed_ms: int = 0
    is_unwritten: bool = False
    _initial: bool = False  # the join phase that started from EMPTY: waits its delay out, however many have joined
    _grown: bool = False  # a member has joined since the initial delay was last set
    _delay_ms: int = 0
    _phase_deadline_ms: int | None = None
    _last_call_ms: int = 0  # end of the rebalance timeout: an initial delay is never drawn out beyond it

    @property
    def members(self) -> dict[str, Member]:
        return self.membership.members

    @property
    def unused(self) -> bool:
        """True if it has no generation, no member and no handed-out member id: it need not be kept."""
        return not self.members and not self.pending and self.state is GroupState.EMPTY and not self.generation

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        self.membership.check()
        assert (self.state is GroupState.EMPTY) <= (not self.members), "empty_means_no_members"
        assert self.members or self.state in (GroupState.EMPTY, GroupState.PREPARING), "empty_means_no_members"
        for member in self.members.values():
            assert member.joining is None or self.state is GroupState.PREPARING, "joins_and_syncs_in_their_states"
            assert member.syncing is None or self.state is GroupState.COMPLETING, "joins_and_syncs_in_their_states"

    # --- time -------------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """The time at which `tick` has something to do, in ms; None: not before the next request."""
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
        for member in self.membership.expired(now_ms):
            self._lose(member, now_ms)
        if self._phase_deadline_ms is not None and self._phase_deadline_ms <= now_ms:
            self._end_phase(now_ms)
        elif late:
            self._maybe_complete_join(now_ms)

    # --- phases -----------------------------------------------------------------------------------------------------

    def _rebalance(self, initial_delay_ms: int, now_ms: int) -> None:
        """Starts a join phase unless one is under way, and ends it when every member has joined."""
        if self.state is not GroupState.PREPARING:
            self._answer_syncs()
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
            # Only absent static members are left. The phase has no deadline until one of them rejoins; their sessions still expire.
            self._phase_deadline_ms = None
            return
        self.last_generation += 1
        self.generation = self.last_generation
        self._phase_deadline_ms = None
        if not self.members:
            self.is_unwritten = True
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
            self._answer_join(member, self._joined(member))

    def _assign(self, assignments: dict[str, bytes], now_ms: int) -> None:
        self._turn(GroupState.STABLE, now_ms)
        self._end_sync_if_complete()
        self.is_unwritten = True
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            self._beat(member, now_ms)
            if member.syncing is not None:
                reply, member.syncing = member.syncing, None
                self.outbox.append((reply, self._synced(member)))

    def _end_sync_if_complete(self) -> None:
        """The last sync cancels the deadline at which members that have not synced are removed."""
        if not self.unsynced:
            self._phase_deadline_ms = None

    def _lose(self, member: Member, now_ms: int) -> None:
        """A member left or was not heard of: the others rebalance, or the join phase no longer waits for it."""
        self._answer_join(member, JoinGroupResult(codes.UNKNOWN_MEMBER_ID))
        self._answer_sync(member, codes.UNKNOWN_MEMBER_ID)
        self._forget(member)
        if self.state is GroupState.PREPARING:
            self._maybe_complete_join(now_ms)
        else:
            self._start_over(now_ms)

    def _start_over(self, now_ms: int) -> None:
        """Goes from COMPLETING or STABLE into a join phase, which ends at once when no member is left."""
        self._answer_syncs()
        self._initial = False
        self._phase_deadline_ms = now_ms + self.membership.longest_rebalance_ms()
        self._turn(GroupState.PREPARING, now_ms)
        self._maybe_complete_join(now_ms)

    def _turn(self, state: GroupState, now_ms: int) -> None:
        if state not in _NEXT[self.state]:
            raise AssertionError(f"group {self.id}: {self.state} -> {state}")
        self.state, self.changed_ms = state, now_ms

    # --- members and their answers ----------------------------------------------------------------------------------

    def _beat(self, member: Member, now_ms: int) -> None:
        member.deadline_ms = now_ms + member.session_ms

    def _forget(self, member: Member) -> None:
        self.membership.remove(member)
        self.unsynced.discard(member.id)

    def _answer_join(self, member: Member, answer: JoinGroupResult) -> None:
        if member.joining is not None:
            reply, member.joining = member.joining, None
            self.outbox.append((reply, answer))

    def _answer_sync(self, member: Member, code: int) -> None:
        if member.syncing is not None:
            reply, member.syncing = member.syncing, None
            self.outbox.append((reply, SyncGroupResult(code)))

    def _answer_syncs(self) -> None:
        for member in self.members.values():
            self._answer_sync(member, codes.REBALANCE_IN_PROGRESS)
            if self.state is GroupState.COMPLETING:
                member.assignment = b""
        self.unsynced.clear()

    def _joined(self, member: Member) -> JoinGroupResult:
        protocol, leader = self.protocol or "", self.membership.leader or ""
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member.id == leader:
            members = tuple((m.id, m.instance_id, m.metadata(protocol)) for m in self.members.values())
        return JoinGroupResult(codes.NONE, member.id, self.generation, self.protocol_type, protocol, leader, members)

    def _synced(self, member: Member) -> SyncGroupResult:
        return SyncGroupResult(codes.NONE, self.protocol_type, self.protocol, member.assignment)
