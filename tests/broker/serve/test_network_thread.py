"""The turns of a thread that blocks: answers, what waits for memory, what is muted, and only then the next block."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.serve.network_thread import NetworkThread
from shards.loop.deferred import Deferred


class Shard:
    """`told`: what the thread has the parts of a shard do; `full`: whether a request waits for room; `when`: called with each."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.full = True
        self.when: Any = lambda told: None
        self.now_ns = 0
        self.later: list[Any] = []
        poller: Any = SimpleNamespace(
            hold=lambda kind: self.tell("hold"),
            release=lambda: self.tell("release"),
            now_ns=0,
            time_slice=SimpleNamespace(spend=lambda size: True),
        )
        timers: Any = SimpleNamespace(after=lambda delay_ms, function: self.later.append(function))
        muted: Any = SimpleNamespace(pause=lambda: self.tell("mute"), resume=lambda: self.tell("unmute"))
        memory: Any = SimpleNamespace(pause=lambda: self.tell("no memory"), resume=lambda: self.tell("memory"))
        self.thread = NetworkThread(poller, timers, muted, memory, lambda: self.full)

    def tell(self, what: str) -> None:
        self.told.append(what)
        self.when(what)

    def answer(self, name: str) -> Deferred[Any]:
        """One that is there; its connection is told when it leaves."""
        answer: Deferred[Any] = Deferred()
        answer.add_callback(lambda _: self.tell(name))
        made: Deferred[Any] = Deferred()
        made.resolve(b"")
        self.thread.send(answer, made)
        return answer


@pytest.fixture
def shard():
    made = Shard()
    made.thread.update_blocked()
    assert made.told == ["hold", "mute", "no memory"]
    made.told.clear()
    return made


def test_answers_leave_in_their_order_a_slice_at_a_time_and_then_everything_is_read(shard):
    shard.answer("a")
    shard.answer("b")
    shard.thread.update_blocked()
    assert shard.told == []
    shard.full = False
    shard.thread.update_blocked()
    shard.thread.update_blocked()
    assert shard.told == ["a"] and len(shard.later) == 1
    shard.answer("c")
    shard.later.pop()()
    shard.later.pop()()
    assert shard.told == ["a", "b", "c", "release", "memory", "unmute"]
    shard.answer("d")
    assert shard.told[-1] == "d", "at once"


@pytest.mark.parametrize("when", ["a", "memory", "unmute"])
def test_a_request_that_does_not_fit_blocks_when_all_have_had_their_turn(shard, when):
    def read(told):
        shard.full = shard.full or told == when
        shard.thread.update_blocked()

    shard.answer("a")
    shard.full, shard.when = False, read
    shard.thread.update_blocked()
    assert shard.told == ["a", "release", "memory", "unmute", "hold", "mute", "no memory"]


def test_an_answer_that_comes_while_the_others_have_their_turn_leaves_at_once(shard):
    shard.when = lambda told: shard.answer("late") if told == "memory" else None
    shard.full = False
    shard.thread.update_blocked()
    assert shard.told == ["release", "memory", "late", "unmute"]


def test_answers_of_closed_connections_are_forgotten(shard):
    shard.answer("a")
    shard.thread.forget()
    shard.full = False
    shard.thread.update_blocked()
    assert "a" not in shard.told
