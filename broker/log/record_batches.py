"""Record batches that the broker itself writes, and reads again: not compressed, of no producer, without headers.

The format of a record is in record_scan.py, that of a batch in records.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from broker.log.records import CHECKED_FROM, HEADER, MAGIC, OVERHEAD, header_at


class Record(NamedTuple):
    """`value` None: a tombstone; `timestamp` in ms."""

    key: bytes
    value: bytes | None
    timestamp: int


def batch_of(records: Sequence[Record]) -> bytes:
    """A batch of at least one record; its base offset and leader epoch are the log's to fill in."""
    base = records[0].timestamp
    body = b"".join(_packed(each, each.timestamp - base, offset) for offset, each in enumerate(records))
    latest = max(each.timestamp for each in records)
    checked = struct.pack(">hiqqqhii", 0, len(records) - 1, base, latest, -1, -1, -1, len(records)) + body
    length = CHECKED_FROM - OVERHEAD + len(checked)
    return struct.pack(">qiibI", 0, length, -1, MAGIC, crc32c(checked)) + checked


def end_of(data: bytes, offset: int) -> int:
    """The offset behind the whole batches of `data`, the first of which holds `offset`."""
    at = 0
    while at + HEADER.size <= len(data) and at + (batch := header_at(data, at)).size <= len(data):
        at, offset = at + batch.size, batch.last_offset + 1
    return offset


def records_in(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of whole batches of `batch_of`; a cut one at the end is left out."""
    at = 0
    while at + HEADER.size <= len(data) and at + (batch := header_at(data, at)).size <= len(data):
        place = at + HEADER.size
        for _ in range(batch.record_count):
            size, place = _varint(data, place)
            end = place + size
            _, place = _varint(data, place + 1)
            _, place = _varint(data, place)
            length, place = _varint(data, place)
            key, place = data[place : place + length], place + length
            length, place = _varint(data, place)
            yield key, data[place : place + length] if length >= 0 else None
            place = end
        at += batch.size


def _packed(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    key, value, _ = record
    body = b"".join((
        b"\0", _zigzag(timestamp_delta), _zigzag(offset_delta), _zigzag(len(key)), key,
        _zigzag(-1 if value is None else len(value)), value or b"", b"\0",
    ))  # fmt: skip
    return _zigzag(len(body)) + body


def _zigzag(value: int) -> bytes:
    left = value << 1 if value >= 0 else (-value << 1) - 1
    packed = bytearray()
    while left > 0x7F:
        packed.append(left & 0x7F | 0x80)
        left >>= 7
    packed.append(left)
    return bytes(packed)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where the next field begins)"""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7
