"""The segment that a process appends to: made when there is something to write, finished when it is old, long or cut short.

Invariants
  passes_whole_or_not_at_all  a pass is in the file whole or not at all: a write that falls short is cut off again, and the
      segment ends there
  unwritten_events_are_dropped  nothing raises OSError: the caller drops the events that could not be written, and a new
      segment is tried later. `fault` says why the last attempt failed
"""

import contextlib
import os
import time
from pathlib import Path

from broker.journal import spool

ROLL_EVENTS = 65_536
ROLL_NS = 1_000_000_000
RETRY_NS = 250_000_000
_SHARE = 100
"""A process looks at the whole spool again when it has written this part of what is left: a spool that is not converted has a file
for each second and process, and reading its folder each second would hold up everything else."""


class LiveSegment:
    """The segment of one (broker, shard, epoch) under `folder`, or none for now. `events`: how many it holds.

    `spool_bytes`: no segment is made while the spool holds more than that, as far as this process has looked.
    """

    def __init__(self, folder: Path, place: tuple[int, int, int], spool_bytes: int) -> None:
        self.is_open = False
        self.events = 0
        self.fault = ""
        self._folder = folder
        self._place = place
        self._spool_bytes = spool_bytes
        self._descriptor = -1
        self._stem = ""
        self._size = 0
        self._opened_ns = 0
        self._retry_ns = 0
        self._room = 0  # bytes that it may write before it looks at the spool again

    def open(self, first_seq: int, now_ns: int) -> bool:
        """Starts a segment whose first event is `first_seq`; False while the disk refuses it, which is tried every RETRY_NS."""
        if now_ns < self._retry_ns:
            return False
        self._retry_ns = now_ns + RETRY_NS
        header = spool.Header(*self._place, first_seq, time.time_ns() - time.monotonic_ns())
        try:
            folder = spool.spool_folder(self._folder)
            folder.mkdir(parents=True, exist_ok=True)
            if not self._has_room(folder):
                self.fault = f"the spool holds more than {self._spool_bytes} bytes that no converter has taken"
                return False
            self._descriptor = spool.create_segment(self._folder, header)
        except OSError as fault:
            self.fault = str(fault)
            return False
        self.is_open = True
        self.events = 0
        self._stem, self._size, self._opened_ns, self._retry_ns = header.stem, spool.ROW, now_ns, 0
        return True

    def append(self, data: memoryview) -> bool:
        """Writes the rows of a pass with one os.write. False: they are not in the file, and the segment has to be finished
        (passes_whole_or_not_at_all)."""
        try:
            written = os.write(self._descriptor, data)
        except OSError as fault:
            written, self.fault = 0, str(fault)
        self._room -= written
        if written == len(data):
            self._size += written
            return True
        self.fault = self.fault or "the disk took a part of a write"
        with contextlib.suppress(OSError):  # else the reader cuts the torn end
            os.ftruncate(self._descriptor, self._size)
        return False

    def is_due(self, now_ns: int) -> bool:
        """True if the segment is long or old enough to become a part."""
        return self.events >= ROLL_EVENTS or now_ns - self._opened_ns >= ROLL_NS

    def finish(self) -> int:
        """Hands the segment over to the converter; the next event needs another one. Returns the events that are lost with
        it: all, if its file was removed, else 0."""
        lost = 0
        if os.fstat(self._descriptor).st_nlink == 0:
            lost, self.fault = self.events, f"the segment {self._stem} was removed"
        with contextlib.suppress(OSError):  # else the converter renames it, for the lock goes with the descriptor
            spool.finish_segment(self._folder, self._stem)
        os.close(self._descriptor)
        self.is_open = False
        return lost

    def _has_room(self, spooled: Path) -> bool:
        if self._room <= 0:
            left = self._spool_bytes - _bytes_in(spooled)
            if left < 0:
                return False
            self._room = left // _SHARE
        return True


def _bytes_in(folder: Path) -> int:
    """The bytes of a folder's files; files that vanish meanwhile count as 0."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                total += entry.stat().st_size
            except FileNotFoundError:
                continue
    return total
