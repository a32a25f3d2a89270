"""One cleaning of one log, in small steps (cleaning_filter.Steps), which need no lock but to put a segment in place.

The records of a batch that stay are chosen in cleaning_filter.py.

last_record_of_each_key_stays  Of each key the last record up to the end of the cleaning stays, with its offset, value and
    timestamp; a tombstone until its horizon. No record behind that end is touched. What is removed was followed by a later
    record of its key, was a tombstone behind its horizon, had no key, or belonged to an aborted transaction.
cleaned_segments_hold_every_offset  A cleaned segment holds every offset of its sources: where batches were removed there is
    an empty one. So offsets have no gaps (segment.py, file_is_whole_batches), and damage to a cleaned segment is found and
    mended as that of others is.
cleaned_segments_whole_before_named  A cleaned segment is whole on disk, with its index and its aborted transactions, before
    it gets its name; and it gets it only while all its sources are there as they were read. Whichever process is killed: SharedLog,
    cleaned_in_place_by_rename.
only_closed_segments_are_cleaned  Only closed segments are read and replaced, none of which is behind the last stable
    offset. A log whose files change meanwhile, by retention, DeleteRecords, a repair or a deletion, is left alone: another
    cleaning begins with what there is then.
cleaning_memory_is_bounded  Memory: the offset map, `most_keys` (KEY_BYTES each); a chunk of a file, and a batch with its
    records.

Source: Cleaner of Kafka 4.1.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from broker.storage import control_records, recovery
from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.cleaning_filter import RECORDS_A_STEP, OffsetMap, RecordFilter, Steps, digest, empty_batch, readable
from broker.storage.files import OpenFiles
from broker.storage.log_to_clean import LogToClean, save_checkpoint
from broker.storage.record_entries import entries
from broker.storage.record_scan import MalformedRecords
from broker.storage.records import CONTROL, Batch, header_at
from broker.storage.segment import DamagedSegment, LogSegment
from broker.storage.segment_name import SegmentName
from broker.storage.shared_log import SharedLog
from broker.storage.transaction_index import TransactionIndex

KEY_BYTES = 192
"""A key takes of memory, with its place in the map."""
_CHUNK_BYTES = 512 << 10
_MOST_OFFSETS = (1 << 31) - 1
_MADE = "cleaner.tmp"


class CleaningAborted(Exception):
    """The log has changed meanwhile."""


class Cleaning:
    """`bytes_before`, `bytes_after`: of the segments that were replaced, once `steps` are over."""

    def __init__(self, log: SharedLog, found: LogToClean, *, most_keys: int, now_ms: int) -> None:
        self._log = log
        self._found = found
        self._most_keys = most_keys
        self._now_ms = now_ms
        self._keys = OffsetMap()
        self._round = 1 + max(segment.name.round for segment in found.segments)
        self.bytes_before = self.bytes_after = 0

    def steps(self) -> Steps:
        """Raises CleaningAborted, DamagedSegment, Rejected, and OSError; a next cleaning begins anew."""
        yield from self._fill_map()
        end = self._keys.latest + 1
        transactions = CleanedTransactions(self._log.aborted.entries())
        for group in self._groups(end):
            yield from self._clean(group, transactions)
        save_checkpoint(self._log.directory, self._log.topic_id, end)

    # The last offset of each key

    def _fill_map(self) -> Steps:
        dirty = [segment for segment in self._found.segments if segment.next_offset > self._found.first_dirty]
        aborted = self._log.aborted.entries()
        transactions = CleanedTransactions(each for each in aborted if each.last_offset >= dirty[0].base_offset)
        for segment in dirty:
            for batch, data in _batches(segment):
                if batch.attributes & CONTROL:
                    transactions.on_marker(batch)
                elif not transactions.on_batch(batch):
                    yield from self._map(batch, data)
                    if len(self._keys.offsets) >= self._most_keys and self._keys.latest >= self._found.first_dirty:
                        return  # the rest is for another time
                self._keys.latest = batch.last_offset
                yield None

    def _map(self, batch: Batch, data: bytes) -> Steps:
        found = readable(data, batch)
        if found is None:
            return
        buffer, start = found
        with contextlib.suppress(MalformedRecords, IndexError):
            for number, entry in enumerate(entries(buffer, start, batch.record_count), 1):
                offset = batch.base_offset + entry.offset_delta
                if entry.key_end >= 0 and offset >= self._found.first_dirty:
                    self._keys.offsets[digest(buffer[entry.key_at : entry.key_end])] = offset
                if not number % RECORDS_A_STEP:
                    yield None

    # Segments

    def _groups(self, end: int) -> Iterator[list[LogSegment]]:
        """The segments in front of `end`, neighbours together as long as they make no larger segment than others are."""
        group: list[LogSegment] = []
        size = 0
        for segment in self._found.segments:
            if segment.base_offset >= end:
                break
            fits = size + segment.size <= self._log.segment_bytes
            if group and not (fits and segment.next_offset - group[0].base_offset <= _MOST_OFFSETS):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _clean(self, group: list[LogSegment], transactions: CleanedTransactions) -> Steps:
        """Writes one cleaned segment (cleaned_segments_hold_every_offset, cleaned_segments_whole_before_named)."""
        log = self._log
        log.refresh()
        records = RecordFilter(
            self._keys, transactions, log.producers.last_batches(), self._now_ms, log.limits.delete_retention_ms
        )
        base, end = group[0].base_offset, group[-1].next_offset
        name = SegmentName(base, end, self._round)
        made = os.path.join(log.directory, _MADE)
        with _temporary(made) as file:
            writer = _Writer(file, LogSegment(log.directory, base, OpenFiles(), name))
            for segment in group:
                for batch, data in _batches(segment):
                    yield from records.filter(batch, data)
                    if records.left is not None:
                        writer.write(batch, records.left)
                    elif batch.record_count or batch.producer_id >= 0:
                        writer.changed = True
                    yield None
            writer.fill_up_to(end)
            before, after = sum(segment.size for segment in group), writer.cleaned.size
            if len(group) == 1 and not writer.changed:
                return
            file.flush()
            yield lambda: os.fsync(file.fileno())
            self._replace(group, writer, made)
        self.bytes_before += before
        self.bytes_after += after

    def _replace(self, group: list[LogSegment], writer: _Writer, made: str) -> None:
        cleaned, log = writer.cleaned, self._log
        aborted = TransactionIndex()
        for entry in log.aborted.entries():
            if entry.last_offset in writer.aborts:
                aborted.append(entry)
        recovery.save_aborted(cleaned, aborted)
        cleaned.save_sidecar()
        if not log.replace_segments(group, cleaned, made):
            for path in (cleaned.sidecar, recovery.aborted_path(cleaned)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            raise CleaningAborted


@contextlib.contextmanager
def _temporary(path: str) -> Iterator[BinaryIO]:
    """A new file, which is gone behind it unless it got another name."""
    try:
        with open(path, "wb", buffering=_CHUNK_BYTES) as file:
            yield file
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class _Writer:
    """Writes what is left. `changed`: a batch is not as it was; `aborts`: offsets of the markers of aborted transactions."""

    def __init__(self, file: BinaryIO, cleaned: LogSegment) -> None:
        self._file = file
        self.cleaned = cleaned
        self.changed = False
        self.aborts: set[int] = set()

    def write(self, batch: Batch, left: bytes) -> None:
        self.fill_up_to(batch.base_offset)
        self._put(left)
        self.changed |= header_at(left, 0) != batch
        if batch.attributes & CONTROL and not control_records.marker_of(left).commit:
            self.aborts.add(batch.base_offset)

    def fill_up_to(self, offset: int) -> None:
        while (begins := self.cleaned.next_offset) < offset:
            self._put(empty_batch(begins, min(offset, begins + _MOST_OFFSETS)))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        batch = header_at(data, 0)
        self.cleaned.note(batch, batch.base_offset)


def _batches(segment: LogSegment) -> Iterator[tuple[Batch, bytes]]:
    """All batches, read a chunk at a time. Raises DamagedSegment, and OSError."""
    chunk, chunk_at = b"", 0
    for batch, position in segment.batches():
        if position + batch.size > chunk_at + len(chunk):
            chunk, chunk_at = segment.read(position, max(_CHUNK_BYTES, batch.size)), position
        data = chunk[position - chunk_at : position - chunk_at + batch.size]
        if len(data) < batch.size:
            raise DamagedSegment(segment.path, position)
        yield batch, data
