"""Records of __consumer_offsets as Kafka writes them: offsets, groups of the classic and of the consumer protocol.

Keys and values begin with their version (i16), which tells keys apart. Those of flexible versions (KIP-482) have compact lengths
and a list of tagged fields at the end. Records of share groups and of the expressions of consumer groups are not written.
Source: OffsetCommit, GroupMetadata and ConsumerGroup* Key/Value, GroupCoordinatorRecordHelpers of Kafka 4.1.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import pack
from typing import Any, NamedTuple

from broker.kafka.groups.committed_offsets import OffsetAndMetadata
from broker.wire.primitives import compact_array, compact_string, string

OFFSET, GROUP = 1, 2
CONSUMER_GROUP, MEMBER, TARGET, MEMBER_TARGET, MEMBER_ASSIGNMENT = 3, 5, 6, 7, 8
_NO_TAGS = b"\0"
_NO_CLASSIC_MEMBER = b"\1\0\1\0"  # one tagged field, of one byte: null

Key = tuple[Any, ...]
"""(OFFSET, group, topic, partition), (MEMBER or MEMBER_*, group, member id), (any other kind, group)."""


class GroupMember(NamedTuple):
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_ms: int
    session_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A group of the classic protocol. `changed_ms` is the time of day, -1 if it is not known."""

    protocol_type: str
    generation: int
    protocol: str | None = None
    leader: str | None = None
    changed_ms: int = -1
    members: tuple[GroupMember, ...] = ()


def key_of(key: Key) -> bytes:
    packed = pack(">h", key[0]) + b"".join(string(name) for name in key[1:3])
    return packed + pack(">i", key[3]) if key[0] == OFFSET else packed


class RecordValue(NamedTuple):
    """The value of a record, and its timestamp; -1: it has none."""

    encoded: bytes
    timestamp_ms: int = -1


def value_of(key: Key, value: Any) -> RecordValue:
    """`value`: an OffsetAndMetadata, a GroupMetadata, or the bytes that `consumer_group` yields."""
    if key[0] == OFFSET:
        return RecordValue(_offset(value), value.committed_ms)
    return RecordValue(_group(value), value.changed_ms) if key[0] == GROUP else RecordValue(value)


def consumer_group(
    name: str, row: Sequence[object], members: Iterable[tuple[str, Sequence[Any]]]
) -> Iterator[tuple[Key, bytes]]:
    """The records of a consumer group, by its row and those of its members (consumer/records.py says what is in the rows)."""
    epoch, assignment_epoch, *_ = row
    yield (CONSUMER_GROUP, name), pack(">hi", 0, epoch) + _NO_TAGS
    yield (TARGET, name), pack(">hi", 0, assignment_epoch) + _NO_TAGS
    for member_id, member in members:
        (instance_id, rack_id, client_id, client_host, rebalance_ms, assignor, names, regex, _, state, member_epoch,
         previous_epoch, assigned, revoking, target) = member  # fmt: skip
        asked = b"".join(compact_string(text) for text in (instance_id, rack_id, client_id, client_host))
        asked += compact_array([compact_string(topic) for topic in names]) + compact_string(regex or "")
        asked += pack(">i", rebalance_ms) + compact_string(assignor)
        yield (MEMBER, name, member_id), pack(">h", 0) + asked + _NO_CLASSIC_MEMBER
        yield (MEMBER_TARGET, name, member_id), pack(">h", 0) + _places(target) + _NO_TAGS
        progress = pack(">hiib", 0, member_epoch, previous_epoch, state) + _places(assigned) + _places(revoking)
        yield (MEMBER_ASSIGNMENT, name, member_id), progress + _NO_TAGS


def _offset(value: OffsetAndMetadata) -> bytes:
    packed = pack(">hqi", 4, value.offset, value.leader_epoch) + compact_string(value.metadata)
    return packed + pack(">q", value.committed_ms) + _NO_TAGS


def _group(group: GroupMetadata) -> bytes:
    head = pack(">h", 3) + string(group.protocol_type) + pack(">i", group.generation)
    head += string(group.protocol) + string(group.leader) + pack(">qi", group.changed_ms, len(group.members))
    return head + b"".join(_member(each) for each in group.members)


def _member(member: GroupMember) -> bytes:
    names = (member.id, member.instance_id, member.client_id, member.client_host)
    packed = b"".join(string(name) for name in names) + pack(">ii", member.rebalance_ms, member.session_ms)
    return packed + _bytes(member.subscription) + _bytes(member.assignment)


def _places(rows: Iterable[Sequence[Any]]) -> bytes:
    """[[topic id (hex), [number, ...]], ...]"""
    return compact_array([
        bytes.fromhex(topic_id) + compact_array([pack(">i", number) for number in numbers]) + _NO_TAGS
        for topic_id, numbers in rows
    ])  # fmt: skip


def _bytes(data: bytes) -> bytes:
    return pack(">i", len(data)) + data
