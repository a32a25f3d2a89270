"""A client that is refused tries again later and later, and does not spin while it waits."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, median, pstdev

from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding, Judgement, worst
from turnstile.verdict.timeline import SECOND, Step, Timeline

SOURCE = "KIP-144, KIP-580: reconnect.backoff.ms grows to reconnect.backoff.max.ms, with jitter"
MOST_PER_S = 6
"""Attempts a second for each connection that it usually has: beyond, there is no back-off to speak of.

Of the clients of one program some may wait while the others storm: librdkafka passes over its back-off, 20 times a second, unless
its own thread was the first to wait for it. Attempts that are refused do not say which client made them, so the mean counts.
"""
MOST_BUSY = 0.7
"""The share of the time from which a client that usually needs far less is in a busy loop."""
_RAN = 0.25
"""The least share of the time: threads that have run for less were waiting, in a busy loop or not."""
_ATTEMPT_S = 0.01
"""Far more than an attempt takes of a CPU: many threads that each try now and then are no busy loop."""
_SLOW_S = 0.9
_LEAST_S = 0.5
"""The least time of a step's second half that is judged, whatever the machine has stalled: a rate over less says nothing."""
_ADVICE = "Wait between attempts, longer after each failure, up to a second or more; and sleep while waiting."


def judge(timeline: Timeline) -> Finding:
    steps = timeline.of_kind("refuse")
    if not steps:
        return Finding(UNJUDGED, timeline.skipped.get("refuse", "nothing was refused"), SOURCE)
    verdict, evidence = worst([_of_variant(timeline, step) for step in steps])
    return Finding(verdict, evidence, SOURCE, "" if verdict == PASS else _ADVICE)


def _of_variant(timeline: Timeline, step: Step) -> Judgement:
    lifted_ns = step.detail["lifted_ns"]
    attempts = sorted(at_ns for at_ns in timeline.attempts(step) if at_ns < lifted_ns)
    spinning = _spinning(timeline, step, len(attempts))
    gaps = [(after - before) / SECOND for before, after in pairwise(attempts)]
    if spinning is not None:
        return Judgement(FAIL, f"{step.name}: {spinning}")
    if len(gaps) < 2:
        return Judgement(
            UNJUDGED, f"{step.name}: {len(attempts)} attempts in {(lifted_ns - step.began_ns) / SECOND:.0f} s"
        )
    slots = max(timeline.usual_connections, 1)
    middle_ns = (step.began_ns + lifted_ns) // 2
    late = [at_ns for at_ns in attempts if at_ns >= middle_ns]
    half_s = (lifted_ns - middle_ns) / SECOND
    served_s = half_s - timeline.machine.stalled_ms(middle_ns, lifted_ns) / 1000
    per_s, served_per_s = (len(late) / seconds / slots for seconds in (half_s, max(served_s, _LEAST_S)))
    seen = f"{step.name}: {len(attempts)} attempts, {_gaps(gaps)}"
    if served_per_s > MOST_PER_S:
        return Judgement(FAIL, f"{seen}, {served_per_s:.0f} a second to the end for each of its {slots} connections")
    grows = 2 * len(late) < 0.8 * len(attempts)
    if not grows and per_s > 1 / _SLOW_S:
        return Judgement(
            WARN, f"{seen}, {per_s:.1f} a second for each of its {slots} connections: it does not back off further"
        )
    return Judgement(PASS, seen)


def _gaps(gaps: list[float]) -> str:
    """The growth of the gaps, their ceiling and their jitter, in words."""
    third = max(len(gaps) // 3, 1)
    early, late = gaps[:third], gaps[-third:]
    jitter = pstdev(late) / mean(late) if len(late) > 1 and mean(late) else 0.0
    between = f"{1000 * median(early):.0f} ms apart at first, {1000 * median(late):.0f} ms at last"
    return f"{between}, at most {max(gaps):.1f} s (spread {jitter:.0%})"


def _spinning(timeline: Timeline, step: Step, attempts: int) -> str | None:
    """The sentence that the client is in a busy loop. On a loaded machine it runs less and waits more, before it was refused,
    too."""
    lifted_ns = step.detail["lifted_ns"]
    seen = timeline.busy_share(step.began_ns, lifted_ns)
    if seen is None or sum(seen) < MOST_BUSY or seen[0] < _RAN:
        return None
    usual = timeline.busy_share(timeline.baseline.began_ns, timeline.baseline.ended_ns) or (0.0, 0.0)
    if sum(seen) < 2 * sum(usual) and seen[0] < 3 * usual[0]:
        return None
    if seen[0] * (lifted_ns - step.began_ns) / SECOND < _ATTEMPT_S * attempts:
        return None
    return (
        f"it was running, or ready to, for {sum(seen):.0%} of the time while it was refused ({sum(usual):.0%} before)"
    )
