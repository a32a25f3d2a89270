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
    streams = copies * max(timeline.usual_connections, 1)
    per_s = len(attempts) / streams / ((lifted_ns - began_ns) / SECOND)
    together = sum(_near(attempts, at_ns) - 1 for at_ns in attempts) / len(attempts) / (streams - 1)
    chance = min(per_s * _WINDOW_NS / SECOND, 1.0)
    peak = max(_near(attempts, at_ns) for at_ns in attempts) / copies
    seen = (
        f"{copies} copies, at most {peak:.1f} attempts of each in 100 ms; {together:.0%} of the others came within 50 ms of "
        f"an attempt ({chance:.0%} would by chance)"
    )
    if chance > 0.6:
        return Finding(UNJUDGED, f"attempts are too dense to tell (see backoff): {seen}", SOURCE)
    beyond = (together - chance) / (1 - chance)
    if beyond > IN_STEP:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    if beyond > 0.7 * IN_STEP:
        return Finding(WARN, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen, SOURCE)


def _near(attempts: list[int], at_ns: int) -> int:
    """How many attempts fall into the window around one, itself among them."""
    half_ns = _WINDOW_NS // 2
    return bisect_right(attempts, at_ns + half_ns) - bisect_left(attempts, at_ns - half_ns)
