"""What an audit says."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

HELD, EXCEEDED, NOT_JUSTIFIED, UNKNOWN, NOT_JUDGED = "held", "exceeded", "not justified", "unknown", "not judged"
EXIT_CODE = {HELD: 0, EXCEEDED: 1, NOT_JUSTIFIED: 1, UNKNOWN: 2}
FINDINGS = (EXCEEDED, NOT_JUSTIFIED)
WORST_FIRST = (EXCEEDED, NOT_JUSTIFIED, UNKNOWN, HELD)
"""What the whole is: a check that was not judged is told, and leaves it to the others."""


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
    """What the audit found: the worst that any check says, in the order of WORST_FIRST."""

    checks: list[Check]
    events: int

    @property
    def verdict(self) -> str:
        """The worst of the checks' verdicts."""
        verdicts = {check.verdict for check in self.checks}
        return next((each for each in WORST_FIRST if each in verdicts), UNKNOWN)

    def as_json(self) -> dict[str, Any]:
        """Plain data: the verdict, each check with its evidence, and how many events there are."""
        return {"verdict": self.verdict, "checks": [check.as_json() for check in self.checks], "events": self.events}
