"""The drivers of a run on several machines, one by one: where each ran, its clock, what it did, and which were lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SAID = ("attempted", "admitted", "refused", "connect_errors", "closed_by_broker", "unanswered")
NAMED = 8
"""Hosts whose clocks the report names."""


@dataclass(frozen=True)
class DriverReport:
    """One driver. `counts`: by name as in tally.COUNTS; of a lost one as it last said."""

    number: int
    host: str
    counts: dict[str, int]
    clock_ahead_ms: float
    """The lead of its time of day over this machine's, give or take `clock_within_ms`."""
    clock_within_ms: float
    late_ms: float
    """The time from the common start to its own."""
    lost_s: float | None = None
    """Seconds after the start, when it ended without its last word."""
    lost_because: str = ""

    def as_json(self) -> dict[str, object]:
        """The driver as docs/load.md lists it."""
        return {
            "driver": self.number,
            "host": self.host,
            **{name: self.counts[name] for name in _SAID},
            "clock_ahead_ms": round(self.clock_ahead_ms, 3),
            "clock_within_ms": round(self.clock_within_ms, 3),
            "late_ms": round(self.late_ms, 3),
            "lost_s": None if self.lost_s is None else round(self.lost_s, 3),
            "lost_because": self.lost_because or None,
        }

    @property
    def loss(self) -> str:
        """The sentence of one that was lost."""
        counts = self.counts
        return (
            f"Driver {self.number} on {self.host} was lost after {self.lost_s:.1f} s ({self.lost_because}): until its last word "
            f"{counts['attempted']:,} attempted, {counts['admitted']:,} admitted, {counts['refused']:,} refused; "
            "what it did after that, and what it had still to do, is missing"
        )


def summary(drivers: Sequence[DriverReport]) -> str:
    """The number of drivers on each host, the spread of their starts, and the offsets of their clocks."""
    clocks: dict[str, DriverReport] = {}
    for driver in drivers:
        known = clocks.setdefault(driver.host, driver)
        if driver.clock_within_ms < known.clock_within_ms:
            clocks[driver.host] = driver
    late_ms = [driver.late_ms for driver in drivers if driver.lost_s is None]
    spread = f", started within {max(late_ms) - min(late_ms):.1f} ms" if len(late_ms) > 1 else ""
    furthest = sorted(clocks.values(), key=lambda each: -abs(each.clock_ahead_ms))
    shown = [f"{d.host} {d.clock_ahead_ms:+.2f} ms (within {d.clock_within_ms:.2f})" for d in furthest[:NAMED]]
    rest = len(furthest) - len(shown)
    hosts = f"{len(clocks)} host{'s' if len(clocks) > 1 else ''}"
    more = f" and {rest} closer ones" if rest else ""
    return (
        f"{len(drivers)} driver{'s' if len(drivers) > 1 else ''} on {hosts}{spread}; "
        f"clocks beside this machine's: {', '.join(shown)}{more}"
    )
