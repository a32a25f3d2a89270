"""The check of an appended batch: one sound batch of magic 2, checked as Kafka's LogValidator checks it.

records_fill_the_batch  The records are as many as the header says, follow each other without a gap in lengths or offset
    deltas, and fill the batch; those of a compressed batch are unpacked for it. So every consumer can read what is stored.
timestamps_within_bounds  With CreateTime each timestamp lies within message.timestamp.before.max.ms and .after.max.ms of
    now, and the header says the largest. A producer may not say LogAppendTime itself.
compacted_records_have_keys  A compacted topic takes no record without a key.

Two bounds that Kafka does not have keep a batch from holding up the shard: a batch may unpack to MAX_UNPACKED_BYTES, and
of more than MOST_CHECKED records the first so many are checked one by one; the others must fit into what is left.
Where Kafka writes a compressed batch anew because its offset deltas do not count up, the batch is refused here.

Source: org.apache.kafka.storage.internals.log.LogValidator, UnifiedLog.analyzeAndValidateRecords.
"""

from itertools import chain

from broker.storage import compression, record_scan, records
from broker.storage.compression import NotUnpacked
from broker.storage.log_config import LogConfig
from broker.storage.record_scan import MalformedRecords, Summary
from broker.storage.records import COMPRESSION, HEADER, LEAST_RECORD_BYTES, MAGIC, ZSTD, Batch, Rejected
from broker.wire import codes

MOST_CHECKED = 10_000
_NO_TIMESTAMP = -1


def validate(batch_bytes: bytes | None, config: LogConfig, now_ms: int) -> tuple[Batch, bytes]:
    """(its header, the bytes to store) of what a producer sent for one partition. Raises Rejected."""
    batch = _header(batch_bytes)
    assert batch_bytes is not None
    if batch.size > config.max_message_bytes:
        raise Rejected(
            codes.MESSAGE_TOO_LARGE, f"The batch has {batch.size} bytes, the topic takes {config.max_message_bytes}."
        )
    _check_header(batch)
    summary = _check_records(batch, batch_bytes)
    if config.compacted and summary.without_key:
        raise Rejected(
            codes.INVALID_RECORD,
            "One or more records have been rejected: a compacted topic needs keys.",
            tuple(chain.from_iterable(summary.without_key)),
        )
    if config.log_append_time:
        return _sealed(records.with_timestamp(batch_bytes, now_ms, append_time=True))
    _check_timestamps(batch, batch_bytes, summary, config, now_ms)
    latest = batch.base_timestamp + summary.latest
    if summary.exact and latest != batch.max_timestamp:
        return _sealed(records.with_timestamp(batch_bytes, latest, append_time=False))
    return batch, batch_bytes


def _sealed(batch_bytes: bytes) -> tuple[Batch, bytes]:
    return records.header_at(batch_bytes, 0), batch_bytes


def _header(batch_bytes: bytes | None) -> Batch:
    """The header of exactly one batch, whose checksum holds. Raises Rejected."""
    if not batch_bytes:
        raise Rejected(codes.INVALID_RECORD, "A produce request must have exactly one record batch per partition.")
    if len(batch_bytes) > 16 and batch_bytes[16] < MAGIC:
        magic = batch_bytes[16]
        raise Rejected(codes.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"Record batches must have magic 2, not {magic}.")
    if len(batch_bytes) < HEADER.size:
        raise Rejected(codes.CORRUPT_MESSAGE, "The batch is shorter than its header.")
    batch = records.header_at(batch_bytes, 0)
    if batch.magic != MAGIC:
        raise Rejected(codes.INVALID_RECORD, f"Record batches must have magic 2, not {batch.magic}.")
    size = batch.size
    if size > len(batch_bytes) or size < HEADER.size:
        raise Rejected(codes.CORRUPT_MESSAGE, f"The batch says {size} bytes, {len(batch_bytes)} came.")
    if size < len(batch_bytes):
        raise Rejected(codes.INVALID_RECORD, "A produce request must have exactly one record batch per partition.")
    if not records.checksum_holds(batch_bytes, batch):
        raise Rejected(codes.CORRUPT_MESSAGE, "The batch does not match its checksum.")
    return batch


def _check_header(batch: Batch) -> None:
    if batch.record_count <= 0 or batch.last_offset_delta != batch.record_count - 1:
        raise Rejected(
            codes.INVALID_RECORD,
            f"{batch.record_count} records do not go with last offset {batch.last_offset_delta}.",
        )
    if batch.attributes:
        _check_attributes(batch)
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise Rejected(codes.INVALID_RECORD, "A batch with a producer id needs an epoch and a sequence number.")


def _check_attributes(batch: Batch) -> None:
    if batch.attributes & COMPRESSION > ZSTD:
        raise Rejected(codes.INVALID_RECORD, f"Compression type {batch.attributes & COMPRESSION} is unknown.")
    if batch.attributes & records.CONTROL:
        raise Rejected(codes.INVALID_RECORD, "Clients may not write control records.")
    if batch.attributes & records.TRANSACTIONAL and batch.producer_id < 0:
        raise Rejected(codes.INVALID_RECORD, "A transactional batch needs a producer id.")
    if batch.attributes & records.LOG_APPEND_TIME:
        raise Rejected(codes.INVALID_TIMESTAMP, "A producer may not set the timestamp type LogAppendTime.")


def _check_records(batch: Batch, batch_bytes: bytes) -> Summary:
    """Raises Rejected unless the records are as the header says (records_fill_the_batch)."""
    try:
        buffer, start = compression.records_of(batch_bytes, batch.attributes & COMPRESSION)
        if batch.record_count * LEAST_RECORD_BYTES > len(buffer) - start:
            raise MalformedRecords(f"{batch.record_count} records do not fit into {len(buffer) - start} bytes.")
        return record_scan.scan(buffer, start, batch.record_count, MOST_CHECKED)
    except (NotUnpacked, MalformedRecords) as fault:
        raise Rejected(codes.INVALID_RECORD, str(fault)) from None


def _check_timestamps(batch: Batch, batch_bytes: bytes, summary: Summary, config: LogConfig, now_ms: int) -> None:
    """Raises Rejected for a timestamp out of its bounds (timestamps_within_bounds)."""
    earliest = now_ms - config.timestamp_before_max_ms
    latest = now_ms + config.timestamp_after_max_ms
    base = batch.base_timestamp
    if earliest <= base + summary.earliest and max(base + summary.latest, batch.max_timestamp) <= latest:
        return
    if base == batch.max_timestamp == _NO_TIMESTAMP and summary.earliest == summary.latest == 0:
        return
    raise Rejected(
        codes.INVALID_TIMESTAMP,
        f"Timestamps from {base + summary.earliest} to {max(base + summary.latest, batch.max_timestamp)} are not all "
        f"within [{earliest}, {latest}].",
    )
