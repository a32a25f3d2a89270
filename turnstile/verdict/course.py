"""The course: what the cluster does to the client, step by step, and what it saw meanwhile.

unseen_steps_are_left_out  A step of which the client would see nothing is left out, and the timeline says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from turnstile.verdict.judged import Client, Judged
from turnstile.verdict.machine import watched
from turnstile.verdict.stage import Stage
from turnstile.verdict.steps.baseline import baseline
from turnstile.verdict.steps.herding import herding
from turnstile.verdict.steps.mutating import mutating
from turnstile.verdict.steps.overlapping import overlapping
from turnstile.verdict.steps.refusing import erring, failing_login, killing, rating, refusing
from turnstile.verdict.steps.shutting_down import shutting_down
from turnstile.verdict.steps.telemetering import subscribed, telemetering
from turnstile.verdict.steps.throttling import throttling
from turnstile.verdict.tail import Tail
from turnstile.verdict.timeline import Timeline
from turnstile.verdict.times import Times
from turnstile.verdict.watch import Watch

_STEPS: tuple[tuple[str, Callable[[Stage], None]], ...] = (
    ("telemetry", telemetering),
    ("throttle", throttling),
    ("overlap", overlapping),
    ("mutation", mutating),
    ("refuse", refusing),
    ("rate", rating),
    ("kill", killing),
    ("herd", herding),
    ("refuse", erring),
    ("refuse", failing_login),
    ("shutdown", shutting_down),
)
"""The kind of each step, by which checks ask for it (judge.py), and what runs it; in this order."""


def run_course(
    cluster: Judged,
    tail: Tail,
    start_client: Callable[[], Client] | None,
    *,
    times: Times,
    steps: set[str],
    seed: int = 0,
    target: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Timeline:
    """Runs the kinds of step that are wanted, after the baseline. Raises CannotJudge.

    `start_client()` starts the program or a copy of it; None: it runs already. `target`: the client among others, as a fault
    names it: {"client_id": ...} or {"ip": ...}; None: all there is.
    """
    watch = Watch(tail, target or {})
    wall_offset_ns = time.time_ns() - time.monotonic_ns()
    with watched() as machine, ExitStack() as set_:
        stage = Stage(cluster, watch, machine, start_client, times=times, seed=seed, target=target or {}, say=say)
        if "telemetry" in steps:
            set_.enter_context(subscribed(stage))
        set_.callback(stage.kill_client)
        if start_client is not None:
            stage.client = start_client()
        say("waiting for the client")
        baseline(stage)
        for kind, step in _STEPS:
            if kind in steps and (why := stage.gone()):
                stage.skipped[kind] = why
            elif kind in steps:
                step(stage)
    return Timeline(
        stage.steps, watch.all(), stage.busy, wall_offset_ns=wall_offset_ns, skipped=stage.skipped,
        is_attached=start_client is None, machine=machine,
    )  # fmt: skip
