"""Telemetry is pushed as the broker asks for it: no more often, and not to a subscription that has changed. KIP-714.

The broker's own answers are the evidence: it says THROTTLING_QUOTA_EXCEEDED to what comes before its time, and
UNKNOWN_SUBSCRIPTION_ID to a push for a subscription that is no longer so. Once after that it may push early: it begins anew
between half an interval and one and a half, which a broker measures from the push that it refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import MS, TELEMETRY, Event, Step, Timeline

SOURCE = "KIP-714: a client pushes once in PushIntervalMs; it waits as long after an error, and asks again when told to"
EARLY, UNKNOWN = "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_SUBSCRIPTION_ID"
ASKED, PUSHED = TELEMETRY
_LEAST = 3
_MARGIN_MS = 10
_SHOWN, _STALLED = 2, 0.25
"""Pushes in time of a machine that stalled for no more than this part of the interval: fewer do not show that none is early."""
_ADVICE = (
    "Wait for PushIntervalMs between two PushTelemetry requests, and after an error; after UNKNOWN_SUBSCRIPTION_ID, ask "
    "GetTelemetrySubscriptions before the next one."
)


def judge(timeline: Timeline) -> Finding:
    if not timeline.of_kind("telemetry"):
        why = timeline.skipped.get("telemetry", "it did not ask for telemetry subscriptions")
        return Finding(UNJUDGED, why, SOURCE)
    steps = [step for step in timeline.of_kind("baseline", "telemetry") if "interval_ms" in step.detail]
    seen = [event for event in timeline.in_steps(steps, "request") if event.api in TELEMETRY]
    pushes = _of(seen, PUSHED)
    if len(pushes) < _LEAST:
        return Finding(UNJUDGED, f"it pushed {len(pushes)} times, too few to judge", SOURCE)
    stamped = [event for event in timeline.in_steps(steps, "fault") if event.api == PUSHED]
    unknown, asked = len(_with(seen, UNKNOWN)), len(_of(seen, ASKED))
    refused = [event for event in _with(seen, EARLY) if not _was_stamped(stamped, event)]
    excused = sum(_was_stalled(timeline, seen, steps, event) for event in refused)
    early = len(refused) - excused - min(unknown, asked)
    instances = len(_of(timeline.within(timeline.baseline, "request"), ASKED)) or 1
    intervals = " and ".join(f"{ms} ms" for ms in dict.fromkeys(step.detail["interval_ms"] for step in steps))
    sentence = f"{len(pushes)} pushes, where {intervals} were told"
    if early > 0:
        return Finding(FAIL, f"{sentence}: {early} requests came before their time", SOURCE, _ADVICE)
    if unknown > asked + instances:
        said = f"{unknown} were for a subscription that had changed, for which it asked {asked} times"
        return Finding(FAIL, f"{sentence}: {said}", SOURCE, _ADVICE)
    if _in_time(timeline, steps) < _SHOWN:
        return Finding(
            UNJUDGED, f"{sentence}; this machine stalled between them, so that early ones can't be told", SOURCE
        )
    return Finding(PASS, f"{sentence}; none came before its time", SOURCE)


def _in_time(timeline: Timeline, steps: Iterable[Step]) -> int:
    """The number of pushes that came in time although the machine had let an early one be early: it served, but for a short time,
    since the one before. A client that always pushes too early has none."""
    found = 0
    for step in steps:
        most_ms = _STALLED * step.detail["interval_ms"]
        # Sorting is stable: those of a connection stay in the order of time.
        pushes = sorted(_of(timeline.within(step, "request"), PUSHED), key=lambda event: event.conn)
        found += sum(
            before.conn == after.conn and not before.reason and after.reason != EARLY
            and timeline.machine.stalled_ms(before.at_ns, after.at_ns) <= most_ms
            for before, after in pairwise(pushes)
        )  # fmt: skip
    return found


def _was_stamped(stamped: list[Event], event: Event) -> bool:
    """True if the course had it answered that way."""
    until_ns = event.at_ns + (event.took_ms + _MARGIN_MS) * MS
    return any(each.conn == event.conn and event.at_ns <= each.at_ns <= until_ns for each in stamped)


def _was_stalled(timeline: Timeline, seen: list[Event], steps: list[Step], event: Event) -> bool:
    """True if one came too early by no more than the machine had stalled right before the one before it, which so came late."""
    before = next((each for each in reversed(seen) if each.conn == event.conn and each.at_ns < event.at_ns), None)
    if before is None:
        return False
    interval_ms = next(step.detail["interval_ms"] for step in steps if step.began_ns <= event.at_ns <= step.ended_ns)
    short_ms: float = interval_ms - (event.at_ns - before.at_ns) / MS
    since_ns = before.at_ns - (short_ms + _MARGIN_MS) * MS
    return short_ms <= _MARGIN_MS + timeline.machine.stalled_ms(since_ns, before.at_ns)


def _of(events: Iterable[Event], api: str) -> list[Event]:
    return [event for event in events if event.api == api]


def _with(events: Iterable[Event], error: str) -> list[Event]:
    return [event for event in events if event.reason == error]
