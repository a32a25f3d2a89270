"""A client does not pile up connections when it loses some.

Copies have connections of their own. A connection whose login failed is kept by the broker for
`connection.failed.authentication.delay.ms`, whatever the client does (KIP-306).
"""

from __future__ import annotations

from turnstile.verdict.checks.recovery import FAILED_LOGIN
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import SECOND, Timeline

SOURCE = "KIP-612 and kafka_connections_max_per_ip: each connection counts against its address"
SPARE = 2
_SETTLING_NS = 2 * SECOND
_ADVICE = "Close a connection before another one is opened in its place, and share connections inside the process."


def judge(timeline: Timeline) -> Finding:
    usual = timeline.usual_connections
    apart = [step for step in timeline.steps if step.kind == "herd" or step.name == FAILED_LOGIN]
    judged = [step for step in timeline.steps if step.kind not in ("shutdown", "baseline") and step not in apart]
    if not usual or not judged:
        return Finding(UNJUDGED, "it had no connection in the baseline", SOURCE)
    began_ns, ended_ns = judged[0].began_ns, judged[-1].ended_ns
    most = timeline.most_open(
        lambda at_ns: began_ns <= at_ns <= ended_ns and not any(s.began_ns <= at_ns <= s.ended_ns for s in apart)
    )
    until_ns = min([ended_ns, *(step.began_ns for step in apart)])
    left = next((count for at_ns, count in reversed(timeline.open_counts) if at_ns < until_ns), 0)
    seen = f"{usual} connections in the baseline, at most {most} later, {left} once all was lifted"
    if most > usual + SPARE:
        return Finding(FAIL, seen, SOURCE, _ADVICE)
    if left > usual:
        return Finding(WARN, seen, SOURCE, _ADVICE)
    return Finding(PASS, seen, SOURCE)
