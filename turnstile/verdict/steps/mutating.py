"""A quota of mutations that a client which changes topics is over: KIP-599."""

from __future__ import annotations

import time
from contextlib import ExitStack

from turnstile.entities import DEFAULT
from turnstile.verdict.checks.kip599 import LEAST_MS, MUTATIONS
from turnstile.verdict.stage import Stage
from turnstile.verdict.timeline import MS

_RATE = 0.3
"""Mutations a second: fewer than any client makes that is to be judged by it."""
_AFTER_MS = 200


def mutating(stage: Stage) -> None:
    changed = [event for event in stage.watch.all() if event.api in MUTATIONS]
    if not changed:
        stage.skipped["mutation"] = "the client changed no topics"
        return
    began_ns = time.monotonic_ns()
    names = {event.client_id for event in changed} if stage.target else {DEFAULT}
    with stage.step("mutation", "mutation quota"), ExitStack() as set_:
        for name in sorted(names):
            set_.enter_context(stage.quota(f"client-id={name}", controller_mutation_rate=_RATE))
        stage.pause(0.0, lambda: _is_over(stage, began_ns), 2 * stage.times.mutation_s)
    stage.settle("mutation quota lifted")


def _is_over(stage: Stage, began_ns: int) -> bool:
    """True if a mutation was over the quota, and its throttle time is over."""
    throttled = [
        event for event in stage.requests_since(began_ns) if event.api in MUTATIONS and event.throttle_ms >= LEAST_MS
    ]
    return any(
        event.at_ns + (event.took_ms + event.throttle_ms + _AFTER_MS) * MS < time.monotonic_ns() for event in throttled
    )
