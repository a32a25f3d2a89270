"""The records of a batch one by one: what a lookup by time, the cleaner, and the broker itself need of each.

Their layout is in record_scan.py. Offsets may have gaps: a cleaned batch keeps the deltas of those that are left.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.storage.record_scan import MalformedRecords, varint
from broker.wire.primitives import Buffer, uvarint


class RecordEntry(NamedTuple):
    """Where a record is in its buffer: [start, end). `offset_at`: where its offset delta begins, behind length, attributes and
    timestamp delta (ms); `body_at`: its attributes. Key and value are [key_at, key_end) and [value_at, value_end); an end of -1:
    it has none."""

    start: int
    end: int
    body_at: int
    offset_at: int
    timestamp_delta: int
    offset_delta: int
    key_at: int
    key_end: int
    value_at: int
    value_end: int


def entries(buffer: Buffer, position: int, count: int) -> Iterator[RecordEntry]:
    """`count` records, the first at `position`. Raises IndexError, MalformedRecords."""
    for _ in range(count):
        length, body_at = varint(buffer, position)
        end = body_at + length
        if length < 0 or end > len(buffer):
            raise MalformedRecords("A record is longer than its batch.")
        timestamp, offset_at = varint(buffer, body_at + 1, 64)
        offset, at = varint(buffer, offset_at)
        size, key_at = varint(buffer, at)
        key_end = key_at + size if size >= 0 else -1
        size, value_at = varint(buffer, max(key_end, key_at))
        value_end = value_at + size if size >= 0 else -1
        if max(value_at, value_end) > end:
            raise MalformedRecords("The lengths in a record contradict each other.")
        yield RecordEntry(position, end, body_at, offset_at, timestamp, offset, key_at, key_end, value_at, value_end)
        position = end


def packed_varint(value: int) -> bytes:
    """The encoding that `varint` reads, of 64 bits."""
    return uvarint(value << 1 ^ value >> 63)
