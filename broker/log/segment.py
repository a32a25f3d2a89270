"""One file of a partition's log, and the sparse index that is kept of it in memory.

G1  the file is whole batches one behind the other, of rising offsets, from 0 to `size`
G2  index entries point at batches; the first at position 0. There are at most MAX_ENTRIES: when they get too many,
    every other one goes and new ones come half as often
G3  `before[i]` is the largest timestamp of all batches in front of entry i, so it never falls from entry to entry
G4  a sidecar file tells what a full scan would; it is only read if it matches the file, else the file is scanned
"""

import contextlib
import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

import msgpack
from crc32c import crc32c

from broker.log.files import Files, replace
from broker.log.records import HEADER, Batch, checksum_holds, header_at

MAX_ENTRIES = 2048
INDEX_INTERVAL_BYTES = 4096
NO_TIMESTAMP = -1
_SCAN_BYTES = 8192


class Found(NamedTuple):
    """A batch and where it is."""

    batch: Batch
    position: int


class LogSegment:
    """`next_offset` is the offset behind its last record; `base_offset` names the file."""

    def __init__(self, directory: str, base_offset: int, files: Files) -> None:
        self.base_offset = base_offset
        self.path = os.path.join(directory, f"{base_offset:020d}.log")
        self.sidecar = os.path.join(directory, f"{base_offset:020d}.index")
        self._files = files
        self.reset()

    def reset(self) -> None:
        self.size = 0
        self.next_offset = self.base_offset
        self.max_timestamp = NO_TIMESTAMP
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
            if len(self.positions) > MAX_ENTRIES:
                self._thin_out()
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self.size += batch.size
        self.next_offset = base_offset + batch.record_count

    def _thin_out(self) -> None:
        self.interval_bytes *= 2
        self.offsets, self.positions, self.before = self.offsets[::2], self.positions[::2], self.before[::2]

    # Opening

    def recover(self, on_batch: Callable[[Batch], None]) -> int:
        """Reads the whole file, cuts it behind its last sound batch and returns how many bytes that took off."""
        self.reset()
        descriptor = self._files.descriptor(self.path, create=True)
        length = os.fstat(descriptor).st_size
        if length:
            with mmap(descriptor, length, access=ACCESS_READ) as mapped:
                for batch in _sound_batches(mapped, length, self.base_offset):
                    self.note(batch, batch.base_offset)
                    on_batch(batch)
        if length > self.size:
            os.ftruncate(descriptor, self.size)
        return length - self.size

    def save_sidecar(self) -> None:
        """Called when the segment grows no more."""
        body = msgpack.packb(
            [self.size, self.next_offset, self.max_timestamp, self.interval_bytes]
            + [column.tobytes() for column in (self.offsets, self.positions, self.before)]
        )
        replace(self.sidecar, struct.pack(">I", crc32c(body)) + body)

    def load_sidecar(self) -> bool:
        """Whether there was one that matches the file."""
        try:
            with open(self.sidecar, "rb") as file:
                raw = file.read()
            if len(raw) < 4 or crc32c(raw[4:]) != int.from_bytes(raw[:4], "big"):
                return False
            body = msgpack.unpackb(raw[4:])
            if os.stat(self.path).st_size != body[0]:
                return False
        except FileNotFoundError:
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
        """Where the batch starts that holds `offset`, or the first behind it; `size` if there is none."""
        entry = bisect_right(self.offsets, offset) - 1
        for found in self.batches(self.positions[entry] if entry >= 0 else 0):
            if found.batch.last_offset >= offset:
                return found.position
        return self.size

    def slice(self, position: int, max_bytes: int, at_least_one: bool) -> tuple[bytes, int, int]:
        """Up to `max_bytes` from `position` on: (bytes, how many of them are whole batches, offset behind those).

        The last batch may be cut, as FileRecords.slice does. Nothing if not even the first batch fits; that one comes
        whole if at least one is asked for.
        """
        left = self.size - position
        if left <= max_bytes:
            return self.read(position, left), left, self.next_offset
        data = self.read(position, max(max_bytes, HEADER.size))
        first_bytes = header_at(data, 0).size
        if first_bytes > max_bytes:
            data = self.read(position, first_bytes) if at_least_one else b""
        elif len(data) > max_bytes:
            data = data[:max_bytes]
        return data, *self._whole(position, data)

    def _whole(self, position: int, data: bytes) -> tuple[int, int]:
        """(how many bytes of `data` are whole batches, offset behind those); it was read at `position`."""
        at, next_offset = 0, 0
        entry = bisect_right(self.positions, position + len(data)) - 1
        if entry >= 0 and self.positions[entry] > position:
            at, next_offset = self.positions[entry] - position, self.offsets[entry]
        while at + HEADER.size <= len(data):
            batch = header_at(data, at)
            if at + batch.size > len(data):
                break
            at, next_offset = at + batch.size, batch.last_offset + 1
        return at, next_offset

    def since(self, timestamp: int) -> Iterator[Found]:
        """The batches that hold a record at or after `timestamp` (ms)."""
        if self.max_timestamp >= timestamp and self.size:
            entry = max(bisect_left(self.before, timestamp) - 1, 0)
            for found in self.batches(self.positions[entry]):
                if found.batch.max_timestamp >= timestamp:
                    yield found

    def batches(self, position: int) -> Iterator[Found]:
        """Headers from `position` on."""
        chunk, chunk_at = b"", position
        while position < self.size:
            if position + HEADER.size > chunk_at + len(chunk):
                chunk, chunk_at = self.read(position, _SCAN_BYTES), position
            batch = header_at(chunk, position - chunk_at)
            yield Found(batch, position)
            position += batch.size


def _sound_batches(mapped: mmap, length: int, next_offset: int) -> Iterator[Batch]:
    """The batches of a file up to the first that is torn, damaged or out of order."""
    position = 0
    while length - position >= HEADER.size:
        batch = header_at(mapped, position)
        if batch.magic != 2 or not HEADER.size <= batch.size <= length - position:
            return
        if batch.base_offset < next_offset or batch.record_count <= 0 or not checksum_holds(mapped, batch, position):
            return
        yield batch
        position += batch.size
        next_offset = batch.last_offset + 1
