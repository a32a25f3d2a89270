"""The watch on the process that watches the others: it beats in shared memory, and the supervisor looks.

hung_without_beat_or_progress  The watched process beats several times within its timeout. It is hung once it has neither
    beaten nor made progress for that long: time in which it uses CPU does not count, as reading a large store may keep it
    from beating.
spinning_is_hung  Progress counts for MOST_BUSY_S after a beat: a process that spins is hung, too.
own_pauses_do_not_count  Time during which the supervisor itself did not run does not count against the watched
    process.
"""

from __future__ import annotations

import mmap

from shards.supervisor.progress import Progress

LOOK_S = 0.5
MOST_BUSY_S = 600.0
_FIRST_TIMEOUT_S = 10.0  # until the process has said its own
_OVERSLEPT_S = 1.0


class CoordinatorWatchdog:
    """The watchdog of one process, whichever incarnation of it runs. Times are of a clock that all processes share, in seconds."""

    def __init__(self) -> None:
        self._mapped = mmap.mmap(-1, 2 * 8)
        self._slots = memoryview(self._mapped).cast("d")  # when it beat, its timeout
        self._progress = Progress()
        self._beaten_s = self._alive_s = self._looked_s = 0.0

    def beat(self, timeout_s: float, *, now_s: float) -> None:
        """Called by the watched process."""
        self._slots[1] = timeout_s
        self._slots[0] = now_s

    def started(self, *, now_s: float) -> None:
        """Called by the supervisor when it has forked the process."""
        self.beat(_FIRST_TIMEOUT_S, now_s=now_s)
        self._progress = Progress()
        self._looked_s = now_s

    def take_hung(self, pid: int, *, now_s: float) -> bool:
        """True if the process hangs; it then counts as just started. To be called by the supervisor every LOOK_S."""
        beaten_s = self._slots[0]
        overslept = now_s - self._looked_s > LOOK_S + _OVERSLEPT_S
        self._looked_s = now_s
        if beaten_s != self._beaten_s or overslept:
            self._beaten_s, self._alive_s = beaten_s, now_s
        busy = self._progress.is_made([pid], now_s=now_s)
        if busy and now_s - max(beaten_s, 0.0) < MOST_BUSY_S:
            self._alive_s = now_s
        if now_s - self._alive_s < self._slots[1]:
            return False
        self._alive_s = now_s
        return True
