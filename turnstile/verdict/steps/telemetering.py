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
    """Every metric is asked for inside the block. A client that asked for its subscription before learns of it minutes later."""
    try:
        _subscribe(stage, stage.times.telemetry_ms)
        stage.is_subscribed = True
        yield
    finally:
        surely(lambda: _subscribe(stage, None))


def _subscribe(stage: Stage, interval_ms: int | None) -> None:
    """Subscribes to every metric, pushed every `interval_ms`; None ends the subscription."""
    client_id, ip = stage.target.get("client_id"), stage.target.get("ip")
    match = f"client_id={re.escape(client_id)}" if client_id else f"client_source_address={ip}" if ip else None
    wanted = {"metrics": "*", "interval_ms": interval_ms, "match": match}
    stage.cluster.telemetry(_NAME, **(wanted if interval_ms else dict.fromkeys(wanted)))


def telemetering(stage: Stage) -> None:
    """After the baseline: the interval is doubled; then one push is answered that it came too early; then the subscription ends."""
    first_ms, seen = stage.times.telemetry_ms, {event.api for event in stage.watch.all()}
    if ASKED not in seen:
        stage.skipped["telemetry"] = (
            "it did not ask for telemetry subscriptions"
            if stage.start_client is not None
            else "it did not ask for telemetry subscriptions: it connected while there was none, when brokers offer no telemetry"
        )
        return
    if PUSHED not in seen and stage.start_client is None:
        stage.skipped["telemetry"] = "it asked for telemetry subscriptions before there was one, and pushes nothing yet"
        return
    _subscribe(stage, 2 * first_ms)
    _push(stage, _PUSHES, "telemetry, half as often")
    too_early = partial(stage.fault, "error", api=PUSHED, error=EARLY, once=True)
    _push(stage, _PUSHES - 1, "telemetry, a push answered as too early", too_early)
    _subscribe(stage, None)


def _push(
    stage: Stage, pushes: int, name: str, fault: Callable[[], AbstractContextManager[None]] = nullcontext
) -> None:
    """Waits until the client has pushed `pushes` times, or for the time of twice as many. `fault` is entered within the step, so
    that what the client does at once is part of it."""
    interval_ms = 2 * stage.times.telemetry_ms
    with stage.step("telemetry", name) as detail, fault():
        detail["interval_ms"] = interval_ms
        began_ns = time.monotonic_ns()
        stage.pause(
            interval_ms / 1000,
            lambda: sum(event.api == PUSHED for event in stage.requests_since(began_ns)) >= pushes,
            2 * pushes * interval_ms / 1000,
        )
