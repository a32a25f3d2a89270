"""All checks, in the order of the report, and the verdict of a whole.

Each check is a file of checks/: backoff.py judges what follows a refusal; kip219.py, deadline.py and not_failure.py what follows a
throttle time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import NamedTuple

from turnstile.verdict.checks import (
    backoff,
    deadline,
    delivery,
    footprint,
    groups,
    herd,
    kip219,
    kip599,
    kip714,
    not_failure,
    recovery,
    shutdown,
)
from turnstile.verdict.finding import FAIL, PASS, UNJUDGED, WARN, Finding
from turnstile.verdict.timeline import Timeline


class Check(NamedTuple):
    """`steps`: the kinds of step of the course that it needs. `stall_s`: a machine that stalled for longer in these may have made a
    client fail that behaves, by its timeouts; other checks see themselves what a stall does to what they measure."""

    title: str
    judge: Callable[[Timeline], Finding]
    steps: tuple[str, ...]
    stall_s: float = inf


CHECKS: dict[str, Check] = {
    "kip219": Check("sends nothing while it is throttled", kip219.judge, ("throttle",)),
    "deadline": Check("of two throttle times, waits for the later", deadline.judge, ("throttle", "overlap")),
    "not-failure": Check("does not take throttling for failure", not_failure.judge, ("throttle",), stall_s=1),
    "backoff": Check("tries again later and later when refused", backoff.judge, ("refuse",)),
    "herd": Check("copies do not come back at one instant", herd.judge, ("herd",)),
    "footprint": Check("does not pile up connections", footprint.judge, ("throttle", "refuse", "kill"), stall_s=1),
    "groups": Check("stays in its group while throttled", groups.judge, ("throttle",), stall_s=1),
    "kip599": Check("waits before a refused mutation is tried again", kip599.judge, ("mutation",)),
    "kip714": Check("pushes telemetry as often as told", kip714.judge, ("telemetry",)),
    "delivery": Check("loses and doubles nothing", delivery.judge, ("throttle",), stall_s=1),
    "recovery": Check("works again once limits are lifted", recovery.judge, ("refuse", "rate", "kill")),
    "shutdown": Check("ends while it is refused", shutdown.judge, ("shutdown",)),
}


def steps_of(checks: Iterable[str]) -> set[str]:
    """The kinds of step that these checks need."""
    return {step for check in checks for step in CHECKS[check].steps}


def judge(timeline: Timeline, checks: Iterable[str]) -> dict[str, Finding]:
    """A finding for each check, in the order of the report. Where the cluster or the machine has faltered, no client is blamed."""
    wanted = set(checks)
    return {name: _judged(timeline, check) for name, check in CHECKS.items() if name in wanted}


def _judged(timeline: Timeline, check: Check) -> Finding:
    found = check.judge(timeline)
    why = _why_not(timeline, check) if found.verdict in (WARN, FAIL) else ""
    return found._replace(verdict=UNJUDGED, evidence=f"{why}: {found.evidence}", apis=()) if why else found


def _why_not(timeline: Timeline, check: Check) -> str:
    """The reason for which a failed check does not count; empty where it does."""
    if timeline.has_faltered:
        return "a shard of the cluster ended by itself meanwhile"
    longest_ms = max(
        (timeline.machine.longest_ms(step.began_ns, step.ended_ns) for step in timeline.of_kind(*check.steps)),
        default=0.0,
    )
    return f"this machine stalled for {longest_ms / 1000:.1f} s meanwhile" if longest_ms > 1000 * check.stall_s else ""


def exit_code(findings: Mapping[str, Finding]) -> int:
    """1: a check failed; 2: none could be judged; else 0."""
    verdicts = {finding.verdict for finding in findings.values()}
    return 1 if FAIL in verdicts else 0 if verdicts & {PASS, WARN} else 2
