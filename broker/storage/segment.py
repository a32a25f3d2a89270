"""One file of a partition's log, and the sparse index that is kept of it in memory.

file_is_whole_batches  the file is whole batches one behind the other, from 0 to `size`, their offsets without gaps from
    `base_offset` on. In a segment that was cleaned a batch may have lost records, and an empty one stands where batches
    were removed
index_points_at_batches  index entries point at batches; the first at position 0. There are at most MAX_ENTRIES: when they
    get too many, every other one goes and new ones come half as often
before_never_falls  `before[i]` is the largest timestamp of all batches in front of entry i, so it never falls from entry to
    entry
sidecars_match_their_file  a sidecar file tells what a full scan would; it is only read if it matches the file, else the
    file is scanned
broken_headers_raise  a header that breaks file_is_whole_batches raises DamagedSegment where it is met; it is never followed
"""

import contextlib
import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.storage import control_records
from broker.storage.files import OpenFiles, read_checked, replace_checked
from broker.storage.records import CONTROL, HEADER, MAGIC, Batch, header_at
from broker.storage.scanning import Piece
from broker.storage.segment_name import SegmentName
from broker.wire.answer_parts import FileSlice

MAX_ENTRIES = 2048
INDEX_INTERVAL_BYTES = 4096
NO_TIMESTAMP = -1
LEAST_IN_FILE = 32 << 10  # fewer are read: it takes fewer system calls
_SCAN_BYTES = 8192


class DamagedSegment(Exception):
    """Raised where a place of the file has no batch, or not the one that belongs there."""

    def __init__(self, path: str, position: int) -> None:
        super().__init__(f"{path} is damaged at byte {position}")
        self.path = path


class BatchPosition(NamedTuple):
    """A batch and where it is."""

    batch: Batch
    position: int


class LogSegment:
    """`next_offset` is the offset behind its last record; `first_timestamp` the largest of its first batch, if that was noted."""

    def __init__(self, directory: str, base_offset: int, files: OpenFiles, name: SegmentName | None = None) -> None:
        self.base_offset = base_offset
        self.name = name or SegmentName(base_offset)
        stem = os.path.join(directory, self.name.stem)
        self.path = f"{stem}.log"
        self.sidecar = f"{stem}.index"
        self._files = files
        self.reset()

    def reset(self) -> None:
        self.size = 0
        self.next_offset = self.base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.first_timestamp = NO_TIMESTAMP
        self.interval_bytes = INDEX_INTERVAL_BYTES
        self.offsets = array("q")
        self.positions = array("q")
        self.before = array("q")

    # Growing

    def note(self, batch: Batch, base_offset: int) -> None:
        """A batch was appended at the end; its own base offset may be anything."""
        if not self.positions or self.size - self.positions[-1] >= self.interval_bytes:
            self.offsets.append(base_offset)
            self.positions.append(self.size)
            self.before.append(self.max_timestamp)
            if not self.size:
                self.first_timestamp = batch.max_timestamp
            if len(self.positions) > MAX_ENTRIES:
                self._thin_out()
        if batch.record_count:
            self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self.size += batch.size
        self.next_offset = base_offset + batch.last_offset_delta + 1

    def appended(self, end: int) -> Iterator[Piece]:
        """Takes over the batches that another process has put behind `size`, up to byte `end`. Raises DamagedSegment, OSError."""
        chunk, chunk_at = b"", self.size
        while self.size < end:
            at = self.size - chunk_at
            if at + control_records.BYTES > len(chunk):
                chunk, chunk_at, at = self.read(self.size, min(_SCAN_BYTES, end - self.size)), self.size, 0
            if HEADER.size > len(chunk):
                raise DamagedSegment(self.path, self.size)
            batch = header_at(chunk, at)
            if (
                batch.magic != MAGIC
                or not HEADER.size <= batch.size <= end - self.size
                or batch.base_offset != self.next_offset
                or not 0 <= batch.last_offset_delta == batch.record_count - 1
            ):
                raise DamagedSegment(self.path, self.size)
            marker = control_records.marker_of(chunk, at) if batch.attributes & CONTROL else None
            piece = Piece(self.size, batch, marker)
            self.note(batch, batch.base_offset)
            yield piece

    def _thin_out(self) -> None:
        self.interval_bytes *= 2
        self.offsets, self.positions, self.before = self.offsets[::2], self.positions[::2], self.before[::2]

    # Opening

    def load(self, batches: Iterable[Batch]) -> None:
        """Takes over what a scan of the file found: its batches, from the first on."""
        self.reset()
        for batch in batches:
            self.note(batch, batch.base_offset)

    def save_sidecar(self) -> None:
        """Writes the sidecar; called when the segment grows no more."""
        numbers = [self.size, self.next_offset, self.max_timestamp, self.interval_bytes]
        columns = [column.tobytes() for column in (self.offsets, self.positions, self.before)]
        replace_checked(self.sidecar, [*numbers, *columns])

    def load_sidecar(self) -> bool:
        """True if there was one that matches the file."""
        try:
            body = read_checked(self.sidecar)
            if body is None or os.stat(self.path).st_size != body[0]:
                return False
        except OSError:
            return False
        self.size, self.next_offset, self.max_timestamp, self.interval_bytes = body[:4]
        self.offsets, self.positions, self.before = (array("q", column) for column in body[4:])
        return True

    def delete(self) -> None:
        """Removes its files; fine if they are gone."""
        self._files.forget(self.path)
        for path in (self.path, self.sidecar):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    # Reading

    def read(self, position: int, length: int) -> bytes:
        return os.pread(self._files.descriptor(self.path), length, position)

    def position_of(self, offset: int) -> int:
        """The start of the batch that has `offset`, or of the first behind it; `size` if there is none."""
        return next((found.position for found in self.batches_behind(offset)), self.size)

    def batches_behind(self, offset: int) -> Iterator[BatchPosition]:
        """The batch that holds `offset`, if there is one, and all behind it. Raises DamagedSegment, and OSError."""
        for found in self._batches_from(max(bisect_right(self.offsets, offset) - 1, 0)):
            if found.batch.last_offset >= offset:
                yield found

    def slice(
        self, position: int, max_bytes: int, at_least_one: bool, *, in_file: bool = False
    ) -> tuple[bytes | FileSlice, int, int]:
        """Up to `max_bytes` from `position` on: (bytes, how many of them are whole batches, offset behind those).

        The last batch may be cut, as FileRecords.slice does. Nothing if not even the first batch fits; that one comes
        whole if at least one is asked for. `in_file`: many bytes may stay where they are. Raises DamagedSegment, and OSError.
        """
        left = self.size - position
        if in_file and min(left, max_bytes) >= LEAST_IN_FILE:
            found = self._slice_in_file(position, min(left, max_bytes))
            if found is not None:
                return found
        if left <= max_bytes:
            return self.read(position, left), left, self.next_offset
        data = self.read(position, max(max_bytes, HEADER.size))
        first_bytes = self._header(data, 0, position).size
        if first_bytes > max_bytes:
            data = self.read(position, first_bytes) if at_least_one else b""
        elif len(data) > max_bytes:
            data = data[:max_bytes]
        return data, *self._whole(position, data)

    def _slice_in_file(self, position: int, size: int) -> tuple[FileSlice, int, int] | None:
        """As slice(), of which only the headers at both ends are read; None if that does not do."""
        if self._header(self.read(position, HEADER.size), 0, position).size > size:
            return None
        found = self._files.slice(self.path, position, size)
        if found is None:
            return None
        end = position + size
        if end == self.size:
            return found, size, self.next_offset
        entry = bisect_right(self.positions, end) - 1
        start = max(self.positions[entry], position)
        whole, behind = self._whole(start, self.read(start, end - start))
        return found, start - position + whole, behind or self.offsets[entry]

    def _whole(self, position: int, data: bytes) -> tuple[int, int]:
        """(how many bytes of `data` are whole batches, offset behind those); it was read at `position`."""
        at, next_offset = 0, 0
        entry = bisect_right(self.positions, position + len(data)) - 1
        if entry >= 0 and self.positions[entry] > position:
            at, next_offset = self.positions[entry] - position, self.offsets[entry]
        while at + HEADER.size <= len(data):
            batch = self._header(data, at, position + at)
            if at + batch.size > len(data):
                break
            if next_offset and batch.base_offset != next_offset:
                raise DamagedSegment(self.path, position + at)
            at, next_offset = at + batch.size, batch.last_offset + 1
        return at, next_offset

    def require_offset(self, data: bytes | FileSlice, position: int, offset: int) -> None:
        """Raises DamagedSegment unless the batch that `data` begins with holds `offset`, or is the segment's first behind it.

        Of a cleaned segment it may be a later one: empty batches are passed over.
        """
        head = data if isinstance(data, bytes) else data.chunk(HEADER.size)
        batch = self._header(head, 0, position)
        if batch.last_offset < offset or (batch.base_offset > max(offset, self.base_offset) and not self.name.round):
            raise DamagedSegment(self.path, position)

    def _header(self, data: bytes, at: int, position: int) -> Batch:
        """The header at `at` of `data`, which is at `position` of the file."""
        if at + HEADER.size > len(data):
            raise DamagedSegment(self.path, position)
        batch = header_at(data, at)
        if (
            batch.magic != MAGIC
            or not HEADER.size <= batch.size <= self.size - position
            or batch.last_offset_delta < 0
            or (
                batch.record_count != batch.last_offset_delta + 1
                and not (self.name.round and 0 <= batch.record_count <= batch.last_offset_delta)
            )
            # The batch with the last offset, and no other, ends where the file does.
            or (batch.last_offset + 1 == self.next_offset) != (position + batch.size == self.size)
        ):
            raise DamagedSegment(self.path, position)
        return batch

    def since(self, timestamp: int) -> Iterator[BatchPosition]:
        """The batches that hold a record at or after `timestamp` (ms)."""
        if self.max_timestamp >= timestamp and self.size:
            for found in self._batches_from(max(bisect_left(self.before, timestamp) - 1, 0)):
                if found.batch.max_timestamp >= timestamp and found.batch.record_count:
                    yield found

    def first_batch_timestamp(self) -> int:
        """The largest of its first batch (ms), -1 without one. Raises DamagedSegment, and OSError."""
        return next((found.batch.max_timestamp for found in self.batches()), NO_TIMESTAMP)

    def batches(self) -> Iterator[BatchPosition]:
        """All headers, in order. Raises DamagedSegment, and OSError."""
        return self._batches_from(0)

    def _batches_from(self, entry: int) -> Iterator[BatchPosition]:
        """Headers from that index entry on."""
        if not self.size:
            return
        position, expected = self.positions[entry], self.offsets[entry]
        chunk, chunk_at = b"", position
        while position < self.size:
            if position + HEADER.size > chunk_at + len(chunk):
                chunk, chunk_at = self.read(position, _SCAN_BYTES), position
            batch = self._header(chunk, position - chunk_at, position)
            if batch.base_offset != expected:
                raise DamagedSegment(self.path, position)
            yield BatchPosition(batch, position)
            position += batch.size
            expected = batch.last_offset + 1
