"""Copies of a client that lost their connections at one instant do not come back at one instant.

Attempts that copies make in step come close together, and leave gaps beside: more pairs of them are near each other than a
little further apart. What connections of one copy make in step is no herd; it shows when that copy is refused alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import MS, SECOND, Step, Timeline

SOURCE = "KIP-144, KIP-580: 20 % of jitter on the back-off, so that clients do not return in step"
SETTLING_S = 2.0
"""The first pauses are so short that all copies come together, whatever the jitter."""
IN_STEP, APART = 0.5, 0.4
"""The share of what copies in step would show: more is a herd, less is none. With 20 % of jitter it is 0.4 at most (400 courses of
5 copies with 1 to 4 connections, simulated), without any 0.9 at least."""
LATE_MS = 5.0
"""The greatest mean delay with which a machine wakes threads: a larger one puts copies in step apart, and says nothing of them."""
_STALL_MS = 20
"""Attempts that a machine has held up for longer come at one instant, in step or not: they do not count."""
ALONE = "closed at accept"
_ENOUGH, _LONG_S = 6, 2.0  # attempts of one copy alone, in so much time
_DENSE_PER_S = 5
_NEAR_NS = 50 * MS
_FAR_NS = (100 * MS, 300 * MS)
_ADVICE = "Put jitter on the back-off: a random part of at least 20 % of each pause."


class Bounds(NamedTuple):
    """The least and the most that a figure is."""

    least: float
    most: float


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("herd")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("herd", "no copies were run"), SOURCE)
    step = min(steps, key=lambda each: _late_ms(timeline, each))
    streams = max(timeline.usual_connections, 1)
    copies, seconds = int(step.detail["copies"]), _judged_s(step)
    attempts = _attempts(timeline, step)
    seen = f"{len(attempts)} attempts of {copies} copies in {seconds:.0f} s"
    if len(attempts) < 2 * copies:
        return Finding(UNJUDGED, f"too few to tell: {seen}", SOURCE)
    if len(attempts) > _DENSE_PER_S * seconds * copies * streams:
        return Finding(UNJUDGED, f"too dense to tell (see backoff): {seen}", SOURCE)
    low, high = _in_step(_excess(attempts), copies, *_alone(timeline, streams))
    peak = max(_pairs(attempts, at_ns, 0, _NEAR_NS) for at_ns in attempts) / copies
    part = f"{low:.0%}" if high - low < 0.01 else f"{low:.0%} to {high:.0%}"
    seen += f", at most {peak:.1f} of each in 100 ms: {part} of what copies in step would show"
    if low > IN_STEP:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    if high > APART:
        return Finding(UNJUDGED, f"it can't be told: {seen}", SOURCE)
    late_ms = _late_ms(timeline, step)
    if late_ms > LATE_MS:
        return Finding(
            UNJUDGED, f"this machine wakes threads {late_ms:.0f} ms late, which puts copies apart: {seen}", SOURCE
        )
    return Finding(PASS, seen, SOURCE)


def _late_ms(timeline: Timeline, step: Step) -> float:
    return timeline.machine.late_ms(step.detail["cut_ns"], step.detail["lifted_ns"])


def _in_step(excess: float, copies: int, least: float, most: float) -> Bounds:
    """The part of a whole herd that an excess is, at least and at most. `least`, `most`: of one copy by itself."""
    found = [max(excess - own, 0.0) / ((copies - 1) * (own + 1)) for own in (most, least)]
    return Bounds(min(found), max(found))


def _alone(timeline: Timeline, streams: int) -> Bounds:
    """The excess of one copy, refused as the herd is; if that is not known, what it is at least and at most."""
    for step in timeline.of_kind("refuse"):
        attempts = _attempts(timeline, step)
        if step.name == ALONE and len(attempts) >= _ENOUGH and _judged_s(step) >= _LONG_S:
            own = max(_excess(attempts), 0.0)
            return Bounds(own, own)
    return Bounds(0.0, float(streams - 1))


def _judged_s(step: Step) -> float:
    """Seconds in which pauses were long; copies were cut some time after their step began."""
    began_ns = step.detail.get("cut_ns", step.began_ns)
    return (step.detail["lifted_ns"] - began_ns) / SECOND - SETTLING_S


def _attempts(timeline: Timeline, step: Step) -> list[int]:
    """The times of attempts once the pauses are long."""
    lifted_ns = step.detail["lifted_ns"]
    began_ns = lifted_ns - _judged_s(step) * SECOND
    found = sorted(at_ns for at_ns in timeline.attempts(step) if began_ns <= at_ns < lifted_ns)
    return [at_ns for at_ns in found if timeline.machine.longest_ms(at_ns - _STALL_MS * MS, at_ns) <= _STALL_MS]


def _excess(attempts: list[int]) -> float:
    """The mean number of others near an attempt, beyond those that its surroundings let expect."""
    near = sum(_pairs(attempts, at_ns, 0, _NEAR_NS) - 1 for at_ns in attempts)
    far = sum(_pairs(attempts, at_ns, *_FAR_NS) for at_ns in attempts)
    return (near - far * _NEAR_NS / (_FAR_NS[1] - _FAR_NS[0])) / len(attempts)


def _pairs(attempts: list[int], at_ns: int, nearest_ns: int, furthest_ns: int) -> int:
    """The number of attempts that are so far from an instant, before or after it."""

    def within(lag_ns: int) -> int:
        return bisect_right(attempts, at_ns + lag_ns) - bisect_left(attempts, at_ns - lag_ns)

    return within(furthest_ns) - (within(nearest_ns) if nearest_ns else 0)
