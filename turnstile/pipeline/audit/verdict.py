"""What an audit says."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

HELD, EXCEEDED, UNKNOWN = "held", "exceeded", "unknown"
EXIT_CODE = {HELD: 0, EXCEEDED: 1, UNKNOWN: 3}


class Check(NamedTuple):
    """One thing that was looked at. `evidence`: the first instants of a violation, or the gaps. `brokers`: how many
    violations, or missing events, there are of each broker that has any."""

    name: str
    verdict: str
    detail: str
    evidence: list[dict[str, Any]]
    brokers: Mapping[int, int] = MappingProxyType({})

    def as_json(self) -> dict[str, Any]:
        """Its fields by name; brokers as text, as JSON's keys are."""
        return {**self._asdict(), "brokers": {str(broker): count for broker, count in sorted(self.brokers.items())}}


class AuditResult(NamedTuple):
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
        return {"verdict": self.verdict, "checks": [check.as_json() for check in self.checks], "events": self.events}
