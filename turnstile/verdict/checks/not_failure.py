"""To be throttled is not to have failed: no connection is given up for it."""

from __future__ import annotations

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import Timeline

SOURCE = "KIP-219, and KAFKA-16083 (apache/kafka#15130): a request that waits for a throttle has not expired"
_ADVICE = "Leave throttle times out of request timeouts, and keep the connection."


def judge(timeline: Timeline) -> Finding:
    for step in timeline.of_kind("throttle", "overlap"):
        if code := step.detail.get("exit_code"):
            return Finding(FAIL, f"the program ended, with exit code {code}, while it was throttled", SOURCE, _ADVICE)
    steps = timeline.of_kind("throttle")
    muted = {event.conn for event in timeline.in_steps(steps, "request") if event.throttle_ms}
    if not muted:
        return Finding(UNJUDGED, timeline.skipped.get("throttle", "nothing was throttled"), SOURCE)
    closed = [event for event in timeline.in_steps(steps, "closed") if event.reason == "client"]
    seconds = sum(step.seconds for step in steps)
    usual = len([e for e in timeline.within(timeline.baseline, "closed") if e.reason == "client"])
    expected = usual * seconds / timeline.baseline.seconds
    gone = [event for event in closed if event.conn in muted and not timeline.is_the_end(event.at_ns)]
    longest = max(event.throttle_ms for event in timeline.in_steps(steps, "request"))
    limits = f"throttle times of up to {longest} ms; {timeline.skipped.get('timeout', 'one was longer than its request timeout')}"
    if len(gone) <= 2 * expected:
        return Finding(PASS, f"it kept its {len(muted)} connections under {limits}", SOURCE)
    seen = (
        f"it closed {len(gone)} connections that were throttled ({expected:.0f} are usual in that time), under {limits}"
    )
    return Finding(FAIL if len(gone) > 1 + expected else WARN, seen, SOURCE, _ADVICE)
