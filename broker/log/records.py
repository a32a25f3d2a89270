"""Record batches (magic 2) as they travel: their 61-byte header, what makes one acceptable, and its records' outlines.

Nothing is ever decompressed. The checksum covers everything from the attributes on, so that base offset and leader
epoch can be patched without touching it.
Source: https://kafka.apache.org/documentation/#recordbatch; org.apache.kafka.storage.internals.log.LogValidator.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from broker.protocol import codes
from broker.protocol.primitives import Buffer

HEADER = struct.Struct(">qiibIhiqqqhii")
PLACE = struct.Struct(">qii")  # base offset, length behind these two, leader epoch: what the log fills in
OVERHEAD = 12  # the bytes that a batch's own length doesn't count
CHECKED_FROM = 21  # where the checksum's range starts
ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 21, 35
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
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
    """Why a partition doesn't take a batch: a code of broker.protocol.codes, a sentence, the records it is about."""

    def __init__(self, code: int, message: str, records: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.records = records


def header_at(buffer: Buffer, at: int) -> Batch:
    """Raises struct.error if fewer than HEADER.size bytes are there."""
    return Batch._make(HEADER.unpack_from(buffer, at))


def checksum_holds(buffer: Buffer, batch: Batch, at: int = 0) -> bool:
    with memoryview(buffer) as image, image[at + CHECKED_FROM : at + batch.size] as checked:
        return bool(crc32c(checked) == batch.crc)


def validate(records: bytes | None) -> Batch:
    """The header of what a producer sent for one partition, which must be exactly one sound batch; raises Rejected."""
    if not records:
        raise Rejected(codes.INVALID_RECORD, "A produce request must have exactly one record batch per partition.")
    if len(records) > 16 and records[16] < 2:
        raise Rejected(codes.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"Record batches must have magic 2, not {records[16]}.")
    if len(records) < HEADER.size:
        raise Rejected(codes.CORRUPT_MESSAGE, "The batch is shorter than its header.")
    batch = header_at(records, 0)
    if batch.magic != 2:
        raise Rejected(codes.INVALID_RECORD, f"Record batches must have magic 2, not {batch.magic}.")
    if batch.size > len(records) or batch.size < HEADER.size:
        raise Rejected(codes.CORRUPT_MESSAGE, f"The batch says {batch.size} bytes, {len(records)} came.")
    if batch.size < len(records):
        raise Rejected(codes.INVALID_RECORD, "A produce request must have exactly one record batch per partition.")
    if not checksum_holds(records, batch):
        raise Rejected(codes.CORRUPT_MESSAGE, "The batch does not match its checksum.")
    _check_contents(batch)
    return batch


def _check_contents(batch: Batch) -> None:
    if batch.record_count <= 0 or batch.last_offset_delta != batch.record_count - 1:
        raise Rejected(
            codes.INVALID_RECORD,
            f"{batch.record_count} records do not go with last offset {batch.last_offset_delta}.",
        )
    compression = batch.attributes & COMPRESSION
    if compression > ZSTD:
        raise Rejected(codes.INVALID_RECORD, f"Compression type {compression} is unknown.")
    if not compression and batch.record_count * LEAST_RECORD_BYTES > batch.size - HEADER.size:
        raise Rejected(codes.INVALID_RECORD, f"{batch.record_count} records do not fit into {batch.size} bytes.")
    if batch.attributes & CONTROL:
        raise Rejected(codes.INVALID_RECORD, "Clients may not write control records.")
    if batch.attributes & TRANSACTIONAL:
        raise Rejected(codes.INVALID_TXN_STATE, "Transactions are not served here.")
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise Rejected(codes.INVALID_RECORD, "A batch with a producer id needs an epoch and a sequence number.")


class Outline(NamedTuple):
    """A record without its contents."""

    offset_delta: int
    timestamp_delta: int
    has_key: bool


def outlines(buffer: Buffer, at: int, batch: Batch) -> Iterator[Outline]:
    """The records of an uncompressed batch that starts at `at`; raises Rejected where they contradict their lengths."""
    end = at + batch.size
    position = at + HEADER.size
    try:
        for _ in range(batch.record_count):
            length, position = varint(buffer, position)
            after = position + length
            if length < 0 or after > end:
                break
            timestamp_delta, inner = varint(buffer, position + 1)
            offset_delta, inner = varint(buffer, inner)
            key_length, inner = varint(buffer, inner)
            yield Outline(offset_delta, timestamp_delta, key_length >= 0)
            position = after
        else:
            if position == end:
                return
    except IndexError:
        pass
    raise Rejected(codes.INVALID_RECORD, "The records' lengths do not add up to the batch's.")


def varint(buffer: Buffer, at: int) -> tuple[int, int]:
    """A zigzag varint, of at most 64 bits: (value, next offset). Raises IndexError at the end of the buffer."""
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise IndexError("a varint without end")


def require_keys(records: Buffer, batch: Batch) -> None:
    """Compacted topics take no record without a key; what is compressed passes unseen. Raises Rejected."""
    if batch.attributes & COMPRESSION:
        return
    without = tuple(index for index, record in enumerate(outlines(records, 0, batch)) if not record.has_key)
    if without:
        raise Rejected(
            codes.INVALID_RECORD, "One or more records have been rejected: a compacted topic needs keys.", without
        )


def stamped(records: bytes, now_ms: int) -> bytes:
    """The batch with the broker's time on it (message.timestamp.type=LogAppendTime), and a checksum to match."""
    stamped = bytearray(records)
    struct.pack_into(
        ">h", stamped, ATTRIBUTES_AT, struct.unpack_from(">h", stamped, ATTRIBUTES_AT)[0] | LOG_APPEND_TIME
    )
    struct.pack_into(">q", stamped, MAX_TIMESTAMP_AT, now_ms)
    struct.pack_into(">I", stamped, CHECKED_FROM - 4, crc32c(memoryview(stamped)[CHECKED_FROM:]))
    return bytes(stamped)
