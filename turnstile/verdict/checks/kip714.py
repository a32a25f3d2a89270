"""Telemetry is pushed no more often than the broker asks for: KIP-714."""

from __future__ import annotations

from itertools import pairwise

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import MS, Event, Timeline

SOURCE = "KIP-714: a client pushes once in PushIntervalMs, between half of it and one and a half at first"
_ADVICE = "Wait for PushIntervalMs between two PushTelemetry requests."


def judge(timeline: Timeline, push_interval_ms: int | None = None) -> Finding:
    """`push_interval_ms`: what the broker told; None: it offers no telemetry."""
    if push_interval_ms is None:
        return Finding(UNJUDGED, "this broker offers no telemetry, so nothing asks a client to push any", SOURCE)
    by_client: dict[str, list[Event]] = {}
    for event in timeline.events:
        if event.kind == "request" and event.api == "PushTelemetry":
            by_client.setdefault(event.client_id, []).append(event)
    gaps = [(b.at_ns - a.at_ns) / MS for pushes in by_client.values() for a, b in pairwise(pushes)]
    if not gaps:
        return Finding(UNJUDGED, "it pushed less than twice", SOURCE)
    seen = f"{len(gaps) + 1} pushes, at least {min(gaps):.0f} ms apart, where {push_interval_ms} ms were told"
    return Finding(FAIL, seen, SOURCE, _ADVICE) if min(gaps) < 0.45 * push_interval_ms else Finding(PASS, seen, SOURCE)
