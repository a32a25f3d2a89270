"""A client does not pile up connections when it loses some.

Copies have connections of their own, until the step that follows theirs. A connection whose login failed is kept by the broker
for `connection.failed.authentication.delay.ms`, whatever the client does (KIP-306).
"""

from __future__ import annotations

from itertools import zip_longest

from turnstile.verdict.checks.recovery import FAILED_LOGIN
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import SECOND, Timeline

SOURCE = "KIP-612 and kafka_connections_max_per_ip: each connection counts against its address"
SPARE = 2
_SETTLING_NS = 2 * SECOND
_ADVICE = "Close a connection before another one is opened in its place, and share connections inside the process."


def judge(timeline: Timeline) -> Finding:
    usual = timeline.usual_connections
    apart, judged = [], []
    for step, following in zip_longest(timeline.steps, timeline.steps[1:]):
        if step.kind == "herd" or step.name == FAILED_LOGIN:
            apart.append((step.began_ns, following.began_ns if following else step.ended_ns))
        elif step.kind not in ("shutdown", "baseline"):
            judged.append(step)
    if not usual or not judged:
        return Finding(UNJUDGED, "it had no connection in the baseline", SOURCE)
    began_ns, ended_ns = judged[0].began_ns, judged[-1].ended_ns
    most = timeline.most_open(
        lambda at_ns: began_ns <= at_ns <= ended_ns and not any(began <= at_ns <= ended for began, ended in apart)
    )
    until_ns = min([ended_ns, *(began for began, _ in apart)])
    left = next((count for at_ns, count in reversed(timeline.open_counts) if at_ns < until_ns), 0)
    seen = f"{usual} connections in the baseline, at most {most} later, {left} once all was lifted"
    if most > usual + SPARE:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    if left > usual:
        return Finding(WARN, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen, SOURCE)
