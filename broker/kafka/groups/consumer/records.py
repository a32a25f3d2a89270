"""The records of a consumer group: rows that msgpack carries, and back.

A row of a group is [epoch, assignment epoch, fingerprint]; one of a member is the list of `to_row`, in which partitions are
[[topic id, [number, ...]], ...]. What no version of this code has written is refused by TypeError, ValueError or IndexError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from broker.kafka.groups.consumer.member import ConsumerMember, MemberState, Reconciled, Subscription
from broker.kafka.groups.modern.member import PackedPartitions, TopicIdPartition, TopicIdPartitions
from broker.runtime.partitions_by_topic import by_topic


def to_row(member: ConsumerMember) -> list[object]:
    asked, progress = member.subscription, member.progress
    return [
        member.instance_id, member.rack_id, member.client_id, member.client_host, member.rebalance_ms, member.assignor,
        list(asked.names), asked.regex, list(asked.reader), int(progress.state), progress.epoch, member.previous_epoch,
        packed(progress.assigned), packed(progress.revoking), packed(member.target),
        [[*place, epoch] for place, epoch in member.since.items()],
    ]  # fmt: skip


def from_row(member_id: str, row: Sequence[Any]) -> ConsumerMember:
    (instance_id, rack_id, client_id, client_host, rebalance_ms, assignor, names, regex, reader, state, epoch, previous,
     assigned, revoking, target, *since) = row  # fmt: skip
    began = (
        since[0] if since else ()
    )  # rows of before KIP-1251 have none: such partitions are committed with the epoch of now
    user, address = reader
    return ConsumerMember(
        id=member_id,
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_ms=rebalance_ms,
        assignor=assignor,
        subscription=Subscription(tuple(sys.intern(name) for name in names), regex, (user, address)),
        progress=Reconciled(MemberState(state), epoch, unpacked(assigned), unpacked(revoking)),
        since={(sys.intern(topic), number): epoch for topic, number, epoch in began},
        previous_epoch=previous,
        target=unpacked(target),
    )


def packed(places: Iterable[TopicIdPartition]) -> list[PackedPartitions]:
    return list(by_topic(sorted(places)).items())


def unpacked(rows: Iterable[PackedPartitions]) -> TopicIdPartitions:
    return frozenset((sys.intern(topic), number) for topic, numbers in rows for number in numbers)
