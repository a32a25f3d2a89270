"""The restarts of each process of a cluster, and the time of the next one, on a board that all of them can read.

only_the_supervisor_writes_the_board  Only the supervisor writes. The board is anonymous memory that children inherit: a
    full disk does not stop it.
"""

import mmap
import time
from typing import NamedTuple

_SLOTS = 3  # times started again; when the next start is due, in ms of time.monotonic, 0 while it runs; deaths for want of memory


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
