"""The driver's counts of one group; snapshots of them travel from the worker processes to the parent.

T1  attempted == admitted + refused + connect_errors + unanswered + in flight
T2  closed_by_broker <= admitted: a connection cut off later was admitted first, and stays counted as that
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

COUNTS = (
    "attempted",
    "admitted",
    "refused",
    "connect_errors",
    "closed_by_broker",
    "unanswered",
    "port_waits",
    "file_waits",
)


Dumped = tuple[tuple[int, ...], bytes, bytes, list[tuple[int, int]], float]


class Tally:
    """Counts and latencies of one group.

    refused: closed by the broker before it answered a byte. unanswered: the driver gave up waiting. connect_errors: no
    connection came about. port_waits, file_waits: this machine had no source port or no file descriptor left; the
    attempt was put off and is not counted.
    """

    __slots__ = (*COUNTS, "admitted_us", "late_s", "per_second", "refused_us")

    def __init__(self) -> None:
        self.attempted = self.admitted = self.refused = 0
        self.connect_errors = self.closed_by_broker = self.unanswered = 0
        self.port_waits = self.file_waits = 0
        self.admitted_us = array("I")
        """Connect to first response, in microseconds, in order of the responses."""
        self.refused_us = array("I")
        """Connect to the broker's close."""
        self.late_s = 0.0
        """By how much the latest start missed its time: this machine could not keep the rate."""
        self.per_second: list[tuple[int, int]] = []
        """Admitted and refused within each second since the start."""

    @property
    def broken(self) -> int:
        """Connections that could not be made, and those the broker cut off after it had admitted them."""
        return self.connect_errors + self.closed_by_broker

    def counts(self) -> tuple[int, ...]:
        """The bare numbers, in the order of COUNTS."""
        return tuple(getattr(self, name) for name in COUNTS)

    def set_counts(self, counts: Iterable[int]) -> None:
        """The reverse of counts()."""
        for name, value in zip(COUNTS, counts, strict=True):
            setattr(self, name, value)

    def tick(self, second: int) -> None:
        """Note that `second` seconds have passed; call at least once a second, as close to the boundary as can be."""
        while len(self.per_second) < second:
            before = [sum(column) for column in zip(*self.per_second, strict=True)] or [0, 0]
            self.per_second.append((self.admitted - before[0], self.refused - before[1]))

    def dump(self) -> Dumped:
        """Everything, in a form that can be sent."""
        return self.counts(), self.admitted_us.tobytes(), self.refused_us.tobytes(), self.per_second, self.late_s

    @classmethod
    def load(cls, dumped: Dumped) -> Tally:
        """The reverse of dump()."""
        tally = cls()
        counts, admitted_us, refused_us, tally.per_second, tally.late_s = dumped
        tally.set_counts(counts)
        tally.admitted_us.frombytes(admitted_us)
        tally.refused_us.frombytes(refused_us)
        return tally

    def add(self, other: Tally) -> None:
        """Take another process's or group's share in."""
        self.set_counts(mine + theirs for mine, theirs in zip(self.counts(), other.counts(), strict=True))
        self.admitted_us.extend(other.admitted_us)
        self.refused_us.extend(other.refused_us)
        self.late_s = max(self.late_s, other.late_s)
        longest = max(len(self.per_second), len(other.per_second))
        mine, theirs = (t.per_second + [(0, 0)] * (longest - len(t.per_second)) for t in (self, other))
        self.per_second = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(mine, theirs, strict=True)]


def percentiles_ms(latencies_us: Iterable[int]) -> dict[str, float | None]:
    """p50, p99 and max in milliseconds, by nearest rank; None where nothing was measured."""
    ordered = sorted(latencies_us)
    if not ordered:
        return {"p50": None, "p99": None, "max": None}

    def rank(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000

    return {"p50": rank(0.50), "p99": rank(0.99), "max": ordered[-1] / 1000}
