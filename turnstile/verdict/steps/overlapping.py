"""A long throttle time and then a short one, told to one connection that has several requests on the way."""

from __future__ import annotations

import time
from contextlib import ExitStack

from turnstile.verdict.checks import deadline, kip219
from turnstile.verdict.finding import FAIL
from turnstile.verdict.stage import Stage
from turnstile.verdict.steps.throttling import DATA
from turnstile.verdict.timeline import SECOND, Event

_TRIES, _PAIRS = 8, 2
"""Tries, and pairs that are wanted: it is chance whether two requests are on the way when the throttle times are told."""
_ALONE = 3
"""Tries after which a client that never had a request waiting behind another one is taken to send one at a time."""
_NEXT_S = 2.0
_LONG_MS, _SHORT_MS, _DELAY_MS = 1000, 100, 150


def overlapping(stage: Stage) -> None:
    if not {event.api for event in stage.baseline.within(stage.baseline.baseline, "request")} & set(DATA):
        stage.skipped["overlap"] = "the client neither produced nor fetched"
        return
    if kip219.judge(stage.so_far()).verdict == FAIL:
        stage.skipped["overlap"] = deadline.NEITHER
        return
    began_ns = time.monotonic_ns()
    for number in range(_TRIES):
        if len(deadline.pairs(stage.so_far())) >= _PAIRS:
            return
        if number == _ALONE and not any(each.value for each in stage.requests_since(began_ns) if each.api in DATA):
            return
        if stage.wait_for(lambda: bool(_latest(stage)), _NEXT_S):
            _overlap(stage, max(_latest(stage), key=lambda event: event.value), number + 1)


def _latest(stage: Stage) -> list[Event]:
    return [each for each in stage.requests_since(time.monotonic_ns() - SECOND) if each.api in DATA]


def _overlap(stage: Stage, chosen: Event, number: int) -> None:
    """The first request of a connection is told both throttle times, so the longer one; the next is told the shorter."""
    where = f"[{chosen.ip}]:{chosen.port}" if ":" in chosen.ip else f"{chosen.ip}:{chosen.port}"
    with stage.step("overlap", f"{_LONG_MS} ms, then {_SHORT_MS} ms ({number})") as detail, ExitStack() as set_:
        set_.enter_context(stage.fault("delay", delay_ms=_DELAY_MS, api=DATA, connection=where))
        for throttle_ms, once in ((_SHORT_MS, False), (_LONG_MS, True)):
            throttling = stage.fault(
                "throttle", throttle_ms=throttle_ms, mute=False, once=once, api=DATA, connection=where
            )
            set_.enter_context(throttling)
        time.sleep((_LONG_MS + 3 * _DELAY_MS) / 1000)
        detail["exit_code"] = stage.exit_code()
