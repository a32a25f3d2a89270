"""All checks, in the order of the report, and the verdict of a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    """`steps`: the kinds of step of the course that it needs."""

    title: str
    judge: Callable[[Timeline], Finding]
    steps: tuple[str, ...]


CHECKS: dict[str, Check] = {
    "kip219": Check("sends nothing while it is throttled", kip219.judge, ("throttle",)),
    "deadline": Check("of two throttle times, waits for the later", deadline.judge, ("throttle", "overlap")),
    "not-failure": Check("does not take throttling for failure", not_failure.judge, ("throttle",)),
    "backoff": Check("tries again later and later when refused", backoff.judge, ("refuse",)),
    "herd": Check("copies do not come back at one instant", herd.judge, ("herd",)),
    "footprint": Check("does not pile up connections", footprint.judge, ("throttle", "refuse", "kill")),
    "groups": Check("stays in its group while throttled", groups.judge, ("throttle",)),
    "kip599": Check("waits before a refused mutation is tried again", kip599.judge, ("mutation",)),
    "kip714": Check("pushes telemetry as often as told", kip714.judge, ("telemetry",)),
    "delivery": Check("loses and doubles nothing", delivery.judge, ("throttle",)),
    "recovery": Check("works again once limits are lifted", recovery.judge, ("refuse", "rate", "kill")),
    "shutdown": Check("ends while it is refused", shutdown.judge, ("shutdown",)),
}


def steps_of(checks: Iterable[str]) -> set[str]:
    """The kinds of step that these checks need."""
    return {step for check in checks for step in CHECKS[check].steps}


def judge(timeline: Timeline, checks: Iterable[str]) -> dict[str, Finding]:
    """A finding for each check, in the order of the report. Where the cluster itself has faltered, no client is blamed."""
    wanted = set(checks)
    found = {name: check.judge(timeline) for name, check in CHECKS.items() if name in wanted}
    if not timeline.has_faltered:
        return found
    why = "a shard of the cluster ended by itself meanwhile"
    return {
        name: each._replace(verdict=UNJUDGED, evidence=f"{why}: {each.evidence}")
        if each.verdict in (WARN, FAIL)
        else each
        for name, each in found.items()
    }


def exit_code(findings: Mapping[str, Finding]) -> int:
    """1: a check failed; 2: none could be judged; else 0."""
    verdicts = {finding.verdict for finding in findings.values()}
    return 1 if FAIL in verdicts else 0 if verdicts & {PASS, WARN} else 2
