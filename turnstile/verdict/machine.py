"""The machine while a client was judged: how late it woke a thread that wanted to wake every 20 ms.

What a client does late, or a broker sees late, because neither had a CPU is not the client's fault. Cluster, client and this thread
have one priority, so what this thread has waited stands for what the others have.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

MS = 1_000_000
_EVERY_S = 0.02
_STALL_NS = 10 * MS
"""Less is no stall: this interpreter's other threads may hold it for as long."""


class Beat(NamedTuple):
    """The time at which the thread was to wake, and its delay, in nanoseconds."""

    due_ns: int
    late_ns: int


class Machine:
    """`beats` by time; those of `watched` grow while it is read."""

    def __init__(self, beats: Sequence[Beat] = ()) -> None:
        self.beats = list(beats)

    def stalled_ms(self, began_ns: float, ended_ns: float) -> float:
        """The part of a time for which the machine stalled."""
        spans = (
            (max(each.due_ns, began_ns), min(each.due_ns + each.late_ns, ended_ns))
            for each in self._stalls(began_ns, ended_ns)
        )
        return sum(max(until - since, 0) for since, until in spans) / MS

    def longest_ms(self, began_ns: float, ended_ns: float) -> float:
        """The longest stall that touches a time."""
        return max((each.late_ns for each in self._stalls(began_ns, ended_ns)), default=0) / MS

    def late_ms(self, began_ns: float, ended_ns: float) -> float:
        """The mean delay of the machine in a time."""
        found = self.beats[slice(*(bisect_left(self.beats, at_ns, key=_due) for at_ns in (began_ns, ended_ns)))]
        return sum(each.late_ns for each in found) / max(len(found), 1) / MS

    def _stalls(self, began_ns: float, ended_ns: float) -> list[Beat]:
        first = max(bisect_left(self.beats, began_ns, key=_due) - 1, 0)  # the beat may last into that time
        found = self.beats[first : bisect_right(self.beats, ended_ns, key=_due)]
        return [each for each in found if each.late_ns >= _STALL_NS and each.due_ns + each.late_ns >= began_ns]


@contextmanager
def watched() -> Iterator[Machine]:
    """This machine, while it is watched."""
    machine, stopped = Machine(), threading.Event()

    def run() -> None:
        while not stopped.is_set():
            due_ns = time.monotonic_ns() + int(_EVERY_S * 1000) * MS
            time.sleep(_EVERY_S)
            machine.beats.append(Beat(due_ns, max(time.monotonic_ns() - due_ns, 0)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield machine
    finally:
        stopped.set()
        thread.join()


def _due(beat: Beat) -> int:
    return beat.due_ns
