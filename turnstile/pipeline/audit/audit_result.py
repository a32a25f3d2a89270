"""The result of an audit."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.set_clock import clock_set_s, clock_was_set
from turnstile.pipeline.events.survey import WallSpan
from turnstile.quantities import duration

HELD, EXCEEDED, NOT_JUSTIFIED, UNKNOWN, NOT_JUDGED = "held", "exceeded", "not justified", "unknown", "not judged"
EXIT_CODE = {HELD: 0, EXCEEDED: 1, NOT_JUSTIFIED: 1, UNKNOWN: 2}
FINDINGS = (EXCEEDED, NOT_JUSTIFIED)
WORST_FIRST = (EXCEEDED, NOT_JUSTIFIED, UNKNOWN, HELD)
"""The verdict of all checks: one that was not judged is told, and leaves it to the others."""


class Check(NamedTuple):
    """One thing that was looked at. `evidence`: the first instants of a violation, or the gaps. `brokers`: how many
    violations, or missing events, there are of each broker that has any."""

    name: str
    verdict: str
    detail: str
    evidence: list[TableRow]
    brokers: Mapping[int, int] = MappingProxyType({})

    def as_json(self) -> dict[str, object]:
        """The fields by name; brokers as text, as JSON's keys are."""
        return {**self._asdict(), "brokers": {str(broker): count for broker, count in sorted(self.brokers.items())}}


class AuditResult(NamedTuple):
    """The verdict of the audit: the worst that any check says, in the order of WORST_FIRST.

    `wall`: when the events were, if they say it. `limits`: each limit of connections, and its values in order. `set_ns`: by how
    much the wall clock was set meanwhile; no check looks at it.
    """

    checks: list[Check]
    events: int
    wall: WallSpan | None
    limits: dict[str, list[str]]
    set_ns: int = 0

    @property
    def verdict(self) -> str:
        """The worst of the checks' verdicts."""
        verdicts = {check.verdict for check in self.checks}
        return next((each for each in WORST_FIRST if each in verdicts), UNKNOWN)

    def as_json(self) -> dict[str, object]:
        """Plain data: the verdict, each check with its evidence, how many events there are, from when to when, and the limits."""
        first, last = (_instant(each) for each in self.wall) if self.wall is not None else (None, None)
        return {
            "verdict": self.verdict,
            "checks": [check.as_json() for check in self.checks],
            "events": self.events,
            "from": first,
            "to": last,
            "clock_set_s": clock_set_s(self.set_ns),
            "limits": self.limits,
        }

    @property
    def facts(self) -> str:
        """The number of events, and the times of the first and the last."""
        if self.wall is None:
            return f"{self.events:,} events"
        first, last = (datetime.fromtimestamp(each / 1e9, UTC) for each in self.wall)
        took = duration((self.wall.last_ns - self.wall.first_ns) / 1e6)
        text = f"{self.events:,} events, {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC ({took})"
        return ". ".join(filter(None, (text, clock_was_set(clock_set_s(self.set_ns)).rstrip("."))))


def _instant(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).isoformat()
