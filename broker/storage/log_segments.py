"""The segments of a partition's log in their files: opened and repaired, rolled, and dropped by retention or on request.

offsets_without_gaps  offsets are given without gaps; `start_offset` and `next_offset` never fall. Damage may leave a gap
    between segments, and a cleaning (broker/storage/cleaning.py) empty batches: a read of an offset there begins behind them

Files: segments (segment_name.py), an `.index` beside each closed one, `.txnindex` if transactions were aborted in it, `.producers`
with the state of the producers when that segment began, and `partition.meta`: the topic's id and the start offset. A
partition without a batch has no files.
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from broker.storage import partition_meta, recovery
from broker.storage.files import OpenFiles
from broker.storage.log_config import LogConfig
from broker.storage.partition_meta import PartitionMeta
from broker.storage.producer_state import ProducerStateManager
from broker.storage.segment import DamagedSegment, LogSegment
from broker.storage.transaction_index import TransactionIndex

_MOST_REPAIRS = 3

T = TypeVar("T")


class OutOfRange(Exception):
    """The log does not reach from its start to the offset asked for."""


class LogSegments:
    """Opened from their directory, which need not exist. If it holds a log of another topic's id, that one is deleted."""

    start_offset: int
    producers: ProducerStateManager
    aborted: TransactionIndex
    torn_bytes: int  # cut off when it was opened
    _resume: dict[int, tuple[LogSegment, int]]  # offset -> where its batch starts

    def __init__(self, directory: str, topic_id: UUID, files: OpenFiles, limits: LogConfig | None = None) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.limits = limits or LogConfig()
        self._files = files
        self._segments: list[LogSegment] = []
        self._forget()
        self._open()

    # Facts

    @property
    def next_offset(self) -> int:
        """The log end offset, which is the high watermark too: there is one replica."""
        return self._segments[-1].next_offset if self._segments else self.start_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset that readers of committed records do not get (committed_up_to_stable_offset)."""
        return max(self.producers.first_unstable_offset(self.next_offset), self.start_offset)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def closed_segments(self) -> list[LogSegment]:
        """The segments that grow no more, in order."""
        return self._segments[:-1]

    def check(self) -> None:
        """Raises AssertionError if an invariant is broken; for tests."""
        offset = -1
        for segment in self._segments:
            assert segment.base_offset >= offset
            offset = segment.base_offset
            assert os.stat(segment.path).st_size == segment.size
            for found in segment.batches():
                assert found.batch.base_offset == offset
                offset = found.batch.last_offset + 1
            assert offset == segment.next_offset
        assert self.start_offset <= self.next_offset

    # Rolling

    @property
    def segment_bytes(self) -> int:
        """Retention can only drop whole segments, so a segment is at most an eighth of what is kept."""
        kept = self.limits.retention_bytes
        return self.limits.segment_bytes if kept < 0 else min(self.limits.segment_bytes, max(kept // 8, 4096))

    def _roll(self) -> None:
        """Begins a new segment; until its file is there, the old one stays the last."""
        last = self._segments[-1]
        new = LogSegment(self.directory, last.next_offset, self._files)
        last.save_sidecar()
        recovery.save_aborted(last, self.aborted)
        recovery.save_snapshot(new, self.producers)
        self._files.descriptor(new.path, create=True)
        self._begin(new)

    def _begin(self, segment: LogSegment) -> None:
        """Adds a segment behind the others."""
        self._segments.append(segment)
        self._resume.pop(segment.base_offset, None)  # the entry pointed to the end of the segment before

    # Repairing

    def _reading(self, read: Callable[[], T]) -> T:
        """Returns what `read` does. A segment in which it meets damage is repaired, and `read` tried again. Raises OSError."""
        for _ in range(_MOST_REPAIRS):
            try:
                return read()
            except DamagedSegment as damaged:
                self._repair(damaged)
        raise OSError(errno.EIO, "the log is damaged")

    def _repair(self, damaged: DamagedSegment) -> None:
        """Raises OSError."""
        index = next((i for i, segment in enumerate(self._segments) if segment.path == damaged.path), None)
        if index is None:
            return
        closed = index + 1 < len(self._segments)
        made, _ = recovery.rescan(self._segments[index], self._files, closed=closed)
        self._segments[index : index + 1] = made
        self._resume.clear()
        with contextlib.suppress(OSError):
            for segment in made if closed else made[:-1]:
                recovery.save_aborted(segment, self.aborted)

    # Forgetting

    def delete_before(self, offset: int) -> int:
        """Moves the start offset up, -1: to the end. Returns it. Raises OutOfRange beyond the end, and OSError."""
        if offset == -1:
            offset = self.next_offset
        if not 0 <= offset <= self.next_offset:
            raise OutOfRange
        if offset > self.start_offset:
            self._save_meta(offset)
            self.start_offset = offset
            self.aborted.drop_before(offset)
            with contextlib.suppress(OSError):  # the records are gone; their files go another time
                if offset == self.next_offset and self._segments[-1].size:
                    self._roll()
                self._drop_deleted()
        return self.start_offset

    def _start_at(self, offset: int) -> None:
        """Another process has moved the start offset up."""
        self.start_offset = offset
        self.aborted.drop_before(offset)
        self._drop_deleted()

    def _drop_deleted(self) -> None:
        self._drop(segment for segment in self._segments[:-1] if segment.next_offset <= self.start_offset)

    def retain(self, now_ms: int) -> None:
        """Drops the oldest segments that retention by bytes or by time doesn't keep. Raises OSError."""
        self._retain(now_ms)

    def _retain(self, now_ms: int) -> None:
        limits = self.limits
        self._drop_deleted()
        if limits.retention_ms >= 0 and self._segments:
            oldest_kept = now_ms - limits.retention_ms
            last = self._segments[-1]
            if last.size and 0 <= last.max_timestamp < oldest_kept:
                self._roll()
            self._drop(itertools.takewhile(lambda segment: segment.max_timestamp < oldest_kept, self._segments[:-1]))
        if limits.retention_bytes >= 0:
            excess = self.size_bytes - limits.retention_bytes
            dropped = []
            for segment in self._segments[:-1]:
                if excess < segment.size:
                    break
                excess -= segment.size
                dropped.append(segment)
            self._drop(dropped)

    def _drop(self, segments: Iterable[LogSegment]) -> None:
        for segment in list(segments):
            segment.delete()
            recovery.delete_snapshot(segment)
            self._segments.remove(segment)
            self._resume = {offset: place for offset, place in self._resume.items() if place[0] is not segment}
        if self._segments:
            self.start_offset = max(self.start_offset, self._segments[0].base_offset)
            self.aborted.drop_before(self.start_offset)

    # Opening

    def _open(self) -> None:
        self._load()

    def _forget(self) -> None:
        """All that is known of the files."""
        for segment in self._segments:
            self._files.forget(segment.path)
        self._segments = []
        self.start_offset = 0
        self.producers = ProducerStateManager()
        self.aborted = TransactionIndex()
        self._resume = {}
        self.torn_bytes = 0

    def _load(self) -> None:
        """Reads the files, and repairs them. Raises OSError."""
        self._forget()
        if not os.path.isdir(self.directory):
            return
        meta = partition_meta.load(self.directory)
        if meta is not None and meta.topic_id != self.topic_id:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        self._segments, self.producers, self.aborted, self.torn_bytes = recovery.recover(self.directory, self._files)
        if meta is not None:
            self.start_offset = meta.start_offset
        if self._segments:
            self.start_offset = max(self.start_offset, self._segments[0].base_offset)
            if self.next_offset < self.start_offset:
                # Damage took everything from the start offset on: no record that counts is left.
                self._segments.append(LogSegment(self.directory, self.start_offset, self._files))
                self._files.descriptor(self._segments[-1].path, create=True)
        if meta is None and self._segments:
            self._save_meta(self.start_offset)

    def _save_meta(self, start_offset: int) -> None:
        os.makedirs(self.directory, exist_ok=True)
        partition_meta.save(self.directory, PartitionMeta(self.topic_id, start_offset))
