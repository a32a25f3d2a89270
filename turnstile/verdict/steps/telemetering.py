"""A telemetry subscription that is there before the client begins, changes, and goes: KIP-714."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from turnstile.verdict.checks.kip714 import ASKED, EARLY, PUSHED
from turnstile.verdict.stage import Stage, surely

_NAME = "turnstile-verdict"


@contextmanager
def subscribed(stage: Stage) -> Iterator[None]:
    """While every metric is asked for. A client that had asked before it was so learns it minutes later."""
    try:
        _subscribe(stage, stage.times.telemetry_ms)
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
    """Pushes as told; then half as often; then one is told that it came too early; then none is asked for."""
    first_ms, seen = stage.times.telemetry_ms, {event.api for event in stage.watch.all()}
    if ASKED not in seen:
        stage.skipped["telemetry"] = "it did not ask for telemetry subscriptions"
        return
    if PUSHED not in seen and stage.start_client is None:
        stage.skipped["telemetry"] = "it asked for telemetry subscriptions before there was one, and pushes nothing yet"
        return
    _push_for(stage, 6, first_ms, "telemetry")
    _subscribe(stage, 2 * first_ms)
    _push_for(stage, 5, 2 * first_ms, "telemetry, half as often")
    with stage.fault("error", api=PUSHED, error=EARLY, once=True):
        _push_for(stage, 4, 2 * first_ms, "telemetry that is told that it came too early")
    _subscribe(stage, None)
    with stage.step("settle", "no telemetry any more"):
        time.sleep(2 * first_ms / 1000)


def _push_for(stage: Stage, intervals: int, interval_ms: int, name: str) -> None:
    with stage.step("telemetry", name) as detail:
        detail["interval_ms"] = interval_ms
        stage.pause(intervals * interval_ms / 1000)
