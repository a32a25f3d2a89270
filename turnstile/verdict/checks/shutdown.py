"""A client that is told to end while it is refused ends."""

from __future__ import annotations

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import SECOND, Timeline

SOURCE = "SIGTERM; orchestrators kill after 10 s (docker) or 30 s (Kubernetes)"
SOON_S, LATE_S = 5.0, 10.0
_STARVED = 0.25
_BEFORE_NS = SECOND // 10  # the client's CPU time is taken right before the signal
_ADVICE = "Bound close() and flush() by a timeout, and do not wait in them for a broker that can't be reached."


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("shutdown")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("shutdown", "it was not ended"), SOURCE)
    step = steps[0]
    signalled_ns, ended_ns = step.detail["signalled_ns"], step.detail["ended_ns"]
    later = [at_ns for at_ns in timeline.attempts(step) if at_ns > signalled_ns]
    last = f"; the last attempt {(max(later) - signalled_ns) / SECOND:.1f} s after SIGTERM" if later else ""
    if ended_ns is None:
        waited_s = (step.ended_ns - signalled_ns) / SECOND
        seen = f"it was still there {waited_s:.0f} s after SIGTERM, and was killed{last}"
        starved = timeline.starved_share(signalled_ns - _BEFORE_NS, step.ended_ns)
        if starved > _STARVED:
            return Finding(UNJUDGED, f"{seen}; but this machine did not serve it for {starved:.0%} of that", SOURCE)
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    took_s = (ended_ns - signalled_ns) / SECOND
    stalled_s = timeline.machine.stalled_ms(signalled_ns, ended_ns) / 1000
    verdict = _of_time(took_s)
    seen = f"it ended {took_s:.1f} s after SIGTERM, while it was refused{last}"
    if _of_time(took_s - stalled_s) != verdict:
        return Finding(UNJUDGED, f"{seen}; this machine stalled for {stalled_s:.1f} s of it", SOURCE)
    return Finding(verdict, seen, SOURCE, "" if verdict == PASS else _ADVICE)


def _of_time(seconds: float) -> str:
    return PASS if seconds <= SOON_S else WARN if seconds <= LATE_S else FAIL
