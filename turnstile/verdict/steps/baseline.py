"""The client left alone: what it usually does is measured here."""

from __future__ import annotations

import time

from turnstile.verdict.judged import CannotJudge
from turnstile.verdict.stage import Stage
from turnstile.verdict.timeline import SECOND, Event

_JOINS = frozenset(("JoinGroup", "ConsumerGroupHeartbeat"))


def baseline(stage: Stage) -> None:
    """Waits until every part of the client is working, then leaves it alone for baseline_s. Raises CannotJudge."""
    began_ns = time.monotonic_ns()
    _await_work(stage, began_ns)
    _await_all_of_it(stage, began_ns)
    with stage.step("baseline", "baseline") as detail:
        if stage.is_subscribed:
            detail["interval_ms"] = stage.times.telemetry_ms
        stage.pause(stage.times.baseline_s)
    stage.end_baseline()


def _await_work(stage: Stage, began_ns: int) -> None:
    if stage.wait_for(lambda: stage.watch.first_work_after(began_ns) is not None, stage.times.connect_s):
        return
    if stage.client is not None and (code := stage.client.exit_code()) is not None:
        raise CannotJudge(f"the program ended before it had asked the cluster for anything, with exit code {code}")
    where = " at $TURNSTILE_BOOTSTRAP, which is {bootstrap} in the command,"
    for kind, name in stage.target.items():
        where = f" with {kind.replace('_', '-')}={name}"
    raise CannotJudge(f"no client{where} asked the cluster for anything within {stage.times.connect_s:g} s")


def _await_all_of_it(stage: Stage, began_ns: int) -> None:
    """Waits until the client has begun nothing new for settle_s; for half of connect_s at most, as some clients never stop."""
    settle_ns = int(stage.times.settle_s * SECOND)
    stage.wait_for(
        lambda: is_all(list(stage.watch.since(began_ns)), time.monotonic_ns() - settle_ns), stage.times.connect_s / 2
    )


def is_all(events: list[Event], before_ns: int) -> bool:
    """True if the last new connection, and the first request of each API, came before an instant. A member of a group has
    not begun before it fetches."""
    first: dict[str, int] = {}
    for event in events:
        if event.kind == "request":
            first[event.api] = min(event.at_ns, first.get(event.api, event.at_ns))
    if _JOINS & first.keys() and "Fetch" not in first:
        return False
    opened = (event.at_ns for event in events if event.kind == "admitted")
    return max((*opened, *first.values()), default=0) < before_ns
