"""The delay before a process that died is started again.

restart_delays_double  A process that dies is started again at once; one that keeps dying after a delay that doubles from
    FIRST_S to MOST_S. A process that has lived for LIVED_S does not count as one that keeps dying.
"""

FIRST_S = 0.1
MOST_S = 10.0
LIVED_S = 10.0


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
