"""Progress of processes, by the CPU time that they use: so that a deadline counts lack of progress instead of time.

A process that reads a large state or waits for its turn on a busy machine uses CPU time; one that is stopped, or waits
for an event that never comes, uses next to none. An event loop that only ticks is well below BUSY.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

BUSY = 0.02
"""The share of a core above which a process counts as making progress."""


class Progress:
    """Tells busy processes from idle ones, from one look at their CPU time to the next."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}

    def is_made(self, pids: Iterable[int], *, now_s: float) -> bool:
        """True if any of these processes has been busy since the look before. The first look at one counts as progress."""
        looked = {pid: (now_s, cpu_s(pid)) for pid in pids if pid}
        before, self._seen = self._seen, looked
        return any(
            pid not in before or used_s - before[pid][1] > BUSY * (now_s - before[pid][0])
            for pid, (_, used_s) in looked.items()
        )


class CpuWaits:
    """The time for which a process has waited for a CPU between two looks: on a busy machine that is no sign of hanging."""

    def __init__(self) -> None:
        self._seen: tuple[int, float] = 0, 0.0

    def since_last_s(self, pid: int) -> float:
        """Seconds; 0 at the first look at a process."""
        before, self._seen = self._seen, (pid, _schedstat_s(pid, 1))
        return max(0.0, self._seen[1] - before[1]) if before[0] == pid else 0.0


def cpu_s(pid: int) -> float:
    """Seconds of CPU time that the process has used; 0 for one that is gone."""
    return _schedstat_s(pid, 0)


def is_alive(pid: int) -> bool:
    """True if there is such a process; one that has ended and was not waited for yet is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _schedstat_s(pid: int, place: int) -> float:
    """The seconds of a process's first thread on a CPU (place 0), or runnable without one (place 1)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[place]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def is_stopped(pid: int) -> bool:
    """True if a process was stopped by a signal, as by SIGSTOP, and has not gone on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except OSError:
        return False
