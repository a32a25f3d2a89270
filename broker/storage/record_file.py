"""An append-only file of framed records, the recovery of a damaged one, and compaction. It does not know what the records mean.

Committed offsets, transactional ids and share partitions are kept in such files, one for each bucket. A frame is MAGIC, the crc32
of what follows (u32, big endian), the length of its body (u32), and the body. One append is one write of one frame, so it is there
whole or not at all. Nothing is fsynced, as Kafka's default is: an acknowledged record survives a killed process, not a crash of
the machine.

failed_append_leaves_no_trace    After a failed append the file is as it was before it; if even that fails, `load` skips the piece.
damage_costs_one_frame           A damaged frame costs itself alone: `load` goes on at the next sound frame. Damaged bytes are set
                                 aside and cut out.
torn_tail_is_cut                 A torn last frame, which a killed process leaves, is cut off without a word.
file_gives_memory                A file's sound frames, in order, give what memory holds of its bucket.
failed_write_changes_nothing     After a failed write file and memory are as they were before it.
record_file_is_bounded           A file holds at most MAX_WASTE times as many entries as its bucket has, or COMPACT_BYTES.
"""

import contextlib
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple
from zlib import crc32

import msgpack

from broker.runtime.logger import Logger
from broker.runtime.set_aside import set_aside

MAGIC = b"\xc1ofs"
"""0xc1 is no msgpack type, so packed bodies rarely hold it."""
MAX_BODY_BYTES = 64 << 20
COMPACT_BYTES = 1 << 20
MAX_WASTE = 4
_HEADER = struct.Struct(">4sII")
_CHECKED_FROM = 8
_U32 = struct.Struct(">I")

log = Logger()


class RecordFile:
    """One file. `size` is its length in bytes; a file that nothing was written to does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._fd: int | None = None

    def load(self, heed: Callable[[bytes], None]) -> None:
        """Calls `heed` with each sound body, in order. What can't be read is set aside, or left where it is."""
        try:
            data = self.path.read_bytes()
            self.size = len(data)
            sound, damaged = _scan(data, heed)
            if damaged:
                set_aside(self.path, "records are damaged", content=b"".join(data[a:b] for a, b in damaged))
                self.replace(data[a:b] for a, b in sound)
            elif sum(b - a for a, b in sound) < self.size:
                self.size = sound[-1][1] if sound else 0
                os.truncate(self.path, self.size)
        except FileNotFoundError:
            return
        except OSError as fault:
            self._set_aside_unreadable(fault)

    def _set_aside_unreadable(self, fault: OSError) -> None:
        log.warning("a record file can't be read or repaired", file=str(self.path), error=str(fault))
        if not self.size:
            with contextlib.suppress(OSError):
                set_aside(self.path, "it can't be read")

    def append(self, body: bytes) -> None:
        """Raises OSError, and ValueError for a body over MAX_BODY_BYTES; the file is then as it was."""
        data = frame(body)
        fd = self._descriptor()
        written = 0
        try:
            written = os.write(fd, data)
        finally:
            if written < len(data):
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, self.size)
        if written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes fit into {self.path}")
        self.size += written

    def replace(self, frames: Iterable[bytes]) -> None:
        """Puts a file of these frames in place of the present one, at once. Raises OSError, and keeps the present one."""
        data = b"".join(frames)
        aside = self.path.with_suffix(".tmp")
        try:
            aside.write_bytes(data)
            aside.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
        self.close()
        self.size = len(data)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _descriptor(self) -> int:
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return self._fd


class CompactedFile(ABC):
    """The record file of one bucket, whose bodies are msgpack lists that begin with (kind, key), and the state that they give.

    The file is written anew from the state when most of its entries are outdated (record_file_is_bounded).
    """

    holds: ClassVar[str]
    """The subject of the records in log lines: "committed offsets"."""
    live_is_costly: ClassVar[bool] = False
    """True if COMPACT_BYTES more are to be appended before `live` is asked again."""

    def __init__(self, path: Path) -> None:
        """A subclass makes its empty state first: the file is loaded here."""
        self.file = RecordFile(path)
        self.written = 0
        self.file.load(self._load)
        self.compact_at = COMPACT_BYTES

    @property
    @abstractmethod
    def live(self) -> int:
        """Entries of a file that holds nothing outdated."""

    @abstractmethod
    def entries(self, body: Sequence[object]) -> int:
        """Entries that a record adds to the file."""

    @abstractmethod
    def apply(self, body: Sequence[object]) -> None:
        """Makes the change of a loaded record. Raises TypeError, ValueError or IndexError for one of another kind."""

    @abstractmethod
    def snapshot(self) -> Iterable[Sequence[object]]:
        """The bodies that give the present state."""

    def append(self, body: Sequence[object], change: Callable[[], None] | None = None) -> None:
        """Writes a record, then makes its `change` of the state, if this has not happened yet. Raises OSError."""
        self.file.append(msgpack.packb(body))
        if change is not None:
            change()
        self.written += self.entries(body)
        if self.file.size > self.compact_at:
            self._compact()

    def close(self) -> None:
        self.file.close()

    def _load(self, packed: bytes) -> None:
        try:
            body = msgpack.unpackb(packed, use_list=False)
            if not isinstance(body[1], str):
                raise TypeError(f"its key is {body[1]!r}")
            self.apply(body)
            self.written += self.entries(body)
        except (TypeError, ValueError, IndexError) as fault:  # sound, but of another kind: of a later version, perhaps
            log.warning(f"a record of {self.holds} makes no sense", file=str(self.file.path), error=str(fault))

    def _compact(self) -> None:
        """A disk that does not take the new file is asked again much later."""
        live = self.live
        if self.written <= MAX_WASTE * live:
            if self.live_is_costly:
                self.compact_at = self.file.size + COMPACT_BYTES
            return
        try:
            self.file.replace(frame(msgpack.packb(body)) for body in self.snapshot())
            self.written = live
            self.compact_at = COMPACT_BYTES
        except OSError as fault:
            self.compact_at = 2 * self.file.size
            log.warning(f"{self.holds} were not compacted", file=str(self.file.path), error=str(fault))


def frame(body: bytes) -> bytes:
    """Raises ValueError for a body over MAX_BODY_BYTES."""
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"a record of {len(body)} bytes")
    checked = _U32.pack(len(body)) + body
    return MAGIC + _U32.pack(crc32(checked)) + checked


class _Scanned(NamedTuple):
    """Ranges [start, end) of sound frames and of damaged bytes; a torn last frame is in neither."""

    sound: list[tuple[int, int]]
    damaged: list[tuple[int, int]]


def _scan(data: bytes, heed: Callable[[bytes], None]) -> _Scanned:
    """Calls `heed` with each sound body, in order."""
    sound: list[tuple[int, int]] = []
    damaged: list[tuple[int, int]] = []
    at = start = 0
    while at < len(data):
        while end := _end_of_frame(data, at):
            heed(data[at + _HEADER.size : end])
            at = end
        if at > start:
            sound.append((start, at))
        start = _next_sound(data, at + 1)
        if start < len(data) or not _is_torn(data, at):
            damaged.append((at, start))
        at = start
    return _Scanned(sound, damaged)


def _end_of_frame(data: bytes, at: int) -> int:
    """The end of the frame at `at`; 0 if no sound frame is there."""
    if len(data) - at < _HEADER.size:
        return 0
    magic, checksum, length = _HEADER.unpack_from(data, at)
    end: int = at + _HEADER.size + length
    if magic != MAGIC or end > len(data) or crc32(data[at + _CHECKED_FROM : end]) != checksum:
        return 0
    return end


def _next_sound(data: bytes, at: int) -> int:
    """The start of the next sound frame, or the end of the data."""
    while (at := data.find(MAGIC, at)) >= 0:
        if _end_of_frame(data, at):
            return at
        at += 1
    return len(data)


def _is_torn(data: bytes, at: int) -> bool:
    """True if what lies at the end is the beginning of a frame."""
    left = len(data) - at
    if left < _HEADER.size:
        return MAGIC.startswith(data[at : at + 4])
    magic, _, length = _HEADER.unpack_from(data, at)
    return bool(magic == MAGIC and left - _HEADER.size < length <= MAX_BODY_BYTES)
