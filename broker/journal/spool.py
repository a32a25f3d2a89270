"""The spool: how events lie in a file between the process that wrote them and the Parquet part they become.

A segment is a file of 64-byte rows, little-endian: one header row, then events and definitions.

- event: EVENT. A zero means null (ids, port, conn and version are never 0); FLAG_* say which of the numbers are there.
- definition: DEFINE, a string and the 16-bit id that later rows of this segment call it by. What doesn't fit the
  row's 56 bytes goes on in as many further rows as it needs. A definition always comes before the first row that uses
  it.

Names: `b<broker>-s<shard>-e<epoch>-<first seq>.live` while a process appends to it and holds its flock, `.spool` when
it is finished, and `.parquet`, one folder up, when it is a part. The name alone places a segment, so converting one
twice gives the same part. The kernel drops a dead process's flock: a `.live` file that can be locked has lost its
writer.

Invariants
  sequence_by_position  the seq of an event is the header's first seq plus the number of events before it in the segment
  cut_files_are_valid  a file cut at any byte is a valid segment after cutting it to whole rows (and whole definitions)
"""

import fcntl
import os
import struct
from pathlib import Path
from typing import NamedTuple

ROW = 64
MAGIC = 0x314C4E5253525554
"""'TURSRNL1' read as a little-endian u64."""

HEADER = struct.Struct("<QiiqqqI20x")
"""magic, broker, shard, epoch, first seq, wall clock minus mono_ns in ns, layout version."""
LAYOUT = 1

EVENT = struct.Struct("<BBHHHHHHHHHiqqqdfI")
"""kind, flags, port, then STRING_COLUMNS' ids, throttle_ms, mono_ns, conn, bytes, limit_value, held_ms, version."""

DEFINE = struct.Struct("<BxHI56s")
"""DEFINE_KIND, id, length in bytes, the first 56 bytes."""
DEFINE_KIND = 255
INLINE = 56

FLAG_BYTES = 1
FLAG_THROTTLE = 2
FLAG_HELD = 4
FLAG_LIMIT_VALUE = 8

LIVE = ".live"
DONE = ".spool"
PART = ".parquet"

assert HEADER.size == EVENT.size == DEFINE.size == ROW


class Header(NamedTuple):
    """The process that a segment's events belong to, and how their clock maps to UTC."""

    broker: int
    shard: int
    epoch: int
    first_seq: int
    wall_offset_ns: int

    def pack(self) -> bytes:
        """The header as the segment's first row."""
        return HEADER.pack(MAGIC, self.broker, self.shard, self.epoch, self.first_seq, self.wall_offset_ns, LAYOUT)

    @property
    def stem(self) -> str:
        """The segment's file name without its ending."""
        return f"b{self.broker}-s{self.shard}-e{self.epoch:06d}-{self.first_seq:012d}"


class NotASpool(ValueError):
    """The file is not a segment of this layout; the message names it."""


def parse_header(data: bytes | memoryview, name: str) -> Header:
    """Read a segment's first row. Raises NotASpool."""
    if len(data) < ROW:
        raise NotASpool(f"{name} is shorter than a segment's header")
    magic, broker, shard, epoch, first_seq, offset, layout = HEADER.unpack_from(data)
    if magic != MAGIC or layout != LAYOUT:
        raise NotASpool(f"{name} is not a journal spool of layout {LAYOUT}")
    return Header(broker, shard, epoch, first_seq, offset)


def define(number: int, data: bytes) -> bytes:
    """The rows that give `data` the id `number`."""
    row = DEFINE.pack(DEFINE_KIND, number, len(data), data[:INLINE])
    rest = data[INLINE:]
    return row + rest + bytes(-len(rest) % ROW)


def spool_folder(journal: Path) -> Path:
    """The folder of a journal's segments that are no parts yet."""
    return journal / "spool"


def create_segment(journal: Path, header: Header) -> int:
    """Create a live segment holding its header, locked for this process; returns the file descriptor.

    The lock is taken before the file gets its name, so no other process can find it unlocked. Raises OSError.
    """
    folder = spool_folder(journal)
    hidden = folder / f".{header.stem}.new"
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        data = header.pack()
        if os.write(descriptor, data) != len(data):
            raise OSError("short write of a segment's header")
        os.rename(hidden, folder / (header.stem + LIVE))
    except OSError:
        os.close(descriptor)
        hidden.unlink(missing_ok=True)
        raise
    return descriptor


def finish_segment(journal: Path, stem: str) -> None:
    """Rename a live segment to finished. A missing one is fine: another process finished it. Raises OSError otherwise."""
    folder = spool_folder(journal)
    try:
        os.rename(folder / (stem + LIVE), folder / (stem + DONE))
    except FileNotFoundError:
        return


def finish_abandoned(journal: Path) -> int:
    """Finish every live segment whose writer is gone; returns how many."""
    abandoned = [path for path in spool_folder(journal).glob(f"*{LIVE}") if not _is_held(path)]
    for path in abandoned:
        finish_segment(journal, path.stem)
    return len(abandoned)


def has_writer(journal: Path) -> bool:
    """True if some process is writing to this journal, or belongs to the cluster that does: it holds the data directory."""
    held = (journal.parent / "lock", *spool_folder(journal).glob(f"*{LIVE}"))
    return any(path.exists() and _is_held(path) for path in held)


def _is_held(path: Path) -> bool:
    """True if another process holds the lock of the file, or the file is gone: its writer finished it meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
