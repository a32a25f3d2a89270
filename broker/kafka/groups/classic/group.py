"""One consumer group of the classic protocol: the requests of its members. No I/O and no clock; `now_ms` comes in.

Joins and syncs may wait, as rebalance.py says; other requests are answered at once. Members, their ids and the leader are
in membership.py.

Source: KIP-345 (static members), KIP-389 (group.max.size), KIP-394 (known member id), KIP-559, KIP-800, KIP-814 (skip
assignment); ClassicGroup and GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker.kafka.groups.classic.members import (
    GroupConfig,
    JoinGroupResult,
    JoinRequest,
    Member,
    Reply,
    SyncGroupResult,
)
from broker.kafka.groups.classic.messages import SyncGroup
from broker.kafka.groups.classic.rebalance import GroupState, Rebalance
from broker.wire import codes

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""The longest wait for its first rebalance of a member that was never told its id: it can't send heartbeats yet."""


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroup(Rebalance):
    """One group. `new_id()`: a fresh random part of a member id."""

    new_id: Callable[[], str]

    # --- requests ----------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, reply: Reply, limits: GroupConfig, now_ms: int) -> None:
        """Answers now or once the rebalance completes: NONE, or the code of the first rule the request breaks."""
        answer = self._join(request, reply, limits, now_ms)
        if answer is not None:
            self.outbox.append((reply, answer))

    def sync(self, request: SyncGroup, reply: Reply, now_ms: int) -> None:
        """Answers with the member's assignment, once the leader has given one."""
        member_id = request.member
        code = self._known(member_id, request.instance, request.generation)
        protocol_type, protocol = request.protocol
        wrong_type = protocol_type is not None and protocol_type != self.protocol_type
        if not code and (wrong_type or (protocol is not None and protocol != self.protocol)):
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
            self._end_sync_if_complete()
            self.outbox.append((reply, self._synced(member)))
            return
        self._answer_sync(member, codes.REBALANCE_IN_PROGRESS)
        member.await_sync(reply)
        if member_id == self.membership.leader:
            self._assign(dict(request.assignments), now_ms)

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
        """NONE if this identity may commit offsets, else the code. Without one (generation -1, no member) only for an empty
        group."""
        if generation < 0 and self.state is GroupState.EMPTY:
            return codes.NONE
        if generation < 0 and not member_id and instance_id is None:
            return codes.UNKNOWN_MEMBER_ID
        code = self._known(member_id, instance_id, generation)
        if not code and self.state is GroupState.COMPLETING:
            # It has the generation from its join but no assignment yet: it may not own the partitions it read any more.
            return codes.REBALANCE_IN_PROGRESS
        if not code:
            self._beat(self.members[member_id], now_ms)
        return code

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
        if request.asks_for_id:
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
        self.is_unwritten = True
        if request.can_skip:
            leads = member.id == self.membership.leader
            return self._joined(member)._replace(skip_assignment=leads)
        # It can't be told to skip the assignment, so it must not learn that it leads.
        return self._joined(member)._replace(leader=former_leader, members=())

    def _replace(self, former_id: str, member_id: str) -> Member:
        member = self.members[former_id]
        self._answer_join(member, JoinGroupResult(codes.FENCED_INSTANCE_ID, former_id))
        self._answer_sync(member, codes.FENCED_INSTANCE_ID)
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
        self._answer_join(member, JoinGroupResult(codes.REBALANCE_IN_PROGRESS, member.id))
        member.await_join(reply)
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

    def _known(self, member_id: str, instance_id: str | None, generation: int) -> int:
        code = self.membership.identify(member_id, instance_id)
        return code or (codes.NONE if generation == self.generation else codes.ILLEGAL_GENERATION)
