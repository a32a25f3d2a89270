"""What an audit says."""

from typing import Any, NamedTuple

HELD, EXCEEDED, UNKNOWN = "held", "exceeded", "unknown"
EXIT_CODE = {HELD: 0, EXCEEDED: 1, UNKNOWN: 3}


class Check(NamedTuple):
    """One thing that was looked at. `evidence`: the first instants of a violation, or the gaps."""

    name: str
    verdict: str
    detail: str
    evidence: list[dict[str, Any]]


class Result(NamedTuple):
    """What the audit found: `exceeded` if any check says so, else `unknown` if any does, else `held`."""

    checks: list[Check]
    events: int

    @property
    def verdict(self) -> str:
        """The worst of the checks' verdicts."""
        verdicts = {check.verdict for check in self.checks}
        return EXCEEDED if EXCEEDED in verdicts else UNKNOWN if UNKNOWN in verdicts else HELD

    def as_json(self) -> dict[str, Any]:
        """DESIGN section 8's shape, with evidence."""
        return {"verdict": self.verdict, "checks": [check._asdict() for check in self.checks], "events": self.events}
