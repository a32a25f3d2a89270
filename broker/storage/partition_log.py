"""A partition's log: batches as they were received, in files, with only base offset and leader epoch filled in.

in_the_file_before_told  an appended batch is in the file before its offset is told to a client. Nothing is flushed
    (Kafka's default). So a batch survives the death of the process, not of the machine
batches_whole_or_not_at_all  a batch is in the log whole or not at all: a failed write is cut off again, a torn tail when
    the log is opened
idempotent_batches_once  an idempotent producer's batch is in the log once, however often it was sent
    (broker/storage/producer_state.py)
log_memory_is_bounded  memory is bounded: an index per segment (broker/storage/segment.py); per partition producers, and a
    few places where readers left off; aborted transactions at most a fifth of the bytes that their records take on disk
    (broker/storage/transaction_index.py)
committed_up_to_stable_offset  who reads committed records reads up to the last stable offset: the first offset of the
    transactions that are ongoing, or the end. It never falls. An answer names the aborted transactions among the records read
"""

import contextlib
import os
from bisect import bisect_right
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.storage import compression, control_records, record_entries, records, validation
from broker.storage.compression import NotUnpacked
from broker.storage.control_records import EndTransactionMarker
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.log_segments import LogSegments, OutOfRange
from broker.storage.record_scan import MalformedRecords
from broker.storage.records import PLACE, TRANSACTIONAL, Batch, Rejected
from broker.storage.segment import NO_TIMESTAMP, BatchPosition, LogSegment
from broker.wire import codes
from broker.wire.answer_parts import FileSlice

LEADER_EPOCH = 0  # leaders never change
_RESUME_PLACES = 64
ANY_BYTES = 1 << 62


class AppendInfo(NamedTuple):
    """The place of a batch, for a repeated one where it first went. `append_time_ms` is -1 unless the topic has log append time."""

    base_offset: int
    append_time_ms: int
    start_offset: int


class TimestampedOffset(NamedTuple):
    """A record's offset, and its timestamp (ms)."""

    offset: int
    timestamp_ms: int


class AppendWaiter(Protocol):
    """A fetch that waits for a log to grow, or to go away."""

    def appended(self, size_bytes: int) -> None: ...

    def closed(self) -> None: ...


class PartitionLog(LogSegments):
    """The log of a partition: its segments, and what is written to them and read."""

    def __init__(self, directory: str, topic_id: UUID, files: OpenFiles, limits: LogConfig | None = None) -> None:
        self.waiters: set[AppendWaiter] = set()
        super().__init__(directory, topic_id, files, limits)

    def close(self) -> None:
        """The log of a topic that is gone or moves: its waiters are told."""
        for waiter in tuple(self.waiters):
            waiter.closed()
        self._forget()

    # Writing

    def append(self, batch_bytes: bytes | None, now_ms: int, verified_at: int | None = None) -> AppendInfo:
        """Puts one batch at the end; raises Rejected, with KAFKA_STORAGE_ERROR if the disk doesn't take it.

        `verified_at`: what ProducerStateManager.require_verified is to know of a transactional batch.
        """
        batch, batch_bytes = validation.validate(batch_bytes, self.limits, now_ms)
        return self._append(batch, batch_bytes, now_ms, verified_at)

    def _append(self, batch: Batch, batch_bytes: bytes, now_ms: int, verified_at: int | None) -> AppendInfo:
        log_append_time = self.limits.log_append_time
        if batch.producer_id >= 0:
            if batch.attributes & TRANSACTIONAL:
                self.producers.require_verified(batch, verified_at)
            earlier = self.producers.check(batch)
            if earlier is not None:
                append_time_ms = earlier.max_timestamp if log_append_time else NO_TIMESTAMP
                return AppendInfo(earlier.base_offset, append_time_ms, self.start_offset)
        base_offset = self._store(batch, batch_bytes, now_ms)
        if batch.producer_id >= 0:
            self.producers.record(batch, base_offset)
        self._wake_waiters(batch.size)
        return AppendInfo(base_offset, now_ms if log_append_time else NO_TIMESTAMP, self.start_offset)

    def end_transaction(self, producer_id: int, epoch: int, marker: EndTransactionMarker, now_ms: int) -> None:
        """Puts a marker at the end, also if the producer has no transaction here. Raises Rejected."""
        self.producers.check_marker(producer_id, epoch, marker)
        batch_bytes = control_records.end_marker(producer_id, epoch, marker, now_ms)
        batch = records.header_at(batch_bytes, 0)
        base_offset = self._store(batch, batch_bytes, now_ms)
        aborted = self.producers.end(batch, marker, base_offset)
        if aborted is not None:
            self.aborted.append(aborted)
        self._wake_waiters(ANY_BYTES)  # all records of the transaction can be read now

    def _wake_waiters(self, grown_bytes: int) -> None:
        for waiter in tuple(self.waiters):
            waiter.appended(grown_bytes)

    def _store(self, batch: Batch, batch_bytes: bytes, now_ms: int) -> int:
        """Writes a batch, and gives its base offset. Raises Rejected: nothing was written."""
        before = len(self._segments)
        try:
            segment = self._segment_for(batch.size, batch.max_timestamp)
            base_offset = segment.next_offset
            self._write(segment, base_offset, batch_bytes)
        except OSError as fault:
            raise Rejected(codes.KAFKA_STORAGE_ERROR, f"The log can't be written: {fault.strerror}.") from None
        if len(self._segments) > before > 0 and self._segments[-2].size + batch.size > self.segment_bytes:
            # After a roll by time, retention waits for the periodic check (log.retention.check.interval.ms).
            with contextlib.suppress(OSError):  # a segment that can't be dropped now is dropped another time
                self._retain(now_ms)
        segment.note(batch, base_offset)
        return base_offset

    def _write(self, segment: LogSegment, base_offset: int, batch_bytes: bytes) -> None:
        """One write of the whole batch; what a failed one left behind is cut off."""
        descriptor = self._files.descriptor(segment.path, create=True)
        head = PLACE.pack(base_offset, len(batch_bytes) - records.OVERHEAD, LEADER_EPOCH)
        rest = memoryview(batch_bytes)[PLACE.size :]
        try:
            written = os.pwritev(descriptor, (head, rest), segment.size)
            while written < len(batch_bytes):
                written += os.pwrite(descriptor, rest[written - PLACE.size :], segment.size + written)
        except OSError:
            os.ftruncate(descriptor, segment.size)
            raise

    def _segment_for(self, size: int, timestamp: int) -> LogSegment:
        """The last segment; a new one if that would get too large or span too much time: LogSegment.shouldRoll. Raises OSError."""
        if not self._segments:
            os.makedirs(self.directory, exist_ok=True)
            self._save_meta(self.start_offset)
            self._segments.append(LogSegment(self.directory, self.start_offset, self._files))
        last = self._segments[-1]
        if last.size and (
            last.size + size > self.segment_bytes or 0 <= last.first_timestamp < timestamp - self.limits.roll_ms
        ):
            self._roll()
        return self._segments[-1]

    # Reading

    def read(
        self, offset: int, max_bytes: int, at_least_one: bool, *, committed: bool = False, in_file: bool = False
    ) -> bytes | FileSlice:
        """Batches, the first of which holds `offset`; b"" at the end. Raises OutOfRange, and OSError.

        The last batch may be cut, the first is not: nothing if it doesn't fit, unless at least one is asked for.
        `committed`: only what is in front of the last stable offset (committed_up_to_stable_offset). `in_file`: many bytes
        may stay in their file.
        """
        if not self.start_offset <= offset <= self.next_offset:
            raise OutOfRange
        end = self.last_stable_offset if committed else self.next_offset
        if offset >= end or (max_bytes <= 0 and not at_least_one):
            return b""
        return self._reading(lambda: self._read(offset, max_bytes, at_least_one, end, in_file))

    def _read(self, offset: int, max_bytes: int, at_least_one: bool, end: int, in_file: bool) -> bytes | FileSlice:
        if offset < self.start_offset:
            raise OutOfRange  # the log's start moved up meanwhile
        place = self._resume.get(offset) or self._place_of(offset, end)
        if place is None:
            return b""
        segment, position = place
        if end < segment.next_offset:
            stable_bytes = segment.position_of(end) - position
            if stable_bytes <= 0:
                return b""  # a gap that damage left: the next batch is not stable
            max_bytes = min(max_bytes, stable_bytes)
        data, whole_bytes, behind = segment.slice(position, max_bytes, at_least_one, in_file=in_file)
        if data:
            segment.require_offset(data, position, offset)
        if data and behind < segment.next_offset and not segment.name.round:
            self._resume[behind] = (segment, position + whole_bytes)
        elif data and segment is self._segments[-1]:
            self._resume[behind] = (segment, segment.size)
        if len(self._resume) > _RESUME_PLACES:
            del self._resume[next(iter(self._resume))]
        return data

    def _place_of(self, offset: int, end: int) -> tuple[LogSegment, int] | None:
        """The segment and position of the batch that holds `offset`, or of the first behind it; None if there is none.

        Empty batches are passed over, unless there is nothing else in front of `end`. A client takes an answer without records as
        cut off. But without the last empty batches it would wait for ever for their offsets.
        """
        bases = [segment.base_offset for segment in self._segments]
        empty: tuple[LogSegment, int] | None = None
        for segment in self._segments[max(bisect_right(bases, offset) - 1, 0) :]:
            for batch, position in segment.batches_behind(offset):
                if empty is not None and batch.base_offset >= end:
                    return empty
                if batch.record_count:
                    return segment, position
                empty = empty or (segment, position)
        return empty

    def aborted_in(self, data: bytes, offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions with records in `data`, which was read from `offset` on."""
        if not data or not len(self.aborted):
            return []
        first = records.header_at(data, 0)
        at, end = first.size, first.last_offset + 1
        while at + records.HEADER.size <= len(data):
            batch = records.header_at(data, at)
            at, end = at + batch.size, batch.last_offset + 1
        return self.aborted.collect(offset, end)

    def offset_since(self, timestamp: int) -> TimestampedOffset | None:
        """(offset, its timestamp) of the first record at or after `timestamp` (ms), None if there is none.

        Raises OSError.
        """
        return self._reading(lambda: self._offset_since(timestamp))

    def _offset_since(self, timestamp: int) -> TimestampedOffset | None:
        for segment in self._segments:
            for found in segment.since(timestamp):
                if (record := self._record_since(segment, found, timestamp)) is not None:
                    return record
        return None

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """(offset, timestamp) of the first record with the largest timestamp, None for an empty log."""
        candidates = [segment for segment in self._segments if segment.next_offset > self.start_offset]
        if not candidates:
            return None
        return self.offset_since(max(segment.max_timestamp for segment in candidates))

    def _record_since(self, segment: LogSegment, found: BatchPosition, timestamp: int) -> TimestampedOffset | None:
        batch = found.batch
        if batch.last_offset < self.start_offset:
            return None
        data = segment.read(found.position, batch.size)
        try:
            buffer, start = compression.records_of(data, batch.attributes & records.COMPRESSION)
            for entry in record_entries.entries(buffer, start, batch.record_count):
                offset, time_ms = batch.base_offset + entry.offset_delta, batch.base_timestamp + entry.timestamp_delta
                if batch.attributes & (records.LOG_APPEND_TIME | records.CONTROL):
                    time_ms = batch.max_timestamp
                if time_ms >= timestamp and offset >= self.start_offset:
                    return TimestampedOffset(offset, time_ms)
        except (NotUnpacked, MalformedRecords, IndexError):  # the file was damaged
            return TimestampedOffset(max(batch.base_offset, self.start_offset), batch.max_timestamp)
        return None
