"""Record batches that the broker itself writes, and reads again: not compressed, of no producer, without headers.

The format of a record is in record_scan.py, that of a batch in records.py.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.storage.record_entries import entries, packed_varint
from broker.storage.records import HEADER, Batch, header_at, sealed


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
        for entry in entries(data, at + HEADER.size, batch.record_count):
            value = data[entry.value_at : entry.value_end] if entry.value_end >= 0 else None
            yield data[entry.key_at : entry.key_end], value


def _whole_batches(data: bytes) -> Iterator[tuple[int, Batch]]:
    """The start of each whole batch, and its header."""
    at = 0
    while at + HEADER.size <= len(data) and at + (batch := header_at(data, at)).size <= len(data):
        yield at, batch
        at += batch.size


def _packed(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    key, value, _ = record
    body = b"".join((
        b"\0", packed_varint(timestamp_delta), packed_varint(offset_delta), packed_varint(len(key)), key,
        packed_varint(-1 if value is None else len(value)), value or b"", b"\0",
    ))  # fmt: skip
    return packed_varint(len(body)) + body
