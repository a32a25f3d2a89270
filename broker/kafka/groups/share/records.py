"""The records of a share group: rows that msgpack carries, and back.

A row of a group is [epoch, assignment epoch, fingerprint, initialized partitions]; one of a member is the list of `to_row`.
Partitions are [[topic id, [number, ...]], ...]. What no version of this code has written is refused by TypeError, ValueError
or IndexError.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from broker.kafka.groups.consumer.records import packed, unpacked
from broker.kafka.groups.share.member import ShareMember


def to_row(member: ShareMember) -> list[object]:
    return [
        member.rack_id, member.client_id, member.client_host, list(member.names), member.epoch, member.previous_epoch,
        packed(member.assigned), packed(member.target),
    ]  # fmt: skip


def from_row(member_id: str, row: Sequence[Any]) -> ShareMember:
    rack_id, client_id, client_host, names, epoch, previous, assigned, target = row
    return ShareMember(
        id=member_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        names=tuple(sys.intern(name) for name in names),
        epoch=epoch,
        previous_epoch=previous,
        assigned=unpacked(assigned),
        target=unpacked(target),
    )
