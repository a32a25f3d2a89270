"""How a consumer group is kept: rows that msgpack carries, and back.

A row of a group is [epoch, assignment epoch, fingerprint]; one of a member is the list of `to_row`, in which partitions are
[[topic id, [number, ...]], ...]. What no version of this code has written is refused by TypeError, ValueError or IndexError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.groups.consumer.member import ConsumerMember, MemberState, Partitions, Progress, Subscription
from broker.runtime.places import by_topic


def to_row(member: ConsumerMember) -> list[Any]:
    asked, progress = member.subscription, member.progress
    return [
        member.instance_id, member.rack_id, member.client_id, member.client_host, member.rebalance_ms, member.assignor,
        list(asked.names), asked.regex, list(asked.reader), int(progress.state), progress.epoch, member.previous_epoch,
        _by_topic(progress.assigned), _by_topic(progress.revoking), _by_topic(member.target),
    ]  # fmt: skip


def from_row(member_id: str, row: Sequence[Any]) -> ConsumerMember:
    (instance_id, rack_id, client_id, client_host, rebalance_ms, assignor, names, regex, reader, state, epoch, previous,
     assigned, revoking, target) = row  # fmt: skip
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
        progress=Progress(MemberState(state), epoch, _places(assigned), _places(revoking)),
        previous_epoch=previous,
        target=_places(target),
    )


def _by_topic(places: Partitions) -> list[list[Any]]:
    return [[topic, numbers] for topic, numbers in by_topic(sorted(places)).items()]


def _places(rows: Iterable[Any]) -> Partitions:
    return frozenset((sys.intern(topic), number) for topic, numbers in rows for number in numbers)


class KeptGroup:
    """A consumer group as its records say; `members` are rows."""

    def __init__(self) -> None:
        self.epochs: Sequence[Any] = (0, 0, "")
        self.members: dict[str, Sequence[Any]] = {}

    def apply(self, epochs: Sequence[Any], rows: Mapping[str, Sequence[Any] | None]) -> None:
        """A row None: that member is gone."""
        self.epochs = epochs
        for member_id, row in rows.items():
            if row is None:
                self.members.pop(member_id, None)
            else:
                self.members[member_id] = row
