"""The driver's counts of one group; snapshots of them travel from the worker processes to the parent.

refusals_have_ends  refused == sum(refused_as.values()), once nothing is in flight
attempts_add_up  attempted == admitted + refused + connect_errors + unanswered + in flight
cut_off_were_admitted  closed_by_broker <= admitted: a connection cut off later was admitted first, and stays counted as
    that
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from turnstile.load.latencies import Latencies

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


Dumped = list[Any]
"""A Tally as JSON has it."""


class Tally:
    """Counts and latencies of one group.

    refused: closed by the broker before it was admitted, or answered with a refusal (probes.py). unanswered: the driver gave up
    waiting. connect_errors: no connection came about. port_waits, file_waits: this machine had no source port or no file
    descriptor left; the attempt was put off and is not counted.
    """

    __slots__ = (*COUNTS, "admitted_us", "late_s", "per_second", "refused_as", "refused_us")

    def __init__(self) -> None:
        self.attempted = self.admitted = self.refused = 0
        self.connect_errors = self.closed_by_broker = self.unanswered = 0
        self.port_waits = self.file_waits = 0
        self.admitted_us = Latencies()
        """Connect to first response."""
        self.refused_us = Latencies()
        """Connect to the broker's close."""
        self.refused_as: Counter[str] = Counter()
        """Refused connections by how they ended (probes.py)."""
        self.late_s = 0.0
        """The delay of the latest start: this machine could not keep the rate."""
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
        latencies = self.admitted_us.dump(), self.refused_us.dump()
        return [list(self.counts()), *latencies, [list(each) for each in self.per_second], self.late_s, self.refused_as]

    @classmethod
    def load(cls, dumped: Dumped) -> Tally:
        """The reverse of dump()."""
        tally = cls()
        counts, admitted_us, refused_us, per_second, tally.late_s, refused_as = dumped
        tally.refused_as.update(refused_as)
        tally.set_counts(counts)
        tally.admitted_us, tally.refused_us = Latencies.load(admitted_us), Latencies.load(refused_us)
        tally.per_second = [(admitted, refused) for admitted, refused in per_second]
        return tally

    def add(self, other: Tally) -> None:
        """Take another process's or group's share in."""
        self.set_counts(ours + theirs for ours, theirs in zip(self.counts(), other.counts(), strict=True))
        self.refused_as.update(other.refused_as)
        self.admitted_us.add(other.admitted_us)
        self.refused_us.add(other.refused_us)
        self.late_s = max(self.late_s, other.late_s)
        longest = max(len(self.per_second), len(other.per_second))
        ours, theirs = (t.per_second + [(0, 0)] * (longest - len(t.per_second)) for t in (self, other))
        self.per_second = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(ours, theirs, strict=True)]
