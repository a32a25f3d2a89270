"""The rows of one process's journal on their way to its spool segments: a buffer, the ids of strings, the segment written now.

flush() writes the buffer with one os.write, once per pass of the owner's loop. Call it before the mesh writes what the same
pass queued: a token must not be seen free elsewhere before its `closed` event is on its way to disk.

Invariants
  dropped_events_leave_a_gap  seq is gapless: the event after a dropped one starts a segment whose first seq leaves the gap
  ids_are_defined_before_use  a row in the file only uses ids that an earlier row of the same file defines
  failing_disks_never_raise  a failing disk never raises into the caller: events are dropped and counted until a write
      succeeds again (live_segment.py); so are those of a segment that was removed. broker.runtime.journal_loss.py
      tells it
  journal_memory_is_bounded  memory is bounded: one buffer of BUFFER_ROWS rows and a dictionary of at most MAX_IDS strings
"""

import time
from pathlib import Path

from broker.journal import spool
from broker.journal.live_segment import LiveSegment

ROW = spool.ROW
BUFFER_ROWS = 4096
MAX_IDS = 65_535
MAX_TEXT_BYTES = 1024
MAX_DETAIL_BYTES = 16 << 20
DEFAULT_SPOOL_BYTES = 1 << 30

_clock = time.monotonic_ns


class JournalBuffer:
    """The buffer of one (broker, shard, epoch). Not thread-safe: it belongs to the loop that owns it.

    `folder` is the journal folder; its spool/ is made if missing. `spool_bytes` bounds what waits to become parts: above
    it events are dropped and counted.
    """

    def __init__(
        self, folder: Path, broker: int, shard: int, epoch: int, *, spool_bytes: int = DEFAULT_SPOOL_BYTES
    ) -> None:
        self.folder = Path(folder)
        self.dropped = 0
        """Events that are in no file: the disk did not take them, or took them into a file that is gone."""
        self._place = (broker, shard, epoch)
        self._segment = LiveSegment(self.folder, self._place, spool_bytes)
        self._allocate(BUFFER_ROWS * ROW)
        self._end = 0
        self._definition_rows = 0  # among the rows in the buffer
        self._ids: dict[str | None, int] = {None: 0}
        self._seq = 0  # the seq of the first event in the buffer

    def flush(self, now_ns: int | None = None) -> None:
        """Write what this pass added, with one os.write; finish the segment when it is old or long. Never raises OSError."""
        segment = self._segment
        if not self._end and not segment.is_open:
            return
        now = _clock() if now_ns is None else now_ns
        if self._end:
            if not (segment.is_open or segment.open(self._seq, now)):
                self._drop()
                return
            if not segment.append(self._image[: self._end]):
                self._drop()
                self._roll()
                return
            segment.events += self._take_buffered()
        if segment.is_open and (segment.is_due(now) or len(self._ids) > MAX_IDS // 2):
            self._roll()

    tick = flush
    """Call it a few times a second also when nothing happens, so that a quiet segment becomes a part within a second.
    """

    def close(self) -> None:
        """Flush and finish the segment. The journal can be written to again; it then starts a new segment."""
        self.flush()
        if self._segment.is_open:
            self._roll()

    @property
    def written(self) -> int:
        """Events on their way to converters: all since this was opened but those dropped, and those of this pass."""
        return self._seq - self.dropped

    @property
    def fault(self) -> str:
        """The reason why events were dropped the last time; "" if none ever was."""
        return self._segment.fault

    def _learn(self, *strings: str | None) -> None:
        """Give ids to those strings that have none, rolling the segment first when the ids are used up."""
        if len(self._ids) + len(strings) > MAX_IDS:
            self.flush()
            if self._segment.is_open:
                self._roll()
            else:
                self._ids = {None: 0}
        for string in strings:
            if string not in self._ids:
                self._define(string or "")
        if self._end >= self._capacity:
            self.flush()

    def _define(self, string: str) -> None:
        data = _encode(string)
        size = ROW + len(data)  # at most: the first INLINE bytes need no row of their own
        if size > self._capacity - self._end:
            self.flush()
        if size > self._capacity:
            self._allocate(size + BUFFER_ROWS * ROW)
        rows = spool.define(len(self._ids), data)
        self._buffer[self._end : self._end + len(rows)] = rows
        self._end += len(rows)
        self._definition_rows += len(rows) // ROW
        self._ids[string] = len(self._ids)

    def _allocate(self, size: int) -> None:
        """Take a buffer of that many bytes: the usual one, or a larger one for a single long detail."""
        self._buffer = bytearray(size + -size % ROW)
        self._image = memoryview(self._buffer)
        self._capacity = len(self._buffer)

    def _take_buffered(self) -> int:
        """Empty the buffer; returns how many events it held, which are numbered by this."""
        events = self._end // ROW - self._definition_rows
        self._seq += events
        self._end = self._definition_rows = 0
        if self._capacity > BUFFER_ROWS * ROW:
            self._allocate(BUFFER_ROWS * ROW)
        return events

    def _roll(self) -> None:
        """Finish the segment; the next event starts another one with an empty dictionary."""
        self.dropped += self._segment.finish()
        self._ids = {None: 0}

    def _drop(self) -> None:
        """Give up the buffered events: their numbers stay missing (dropped_events_leave_a_gap), and so do the ids they
        defined (ids_are_defined_before_use)."""
        self.dropped += self._take_buffered()
        self._ids = {None: 0}


def _encode(string: str) -> bytes:
    """UTF-8, bounded: names are cut, a detail too long to keep is replaced, never cut into broken JSON."""
    data = string.encode("utf-8", "replace")
    if len(data) <= MAX_TEXT_BYTES:
        return data
    if data[:1] == b"{":
        return data if len(data) <= MAX_DETAIL_BYTES else b'{"too_long":true}'
    return data[:MAX_TEXT_BYTES].decode("utf-8", "ignore").encode()
