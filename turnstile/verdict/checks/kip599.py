"""A mutation that a quota refused is not tried again before its throttle time is over: KIP-599."""

from __future__ import annotations

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, Finding
from turnstile.verdict.timeline import MS, SECOND, Timeline

SOURCE = "KIP-599: THROTTLING_QUOTA_EXCEEDED is tried again when throttle_time_ms is over"
MUTATIONS = ("CreateTopics", "CreatePartitions", "DeleteTopics")
LEAST_MS = 100
"""The least throttle time: a client that does not wait may take as long as a shorter one for its next request."""
_MARGIN_MS = 10
_ADVICE = "Wait for throttle_time_ms of the response before the mutation is tried again, on any connection."


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("mutation")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("mutation", "the client changed no topics"), SOURCE)
    made = [event for event in timeline.in_steps(steps, "request", "early") if event.api in (*MUTATIONS, "")]
    throttled = [event for event in made if event.kind == "request" and event.throttle_ms >= LEAST_MS]
    if not throttled:
        return Finding(UNJUDGED, f"no mutation was over its quota by {LEAST_MS} ms", SOURCE)
    broken = 0
    for answer in throttled:
        # told when it was answered; what arrives on its own, muted connection is `early`, and is taken up only later
        told_ns = int(answer.at_ns + answer.took_ms * MS)
        until_ns = told_ns + (answer.throttle_ms - _MARGIN_MS) * MS
        broken += any(event.client_id == answer.client_id and told_ns < event.at_ns < until_ns for event in made)
    longest_s = max(event.throttle_ms for event in throttled) * MS / SECOND
    seen = f"{len(throttled)} mutations were over the quota, for up to {longest_s:.1f} s"
    if broken:
        return Finding(FAIL, f"{seen}; after {broken} of them it tried again before it was told", SOURCE, _ADVICE)
    return Finding(PASS, f"{seen}; it tried none again before it was told", SOURCE)
