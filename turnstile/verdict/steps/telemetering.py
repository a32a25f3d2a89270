"""A telemetry subscription that is there before the client begins, changes, and goes: KIP-714."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from turnstile.verdict.checks.kip714 import ASKED, EARLY, PUSHED
from turnstile.verdict.stage import Stage, surely

_NAME = "turnstile-verdict"
_PUSHES = 3
"""The first finds that the subscription has changed, the second comes at a random time after that."""


@contextmanager
def subscribed(stage: Stage) -> Iterator[None]:
    """While every metric is asked for. A client that had asked before it was so learns it minutes later."""
    try:
        _subscribe(stage, stage.times.telemetry_ms)
        stage.is_subscribed = True
        yield
    finally:
        surely(lambda: _subscribe(stage, None))


def _subscribe(stage: Stage, interval_ms: int | None) -> None:
    """To every metric, so often; None: to none."""
    client_id, ip = stage.target.get("client_id"), stage.target.get("ip")
    match = f"client_id={re.escape(client_id)}" if client_id else f"client_source_address={ip}" if ip else None
    wanted = {"metrics": "*", "interval_ms": interval_ms, "match": match}
    stage.cluster.telemetry(_NAME, **(wanted if interval_ms else dict.fromkeys(wanted)))


def telemetering(stage: Stage) -> None:
    """In the baseline it pushes as told; then half as often; then one is told that it came too early; then none is asked for."""
    first_ms, seen = stage.times.telemetry_ms, {event.api for event in stage.watch.all()}
    if ASKED not in seen:
        stage.skipped["telemetry"] = (
            "it did not ask for telemetry subscriptions"
            if stage.start_client is not None
            else "it did not ask for telemetry subscriptions: it connected before there was one, when telemetry is not offered"
        )
        return
    if PUSHED not in seen and stage.start_client is None:
        stage.skipped["telemetry"] = "it asked for telemetry subscriptions before there was one, and pushes nothing yet"
        return
    _subscribe(stage, 2 * first_ms)
    _push(stage, _PUSHES, "telemetry, half as often")
    too_early = partial(stage.fault, "error", api=PUSHED, error=EARLY, once=True)
    _push(stage, _PUSHES - 1, "telemetry that is told that it came too early", too_early)
    _subscribe(stage, None)


def _push(stage: Stage, pushes: int, name: str, told: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Until it has pushed so often, or has had the time for twice as many. `told` takes place within the step: what a client
    makes of it at once is seen."""
    interval_ms = 2 * stage.times.telemetry_ms
    with stage.step("telemetry", name) as detail, told():
        detail["interval_ms"] = interval_ms
        began_ns = time.monotonic_ns()
        stage.pause(
            interval_ms / 1000,
            lambda: sum(event.api == PUSHED for event in stage.requests_since(began_ns)) >= pushes,
            2 * pushes * interval_ms / 1000,
        )
