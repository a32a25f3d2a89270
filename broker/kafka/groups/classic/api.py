"""JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5, DescribeGroups 0-6, ListGroups 0-5, DeleteGroups 0-2.

The classic group protocol: KIP-62, KIP-134, KIP-345 (static members), KIP-389, KIP-394 (from version 4), KIP-511,
KIP-518 (states), KIP-559, KIP-800, KIP-814, KIP-848 (types), KIP-1043 (error of DescribeGroups 6).

A group of another broker is NOT_COORDINATOR. So is one whose home shard died during the call: every client then looks
for its coordinator again, finds this broker, and goes on. ListGroups and DeleteGroups are of groups of both protocols;
DescribeGroups does not find those of the consumer protocol (consumer_groups.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups import guards
from broker.kafka.groups.classic.members import JoinGroupResult, JoinRequest, SyncGroupResult
from broker.kafka.groups.classic.messages import (
    DEAD,
    ClassicGroupDescription,
    ClassicHeartbeat,
    DescribeClassicGroup,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from broker.kafka.groups.messages import DeleteGroup, GroupListing, ListGroups
from broker.kafka.groups.router import GroupRouter
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.authorized_operations import ALL_GROUP_OPERATIONS, OPERATIONS_UNKNOWN
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.loop.deferred import MaybeDeferred, gather, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import (
        DeleteGroupsRequest,
        DescribeGroupsRequest,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        ListGroupsRequest,
        SyncGroupRequest,
    )
    from broker.wire.responses import (
        DeleteGroupsTypes,
        DescribeGroupsTypes,
        HeartbeatTypes,
        JoinGroupTypes,
        LeaveGroupTypes,
        ListGroupsTypes,
        SyncGroupTypes,
    )

_WAIT_S = 3600.0
"""A join or sync may wait as long as the slowest member takes; the death of its home ends the wait at once."""


def routes(cluster: ClusterMetadata, groups: GroupRouter, turns: Turns) -> list[GuardedRoute]:
    handler = _Groups(cluster, groups, turns)
    return [
        GuardedRoute(11, handler.join, guards.join),
        GuardedRoute(12, handler.heartbeat, guards.heartbeat),
        GuardedRoute(13, handler.leave, guards.leave),
        GuardedRoute(14, handler.sync, guards.sync),
        GuardedRoute(15, handler.describe, guards.describe),
        GuardedRoute(16, handler.list, guards.list_groups),
        GuardedRoute(42, handler.delete, guards.delete_groups),
    ]


class _Groups:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, turns: Turns) -> None:
        self._turns = turns
        self._cluster = cluster
        self._groups = groups

    def join(self, request: JoinGroupRequest, call: Call[JoinGroupTypes]) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _join_response(call, JoinGroupResult(codes.NOT_COORDINATOR, request.member_id))

        if not self._cluster.coordinates(request.group_id):
            return lost()
        session_ms = from_timedelta(request.session_timeout)
        rebalance_ms = from_timedelta(request.rebalance_timeout) if call.api_version >= 1 else session_ms
        fields = JoinRequest(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=call.client_id or "",
            client_host=f"/{call.ip}",
            session_ms=session_ms,
            rebalance_ms=rebalance_ms if rebalance_ms >= 0 else session_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            id_required=call.api_version >= 4,
            can_skip=call.api_version >= 9,
        )
        answer = self._groups.ask(JoinGroup(request.group_id, fields), timeout_s=_WAIT_S)
        return or_lost(then(answer, lambda joined: _join_response(call, JoinGroupResult(*joined))), lost)

    def sync(self, request: SyncGroupRequest, call: Call[SyncGroupTypes]) -> MaybeDeferred[Message]:
        def lost() -> Message:
            return _sync_response(call, SyncGroupResult(codes.NOT_COORDINATOR))

        if not self._cluster.coordinates(request.group_id):
            return lost()
        if call.api_version >= 5 and None in (request.protocol_type, request.protocol_name):
            return _sync_response(call, SyncGroupResult(codes.INCONSISTENT_GROUP_PROTOCOL))  # KIP-559
        message = SyncGroup(
            group=request.group_id,
            member=request.member_id,
            instance=request.group_instance_id,
            generation=request.generation_id,
            protocol=(request.protocol_type, request.protocol_name),
            assignments=[(each.member_id, each.assignment) for each in request.assignments],
        )
        answer = self._groups.ask(message, timeout_s=_WAIT_S)
        return or_lost(then(answer, lambda synced: _sync_response(call, SyncGroupResult(*synced))), lost)

    def heartbeat(self, request: HeartbeatRequest, call: Call[HeartbeatTypes]) -> MaybeDeferred[Message]:
        def response(code: int) -> HeartbeatTypes.HeartbeatResponse:
            return call.types.HeartbeatResponse(error_code=code)

        if not self._cluster.coordinates(request.group_id):
            return response(codes.NOT_COORDINATOR)
        instance = request.group_instance_id
        message = ClassicHeartbeat(request.group_id, request.member_id, instance, request.generation_id)
        answer = self._groups.ask(message)
        return or_lost(then(answer, response), lambda: response(codes.NOT_COORDINATOR))

    def leave(self, request: LeaveGroupRequest, call: Call[LeaveGroupTypes]) -> MaybeDeferred[Message]:
        types = call.types
        if call.api_version >= 3:
            members = [(each.member_id, each.group_instance_id) for each in request.members]
        else:
            members = [(request.member_id, None)]

        def response(results: list[int]) -> LeaveGroupTypes.LeaveGroupResponse:
            if call.api_version < 3:
                return types.LeaveGroupResponse(error_code=results[0])
            each = tuple(
                types.MemberResponse(member_id=member, group_instance_id=instance, error_code=code)
                for (member, instance), code in zip(members, results, strict=True)
            )
            return types.LeaveGroupResponse(error_code=codes.NONE, members=each)

        def refuse(code: int) -> LeaveGroupTypes.LeaveGroupResponse:
            return types.LeaveGroupResponse(error_code=code, members=())

        if not request.group_id:
            return refuse(codes.INVALID_GROUP_ID)
        if not self._cluster.coordinates(request.group_id):
            return refuse(codes.NOT_COORDINATOR)
        answer = self._groups.ask(LeaveGroup(request.group_id, members))
        return or_lost(then(answer, response), lambda: refuse(codes.NOT_COORDINATOR))

    def describe(self, request: DescribeGroupsRequest, call: Call[DescribeGroupsTypes]) -> MaybeDeferred[Message]:
        wanted = [*dict.fromkeys(request.groups)]
        here = [group for group in wanted if self._cluster.coordinates(group)]

        def ask(group: str) -> MaybeDeferred[ClassicGroupDescription | None]:
            asked = self._groups.ask(DescribeClassicGroup(group))
            return or_lost(then(asked, lambda fields: ClassicGroupDescription(*fields)), _none)

        def response(answers: list[ClassicGroupDescription | None]) -> DescribeGroupsTypes.DescribeGroupsResponse:
            found = dict(zip(here, answers, strict=True))
            groups = tuple(_described(call, request, group, found.get(group)) for group in wanted)
            return call.types.DescribeGroupsResponse(groups=groups)

        return then(ask_each(self._turns, here, ask), response)

    def list(self, request: ListGroupsRequest, call: Call[ListGroupsTypes]) -> MaybeDeferred[Message]:
        types = call.types
        states = {state.lower() for state in request.states_filter}
        kinds = {kind.lower() for kind in request.types_filter}

        def response(answers: list[list[GroupListing] | None]) -> ListGroupsTypes.ListGroupsResponse:
            listed = tuple(
                types.ListedGroup(
                    group_id=each.group, protocol_type=each.protocol_type, group_state=each.state, group_type=each.kind
                )
                for answer in answers
                for each in answer or ()
                if (not states or each.state.lower() in states) and (not kinds or each.kind in kinds)
            )
            # While a shard is coming back its groups are not known: the client is to ask again.
            code = codes.COORDINATOR_LOAD_IN_PROGRESS if None in answers else codes.NONE
            return types.ListGroupsResponse(error_code=code, groups=listed)

        def ask(shard: int) -> MaybeDeferred[list[GroupListing] | None]:
            asked = self._groups.ask_shard(shard, ListGroups())
            return or_lost(then(asked, lambda rows: [GroupListing(*row) for row in rows]), _none)

        return then(gather([ask(shard) for shard in self._groups.shards]), response)

    def delete(self, request: DeleteGroupsRequest, call: Call[DeleteGroupsTypes]) -> MaybeDeferred[Message]:
        types = call.types
        wanted = [*dict.fromkeys(request.groups_names)]

        def response(answers: list[int]) -> DeleteGroupsTypes.DeleteGroupsResponse:
            results = tuple(
                types.DeletableGroupResult(group_id=group, error_code=code)
                for group, code in zip(wanted, answers, strict=True)
            )
            return types.DeleteGroupsResponse(results=results)

        def ask(group: str) -> MaybeDeferred[int]:
            if not self._cluster.coordinates(group):
                return codes.NOT_COORDINATOR
            return or_lost(self._groups.ask(DeleteGroup(group)), lambda: codes.NOT_COORDINATOR)

        return then(ask_each(self._turns, wanted, ask), response)


def _join_response(call: Call[JoinGroupTypes], joined: JoinGroupResult) -> JoinGroupTypes.JoinGroupResponse:
    types = call.types
    members = tuple(
        types.JoinGroupResponseMember(member_id=member, group_instance_id=instance, metadata=bytes(metadata))
        for member, instance, metadata in joined.members
    )
    protocol = joined.protocol
    return types.JoinGroupResponse(
        error_code=joined.code,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=protocol if protocol is not None or call.api_version >= 7 else "",
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=members,
    )


def _sync_response(call: Call[SyncGroupTypes], synced: SyncGroupResult) -> SyncGroupTypes.SyncGroupResponse:
    return call.types.SyncGroupResponse(
        error_code=synced.code,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=bytes(synced.assignment),
    )


def _described(
    call: Call[DescribeGroupsTypes], request: DescribeGroupsRequest, group: str, found: ClassicGroupDescription | None
) -> DescribeGroupsTypes.DescribedGroup:
    """`found`: None if the group's home could not be asked, or is at another broker."""
    types = call.types
    code, message = codes.NONE, None
    if found is None:
        code, found = codes.NOT_COORDINATOR, ClassicGroupDescription("")
    elif found.state == DEAD and call.api_version >= 6:
        code, message = codes.GROUP_ID_NOT_FOUND, f"Group {group} not found."
    allowed = request.include_authorized_operations and found.state not in ("", DEAD)
    return types.DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol,
        members=tuple(
            types.DescribedGroupMember(
                member_id=member, group_instance_id=instance, client_id=client, client_host=host,
                member_metadata=bytes(metadata), member_assignment=bytes(assignment),
            )
            for member, instance, client, host, metadata, assignment in found.members
        ),
        authorized_operations=ALL_GROUP_OPERATIONS if allowed else OPERATIONS_UNKNOWN,
    )  # fmt: skip


def _none() -> None:
    return None
