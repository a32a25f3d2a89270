"""The home of the groups of the classic protocol, as other shards and handlers ask it: JoinGroup, SyncGroup, Heartbeat and
DescribeGroups.

Operations take and return what msgpack carries. Joins and syncs may be answered later.
Source: GroupCoordinatorService, GroupMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.kafka.groups.classic.classic_groups import ClassicGroups
from broker.kafka.groups.classic.members import JoinGroupResult, JoinRequest
from broker.kafka.groups.classic.messages import DEAD, ClassicGroupDescription, MemberDescription, SyncGroup
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.committed_offsets import CommittedOffsets
from shards.loop.deferred import Deferred, MaybeDeferred


class ClassicCoordinator:
    """`admit_classic(group)`: NONE if a member of the classic protocol may join, for which an empty consumer group gives way; else
    the error code.

    `is_other(group)`: whether it is of another protocol. `served()` is called after each operation that may set a deadline.
    """

    def __init__(
        self,
        groups: ClassicGroups,
        offsets: CommittedOffsets,
        *,
        admit_classic: Callable[[str], int],
        is_other: Callable[[str], bool],
        served: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._admit_classic = admit_classic
        self._is_other = is_other
        self._served = served
        self._now_ms = now_ms

    def join(self, group: str, fields: Sequence[Any]) -> MaybeDeferred[object]:
        """`fields` of a JoinRequest -> fields of a JoinGroupResult."""
        answer: Deferred[object] = Deferred()
        request = JoinRequest(*fields)
        code = self._admit_classic(group)
        if code:
            return JoinGroupResult(code, request.member_id)
        protocols = tuple((name, bytes(data)) for name, data in request.protocols)
        self._groups.join(group, request._replace(protocols=protocols), answer.resolve, self._now_ms())
        self._served()
        return answer.result() if answer.resolved else answer

    def sync(
        self, group: str, member: str, instance: str | None, generation: int,
        protocol: Sequence[str | None], assignments: Sequence[Any],
    ) -> MaybeDeferred[object]:  # fmt: skip
        """-> the fields of a SyncGroupResult."""
        answer: Deferred[object] = Deferred()
        shares = [(member_id, bytes(share)) for member_id, share in assignments]
        request = SyncGroup(group, member, instance, generation, (protocol[0], protocol[1]), shares)
        self._groups.sync(request, answer.resolve, self._now_ms())
        self._served()
        return answer.result() if answer.resolved else answer

    def heartbeat(self, group: str, member: str, instance: str | None, generation: int) -> int:
        return self._groups.heartbeat(group, member, instance, generation, self._now_ms())

    def describe(self, group_id: str) -> ClassicGroupDescription:
        """An unknown group, or one of another protocol, is DEAD; one that has only committed offsets is EMPTY."""
        group = self._groups.get(group_id)
        if group is None:
            if group_id not in self._offsets or self._is_other(group_id):
                return ClassicGroupDescription(DEAD)
            return ClassicGroupDescription(GroupState.EMPTY.value, self._offsets.generation(group_id)[1] or "")
        stable = group.state is GroupState.STABLE
        protocol = (group.protocol or "") if stable else ""
        members = [
            MemberDescription(m.id, m.instance_id, m.client_id, m.client_host, m.metadata(protocol), m.assignment)
            for m in group.members.values()
        ]
        return ClassicGroupDescription(group.state.value, group.protocol_type or "", protocol, members)
