"""Restarts of each process of a cluster, and the time of the next one: shared with all of them.

restart_delays_double  A process that dies is started again at once; one that keeps dying after a delay that doubles from
    FIRST_S to MOST_S. Having lived for LIVED_S makes it a process that does not keep dying.
only_the_supervisor_writes_the_board  Only the supervisor writes. The board is anonymous memory that children inherit: a
    full disk does not stop it.
"""

import mmap
import time
from typing import NamedTuple

FIRST_S = 0.1
MOST_S = 10.0
LIVED_S = 10.0
_SLOTS = 3  # times started again; when the next start is due, in ms of time.monotonic, 0 while it runs; deaths for want of memory


class Backoff:
    """The delays of one process (restart_delays_double). Times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._failures = 0
        self._started_s = 0.0

    def started(self, *, now_s: float) -> None:
        """The process was started."""
        self._started_s = now_s

    def delay_s(self, *, now_s: float) -> float:
        """The delay of the next start; to be asked once for each death."""
        if now_s - self._started_s >= LIVED_S:
            self._failures = 0
        self._failures += 1
        return 0.0 if self._failures == 1 else float(min(MOST_S, FIRST_S * 2 ** min(self._failures - 2, 30)))


class Restarts(NamedTuple):
    """The restarts of a process, those for want of memory among them, and the seconds until its next start;
    None while it runs."""

    number: int = 0
    memory_kills: int = 0
    due_in_s: float | None = None


class RestartBoard:
    """Three numbers for each process, by its place in the supervisor's list."""

    def __init__(self, processes: int) -> None:
        self._mapped = mmap.mmap(-1, max(1, processes) * _SLOTS * 8)
        self._slots = memoryview(self._mapped).cast("Q")

    def put(self, place: int, restarts: int, due_s: float | None, memory_kills: int = 0) -> None:
        """`due_s`: when the next start is due, by time.monotonic; None while the process runs. `memory_kills`: how often it was
        killed for want of memory."""
        self._slots[place * _SLOTS] = restarts
        self._slots[place * _SLOTS + 1] = 0 if due_s is None else max(1, int(due_s * 1000))
        self._slots[place * _SLOTS + 2] = memory_kills

    def get(self, place: int) -> Restarts:
        """The row of the process at that place."""
        number, due_ms, memory_kills = self._slots[place * _SLOTS : (place + 1) * _SLOTS]
        return Restarts(number, memory_kills, max(0.0, due_ms / 1000 - time.monotonic()) if due_ms else None)
