"""Once a limit is lifted, the client works again soon."""

from __future__ import annotations

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding, Judgement, worst
from turnstile.verdict.timeline import SECOND, Step, Timeline

SOURCE = "reconnect.backoff.max.ms: a second in the Java client, ten in librdkafka"
SOON_S = 5.0
_STARVED = 0.25
FAILED_LOGIN, ANSWERED_WITH_AN_ERROR = "failed login", "answered with an error"
_FINAL = {
    FAILED_LOGIN: "Kafka's own clients take a failed login as final, too",
    ANSWERED_WITH_AN_ERROR: "the protocol does not have clients retry after POLICY_VIOLATION",
}
"""Refusals that a client may take for final, and why."""
_ADVICE = "Bound the back-off, and do not give up for good: a refused connection says nothing about the next one."


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("refuse", "rate", "kill")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("refuse", "nothing was refused"), SOURCE)
    verdict, evidence = worst([_of_step(timeline, step) for step in steps])
    return Finding(verdict, evidence, SOURCE, "" if verdict == PASS else _ADVICE)


def _of_step(timeline: Timeline, step: Step) -> Judgement:
    recovered_ns = step.detail["recovered_ns"]
    lifted_ns = step.detail["lifted_ns"]
    if recovered_ns is None:
        why = "it had ended by itself" if step.detail.get("has_ended") else "nothing was asked"
        seen = f"{step.name}: {why} in the {(step.ended_ns - lifted_ns) / SECOND:.0f} s after it was lifted"
        if timeline.is_attached:
            return Judgement(UNJUDGED, f"{seen}; whether it gave up or was ended can't be told")
        if step.name in _FINAL:
            return Judgement(WARN, f"{seen}; {_FINAL[step.name]}")
        starved = timeline.starved_share(lifted_ns, step.ended_ns)
        if starved > _STARVED:
            return Judgement(UNJUDGED, f"{seen}, for {starved:.0%} of which this machine did not serve")
        return Judgement(FAIL, seen)
    took_s = max(recovered_ns - lifted_ns, 0) / SECOND
    stalled_s = timeline.machine.stalled_ms(lifted_ns, recovered_ns) / 1000
    seen = f"{step.name}: working again after {took_s:.1f} s"
    if took_s - stalled_s <= SOON_S < took_s:
        return Judgement(UNJUDGED, f"{seen}, of which this machine stalled for {stalled_s:.1f} s")
    return Judgement((PASS if took_s <= SOON_S else WARN), seen)
