"""What the client asks seldom is throttled for longer than it pauses; what it asks all the time is not."""

import time
from dataclasses import replace
from typing import Any

from courses import Seen

from turnstile.verdict.machine import Machine
from turnstile.verdict.stage import Stage
from turnstile.verdict.steps.throttling import throttling
from turnstile.verdict.timeline import Timeline
from turnstile.verdict.times import Times


class Member:
    """Cluster and watch: a client that produces all the time, and heartbeats each half second; all that is asked is throttled."""

    def __init__(self) -> None:
        self.faults: list[tuple[int, tuple[str, ...]]] = []

    def all(self) -> list[Any]:
        seen = Seen()
        for number in range(4):
            seen.request(number / 2, 2, api="Heartbeat", took_ms=10)
        return seen.timeline().events

    def since(self, at_ns: int) -> list[Any]:
        seen = Seen()
        for number in range(4):
            for api in ("Produce", "Heartbeat"):
                seen.request(number, api=api, throttle_ms=9)
        return seen.events

    def fault(self, kind: str, /, **what: Any) -> str:
        self.faults.append((what["throttle_ms"], tuple(what["api"])))
        return "throttle"

    def remove_fault(self, *names: str) -> None:
        assert names == ("throttle",)


def test_a_heartbeat_is_throttled_for_longer_than_the_pause_after_it():
    member: Any = Member()
    times = replace(Times(), short_s=0.0, long_s=0.0, long_ms=1, settle_s=0.0)
    stage = Stage(member, member, Machine(), None, times=times, seed=0, target={}, say=lambda sentence: None)
    began_ns = time.monotonic_ns()
    stage.baseline = Timeline(Seen().steps, member.all())
    throttling(stage)
    assert member.faults == [(250, ("Produce",)), (1, ("Produce",)), (400, ()), (637, ("Heartbeat",))]
    assert stage.steps[-2].name == "Heartbeat throttled by 637 ms, longer than the pauses between them"
    assert all(began_ns <= step.began_ns <= step.ended_ns for step in stage.steps)
