"""The throttle times in the responses that clients got, in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping

ThrottleTotals = dict[str, float]
"""`responses` that carried a throttle time above zero, `total_ms` and `max_ms` of them."""


class Throttles:
    """Counts what one client is told."""

    def __init__(self) -> None:
        self._responses, self._total_ms, self._max_ms = 0, 0.0, 0.0

    def add(self, throttle_ms: float) -> None:
        """One answer's throttle time; 0 counts for nothing."""
        if throttle_ms > 0:
            self._responses += 1
            self._total_ms += throttle_ms
            self._max_ms = max(self._max_ms, throttle_ms)

    def as_json(self) -> ThrottleTotals:
        return {"responses": self._responses, "total_ms": round(self._total_ms, 1), "max_ms": round(self._max_ms, 1)}


def merge(into: dict[str, ThrottleTotals], more: Mapping[str, ThrottleTotals]) -> None:
    """Adds what other clients of the same names were told."""
    for label, totals in more.items():
        known = into.setdefault(label, {"responses": 0, "total_ms": 0.0, "max_ms": 0.0})
        known["responses"] += totals["responses"]
        known["total_ms"] += totals["total_ms"]
        known["max_ms"] = max(known["max_ms"], totals["max_ms"])


def sentence(label: str, totals: ThrottleTotals) -> str:
    """A line of the report."""
    if not totals["responses"]:
        return f"{label}: never throttled"
    mean = totals["total_ms"] / totals["responses"]
    return f"{label}: throttled {totals['responses']:,.0f} times, {mean:,.0f} ms on average, {totals['max_ms']:,.0f} ms at most"
