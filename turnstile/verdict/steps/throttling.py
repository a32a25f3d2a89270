"""Throttle times of several lengths, for Produce, for Fetch and for every request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from turnstile.verdict.checks.kip219 import LEAST
from turnstile.verdict.stage import Stage

DATA = ("Produce", "Fetch")


def throttling(stage: Stage) -> None:
    times = stage.times
    seen = {event.api for event in stage.watch.since(stage.baseline.baseline.began_ns)}
    used = [api for api in DATA if api in seen]
    if used:
        _throttle(stage, "throttled by 250 ms", 250, times.short_s, used)
    _throttle(stage, f"throttled by {times.long_ms} ms", times.long_ms, times.long_s, used)
    _throttle(stage, "every request throttled", 400, times.short_s)
    if times.request_timeout_s is None:
        stage.skipped["timeout"] = "none was longer than its request timeout, which --request-timeout tells"
    else:
        longer_s = times.request_timeout_s + 1
        _throttle(stage, "throttled for longer than the request timeout", int(longer_s * 1000), longer_s + 2)
    stage.settle("not throttled any more")


def _throttle(stage: Stage, name: str, throttle_ms: int, seconds: float, apis: Sequence[str] = ()) -> None:
    """For so long, and up to twice, until of each of these APIs enough was throttled."""
    began_ns = time.monotonic_ns()

    def is_enough() -> bool:
        told = Counter(event.api for event in stage.requests_since(began_ns) if event.throttle_ms)
        return all(told[api] >= LEAST for api in apis)

    with stage.step("throttle", name) as detail:
        with stage.fault("throttle", throttle_ms=throttle_ms, api=apis):
            stage.pause(seconds, is_enough, 2 * seconds)
        time.sleep(throttle_ms / 1000)  # until the last connection is not muted any more
        detail["exit_code"] = stage.exit_code()
