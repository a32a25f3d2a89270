"""Record batches (magic 2) as they travel: their 61-byte header, and the fields that a broker fills in.

The checksum covers everything from the attributes on, so that base offset and leader epoch can be patched without
touching it. Source: https://kafka.apache.org/documentation/#recordbatch.
"""

import struct
from typing import NamedTuple

from broker.runtime.crc32c import crc32c
from broker.wire.primitives import Buffer

HEADER = struct.Struct(">qiibIhiqqqhii")
_UNCHECKED, _CHECKED = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")  # the parts of a header
PLACE = struct.Struct(">qii")  # base offset, length behind these two, leader epoch: what the log fills in
OVERHEAD = 12  # the bytes that a batch's own length doesn't count
CHECKED_FROM = 21  # where the checksum's range starts
ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 21, 35
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
DELETE_HORIZON = 0x40  # the base timestamp is when tombstones, or a marker, may go (KIP-534)
MAGIC = 2
ZSTD = 4
LEAST_RECORD_BYTES = 7


class Batch(NamedTuple):
    """A batch's header; the names are the protocol's."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


class Rejected(Exception):
    """The refusal of a batch by a partition: a code of broker.wire.codes, a sentence, the records it is about."""

    def __init__(self, code: int, message: str, records: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.records = records


def header_at(buffer: Buffer, at: int) -> Batch:
    """Raises struct.error if fewer than HEADER.size bytes are there."""
    return Batch._make(HEADER.unpack_from(buffer, at))


def sealed(
    records: bytes,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    *,
    attributes: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
) -> bytes:
    """A batch of `count` packed records, without a sequence number; timestamps in ms. Its base offset and leader epoch are the
    log's to fill in."""
    return with_records(
        Batch(0, 0, -1, MAGIC, 0, attributes, count - 1, base_timestamp, max_timestamp, producer_id, epoch, -1, count),
        records,
    )


def with_records(header: Batch, records: bytes) -> bytes:
    """The batch of that header and those packed records, from which its length and checksum follow."""
    checked = _CHECKED.pack(*header[5:]) + records
    length = CHECKED_FROM - OVERHEAD + len(checked)
    return _UNCHECKED.pack(header.base_offset, length, header.leader_epoch, MAGIC, crc32c(checked)) + checked


def checksum_holds(buffer: Buffer, batch: Batch, at: int = 0) -> bool:
    return bool(crc32c(memoryview(buffer)[at + CHECKED_FROM : at + batch.size]) == batch.crc)


def with_timestamp(batch_bytes: bytes, max_timestamp: int, *, append_time: bool) -> bytes:
    """The batch with another largest timestamp (ms) in its header, and a checksum to match.

    `append_time`: it is the broker's time, and holds for every record (message.timestamp.type=LogAppendTime).
    """
    changed = bytearray(batch_bytes)
    if append_time:
        attributes = struct.unpack_from(">h", changed, ATTRIBUTES_AT)[0] | LOG_APPEND_TIME
        struct.pack_into(">h", changed, ATTRIBUTES_AT, attributes)
    struct.pack_into(">q", changed, MAX_TIMESTAMP_AT, max_timestamp)
    struct.pack_into(">I", changed, CHECKED_FROM - 4, crc32c(memoryview(changed)[CHECKED_FROM:]))
    return bytes(changed)
