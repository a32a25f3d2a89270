"""A quota of mutations that a client which changes topics is over: KIP-599."""

from __future__ import annotations

from contextlib import ExitStack

from turnstile.verdict.checks.kip599 import MUTATIONS
from turnstile.verdict.stage import Stage

_RATE = 0.3
"""Mutations a second: fewer than any client makes that is to be judged by it."""


def mutating(stage: Stage) -> None:
    changed = [event for event in stage.watch.all() if event.api in MUTATIONS]
    if not changed:
        stage.skipped["mutation"] = "the client changed no topics"
        return
    names = {event.client_id for event in changed} if stage.target else {"<default>"}
    with stage.step("mutation", "mutation quota"), ExitStack() as set_:
        for name in sorted(names):
            set_.enter_context(stage.quota(f"client-id={name}", controller_mutation_rate=_RATE))
        stage.pause(stage.times.mutation_s)
    stage.settle("mutation quota lifted")
