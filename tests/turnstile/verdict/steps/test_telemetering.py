"""What a client makes of an error at once belongs to the step in which it got the error."""

import time
from dataclasses import replace
from typing import Any

from courses import Seen

from turnstile.verdict.checks.kip714 import ASKED, PUSHED
from turnstile.verdict.machine import Machine
from turnstile.verdict.stage import Stage
from turnstile.verdict.steps.telemetering import telemetering
from turnstile.verdict.times import Times


class Pushing:
    """Cluster and watch: a client that pushes whenever it is looked at."""

    told_ns = 0

    def all(self) -> list[Any]:
        return self.since(0)

    def since(self, at_ns: int) -> list[Any]:
        seen = Seen()
        for api in (ASKED, *[PUSHED] * 9):
            seen.request(0, api=api)
        return seen.events

    def telemetry(self, name: str, /, **configs: Any) -> None:
        pass

    def fault(self, kind: str, /, **what: Any) -> str:
        self.told_ns = time.monotonic_ns()
        return "early"

    def remove_fault(self, *names: str) -> None:
        assert names == ("early",)


def test_the_error_comes_within_its_step():
    pushing: Any = Pushing()
    times = replace(Times(), telemetry_ms=1)
    stage = Stage(pushing, pushing, Machine(), None, times=times, seed=0, target={}, say=lambda sentence: None)
    telemetering(stage)
    half_as_often, too_early = stage.steps
    assert half_as_often.ended_ns < too_early.began_ns < pushing.told_ns < too_early.ended_ns
