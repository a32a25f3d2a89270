"""Nothing is sent on a connection while it is muted: KIP-219."""

from __future__ import annotations

from statistics import median

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import Timeline

SOURCE = "KIP-219: a client sends nothing on a connection until its throttle time is over"
AT_ONCE_MS = 25
"""What arrives so soon may have been under way already; but not after every other response."""
OFTEN = 0.2
"""Of the throttled responses: less may come of a client that reads a response late, on a busy machine."""
ENOUGH = 3
"""Throttled responses: that nothing follows fewer may be chance."""
_ADVICE = (
    "Wait for throttle_time_ms of each response before the next request on that connection, or take a client that does."
)


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("throttle")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("throttle", "nothing was throttled"), SOURCE)
    mutes = [event for event in timeline.in_steps(steps, "request") if event.throttle_ms]
    if not mutes:
        return Finding(UNJUDGED, "no request was made while requests were throttled", SOURCE)
    arrived = timeline.in_steps(steps, "early")
    early = [event for event in arrived if event.took_ms > AT_ONCE_MS]
    at_once = [event for event in arrived if event.took_ms <= AT_ONCE_MS]
    alone = [event for event in mutes if not event.value] or mutes  # behind which nothing waited
    if len(at_once) > 1 and 2 * len(at_once) >= len(alone):
        early += at_once
    told = f"{len(mutes)} throttled responses, of {min(m.throttle_ms for m in mutes)} to {max(m.throttle_ms for m in mutes)} ms"
    if not early and len(mutes) < ENOUGH:
        return Finding(UNJUDGED, f"too few to tell: {told}", SOURCE)
    if not early:
        return Finding(PASS, f"nothing arrived on a muted connection, in {told}", SOURCE)
    after_ms = median(event.took_ms for event in early)
    seen = f"bytes arrived {len(early)} times on a muted connection, mostly {after_ms:.0f} ms after the response, in {told}"
    is_rule = len(early) > 2 and len(early) >= OFTEN * len(mutes)
    return Finding(FAIL if is_rule else WARN, seen, SOURCE, _ADVICE)
