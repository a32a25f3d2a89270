"""The records of a classic group: rows that msgpack carries, and back.

A group is written as Kafka writes its GroupMetadata record: once the leader has assigned, when a static member takes the place of
its former self, and when the last member is gone. So a group that is read is stable; if the process died during a rebalance, it is
the group from before. Each member has only the chosen protocol.

A row of a group is [generation, protocol type, protocol, leader]; one of a member is the list of `to_row`. A row that no version of
this code has written raises TypeError or ValueError.

Source: GroupMetadataValue, GroupMetadataManager.replay of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.kafka.groups.classic.group import ClassicGroup
from broker.kafka.groups.classic.members import Member
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.stored_group import StoredGroup


def group_row(group: ClassicGroup) -> list[object]:
    return [group.generation, group.protocol_type, group.protocol, group.membership.leader]


def to_row(member: Member, protocol: str) -> list[object]:
    return [
        member.instance_id, member.client_id, member.client_host, member.session_ms, member.rebalance_ms,
        member.metadata(protocol), member.assignment,
    ]  # fmt: skip


def restored(
    group_id: str, stored: StoredGroup, last_generation: int, now_ms: int, new_id: Callable[[], str]
) -> ClassicGroup:
    """The group of these rows; its members' sessions begin now. `last_generation`: the last one that a member may know of."""
    row: Sequence[Any] = stored.row
    generation, protocol_type, protocol, leader = row
    group = ClassicGroup(
        id=group_id,
        new_id=new_id,
        generation=generation,
        last_generation=max(last_generation, generation),
        protocol_type=protocol_type,
        protocol=protocol,
        state=GroupState.STABLE,
        changed_ms=now_ms,
    )
    for member_id, each in stored.members.items():
        group.membership.add(_member(member_id, each, protocol, now_ms))
    if leader in group.members:
        group.membership.leader = leader
    return group


def _member(member_id: str, row: Sequence[Any], protocol: str, now_ms: int) -> Member:
    instance_id, client_id, client_host, session_ms, rebalance_ms, metadata, assignment = row
    return Member(
        member_id, instance_id, client_id, client_host, session_ms, rebalance_ms, ((protocol, metadata),),
        now_ms + session_ms, new=False, assignment=assignment,
    )  # fmt: skip
