"""Record batches that the broker itself writes, and reads again: not compressed, of no producer, without headers.

The format of a record is in record_scan.py, that of a batch in records.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.log.record_scan import varint
from broker.log.records import HEADER, Batch, header_at, sealed
from broker.protocol.primitives import uvarint


class Record(NamedTuple):
    """`value` None: a tombstone; `timestamp` in ms."""

    key: bytes
    value: bytes | None
    timestamp: int


def batch_of(records: Sequence[Record]) -> bytes:
    """A batch of at least one record; its base offset and leader epoch are the log's to fill in."""
    base = records[0].timestamp
    body = b"".join(_packed(each, each.timestamp - base, offset) for offset, each in enumerate(records))
    return sealed(body, len(records), base, max(each.timestamp for each in records))


def end_of(data: bytes, offset: int) -> int:
    """The offset behind the whole batches of `data`, the first of which holds `offset`."""
    for _, batch in _whole_batches(data):
        offset = batch.last_offset + 1
    return offset


def records_in(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of whole batches of `batch_of`; a cut one at the end is left out."""
    for at, batch in _whole_batches(data):
        place = at + HEADER.size
        for _ in range(batch.record_count):
            size, place = varint(data, place)
            end = place + size
            _, place = varint(data, place + 1, 64)
            _, place = varint(data, place)
            length, place = varint(data, place)
            key, place = data[place : place + length], place + length
            length, place = varint(data, place)
            yield key, data[place : place + length] if length >= 0 else None
            place = end


def _whole_batches(data: bytes) -> Iterator[tuple[int, Batch]]:
    """Where each begins, and its header."""
    at = 0
    while at + HEADER.size <= len(data) and at + (batch := header_at(data, at)).size <= len(data):
        yield at, batch
        at += batch.size


def _packed(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    key, value, _ = record
    body = b"".join((
        b"\0", _varint(timestamp_delta), _varint(offset_delta), _varint(len(key)), key,
        _varint(-1 if value is None else len(value)), value or b"", b"\0",
    ))  # fmt: skip
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    """What record_scan.varint reads."""
    return uvarint(value << 1 ^ value >> 63)
