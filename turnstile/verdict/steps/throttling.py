"""Throttle times of several lengths: for Produce, for Fetch, for every request; longer ones for APIs after
which the client usually pauses.

throttled_beyond_the_pause  An API after which a client usually pauses, as after a heartbeat of its group, is throttled for longer
    than that pause: under a shorter throttle time, a client that ignores it would send nothing either, and pass.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from turnstile.verdict.checks.kip219 import LEAST
from turnstile.verdict.pauses import usual_pauses_ms
from turnstile.verdict.stage import Stage
from turnstile.verdict.timeline import SETUP

DATA = ("Produce", "Fetch")
_EVERY_MS = 400
_LONGEST_PAUSE_MS = 6000
"""APIs with longer usual pauses are left out. Heartbeats every 5 s are still tested, and the throttle time is at most _BEYOND times
this, less than usual session timeouts."""
_BEYOND = 1.3


def throttling(stage: Stage) -> None:
    times = stage.times
    seen = {event.api for event in stage.watch.since(stage.baseline.baseline.began_ns)}
    used = [api for api in DATA if api in seen]
    if used:
        _throttle(stage, "throttled by 250 ms", 250, times.short_s, used)
    _throttle(stage, f"throttled by {times.long_ms} ms", times.long_ms, times.long_s, used)
    _throttle(stage, "every request throttled", _EVERY_MS, times.short_s)
    _throttle_beyond_pauses(stage)
    if times.request_timeout_s is None:
        stage.skipped["timeout"] = "none was longer than its request timeout, which --request-timeout tells"
    else:
        longer_s = times.request_timeout_s + 1
        _throttle(stage, "throttled for longer than the request timeout", int(longer_s * 1000), longer_s + 2)
    stage.settle("not throttled any more")


def _throttle_beyond_pauses(stage: Stage) -> None:
    """APIs that the client asks again and again, but after which it pauses for longer than it has been throttled by."""
    events = stage.so_far().events
    times_asked = Counter(event.api for event in events if event.kind == "request" and event.api not in SETUP)
    pauses_ms = {
        api: pause_ms
        for api, pause_ms in usual_pauses_ms(events).items()
        if _EVERY_MS <= pause_ms <= _LONGEST_PAUSE_MS and times_asked[api] >= LEAST
    }
    if pauses_ms:
        throttle_ms = int(_BEYOND * max(pauses_ms.values()))
        name = f"{', '.join(sorted(pauses_ms))} throttled by {throttle_ms} ms, longer than the pauses between them"
        _throttle(stage, name, throttle_ms, LEAST * throttle_ms / 1000, sorted(pauses_ms))


def _throttle(stage: Stage, name: str, throttle_ms: int, seconds: float, apis: Sequence[str] = ()) -> None:
    """Throttles for `seconds`, or up to twice that until LEAST requests of each of `apis` were throttled."""
    began_ns = time.monotonic_ns()

    def is_enough() -> bool:
        counts = Counter(event.api for event in stage.requests_since(began_ns) if event.throttle_ms)
        return all(counts[api] >= LEAST for api in apis)

    with stage.step("throttle", name) as detail:
        with stage.fault("throttle", throttle_ms=throttle_ms, api=apis):
            stage.pause(seconds, is_enough, 2 * seconds)
        time.sleep(throttle_ms / 1000)  # until the last connection is not muted any more
        detail["exit_code"] = stage.exit_code()
