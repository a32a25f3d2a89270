"""Copies of a client that lost their connections at one instant do not come back at one instant."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import MS, SECOND, Timeline

SOURCE = "KIP-144, KIP-580: 20 % of jitter on the back-off, so that clients do not return in step"
SETTLING_S = 2.0
"""At first the pauses are so short that all copies fall into one window."""
IN_STEP = 0.35
"""The part of the others that come together beyond chance: all without jitter, but for what a busy machine scatters."""
ALONE = "closed at accept"
_ENOUGH = 6
_WINDOW_NS = 100 * MS
_ADVICE = "Put jitter on the back-off: a random part of at least 20 % of each pause."


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("herd")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("herd", "no copies were run"), SOURCE)
    step = steps[0]
    copies = int(step.detail["copies"])
    began_ns, lifted_ns = step.detail["cut_ns"] + int(SETTLING_S * SECOND), step.detail["lifted_ns"]
    attempts = sorted(at_ns for at_ns in timeline.attempts(step) if began_ns <= at_ns < lifted_ns)
    if len(attempts) < 2 * copies:
        seen = f"{len(attempts)} attempts of {copies} copies in {(lifted_ns - began_ns) / SECOND:.0f} s"
        return Finding(UNJUDGED, f"too few to tell: {seen}", SOURCE)
    seconds = (lifted_ns - began_ns) / SECOND
    per_window = len(attempts) / copies / seconds * _WINDOW_NS / SECOND
    near = _mean_near(attempts)
    alone = _alone(timeline)
    streams = max(timeline.usual_connections, 1)
    if alone is None:  # each connection on its own
        own, in_step = per_window * (streams - 1) / streams, float(streams * copies - 1)
    else:
        own, in_step = alone, alone + (copies - 1) * (alone + 1)
    by_chance = own + (copies - 1) * min(per_window, in_step / copies)
    peak = max(_near(attempts, at_ns) for at_ns in attempts) / copies
    seen = (
        f"{copies} copies, at most {peak:.1f} attempts of each in 100 ms; within 50 ms of an attempt came {near:.1f} others "
        f"({by_chance:.1f} would by chance, {in_step:.1f} in step)"
    )
    if in_step - by_chance < 0.4 * in_step:
        return Finding(UNJUDGED, f"attempts are too dense to tell (see backoff): {seen}", SOURCE)
    beyond = (near - by_chance) / (in_step - by_chance)
    if beyond > IN_STEP:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    if beyond > 0.7 * IN_STEP:
        return Finding(WARN, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen, SOURCE)


def _alone(timeline: Timeline) -> float | None:
    """Of one copy alone, refused as the herd is: how many of its attempts come within 50 ms of one. None: too few to tell."""
    for step in timeline.of_kind("refuse"):
        began_ns, lifted_ns = step.began_ns + int(SETTLING_S * SECOND), step.detail["lifted_ns"]
        attempts = sorted(at_ns for at_ns in timeline.attempts(step) if began_ns <= at_ns < lifted_ns)
        if step.name == ALONE and len(attempts) >= _ENOUGH:
            return _mean_near(attempts)
    return None


def _mean_near(attempts: list[int]) -> float:
    return sum(_near(attempts, at_ns) - 1 for at_ns in attempts) / len(attempts)


def _near(attempts: list[int], at_ns: int) -> int:
    """How many attempts fall into the window around one, itself among them."""
    half_ns = _WINDOW_NS // 2
    return bisect_right(attempts, at_ns + half_ns) - bisect_left(attempts, at_ns - half_ns)
