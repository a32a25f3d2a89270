"""Large requests one piece at a time, with time for everything else between two pieces."""

import itertools
import time

import pytest
import trio
import trio.testing

from shards.loop import turns as turns_module
from shards.loop.deferred import Deferred, Spawn
from shards.loop.turns import AT_ONCE_S, Turns


@pytest.fixture
def turns(nursery):
    return Turns(Spawn(nursery.start_soon))


async def test_what_is_short_is_there_at_once(turns):
    assert turns.collect(iter(range(5))) == list(range(5))


async def test_the_rest_of_what_takes_long_is_made_in_pieces(turns, autojump_clock, monkeypatch):
    clock = iter(range(10**9))  # every look at the clock is a second later, so every item takes too long
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: next(clock))
    rounds = []

    async def elsewhere():
        while len(rounds) < 5:
            rounds.append(len(made))
            await trio.sleep(2)

    made = []
    collected = turns.collect(made.append(n) or n for n in range(10))
    assert isinstance(collected, Deferred) and len(made) == 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(elsewhere)
        assert await collected == list(range(10))
    assert rounds == sorted(rounds) and len(set(rounds)) > 1, "others ran between the pieces"


async def test_two_large_requests_never_work_in_one_round(turns, autojump_clock):
    working, ended = [], []

    async def work(name):
        for _ in range(3):
            async with turns.turn():
                working.append(name)
            ended.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "a")
        nursery.start_soon(work, "b")
    assert working == ["a", "b"] * 3 or working == ["b", "a"] * 3, "in turns"


async def test_after_a_piece_the_loop_has_as_long_for_everything_else(turns, autojump_clock, monkeypatch):
    took_s = iter((100.0, 107.0))
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: next(took_s))
    began_s = trio.current_time()
    async with turns.turn():
        pass
    assert trio.current_time() - began_s == pytest.approx(7)


async def test_what_cannot_be_cut_is_done_beside_the_loop(turns):
    assert await turns.aside(lambda a, b: a + b, 1, 2) == 3


async def test_nothing_more_is_made_for_a_client_that_is_gone(turns, autojump_clock):
    made = []

    def items():
        for n in range(1000):
            made.append(n)
            until = time.perf_counter() + 0.003
            while time.perf_counter() < until:
                pass
            yield n

    collected = turns.collect(items())
    collected.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert len(made) < 10


async def test_items_are_made_of_one_large_answer_at_a_time(turns, autojump_clock, monkeypatch):
    clock = iter(range(10**9))
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: next(clock))
    made = []

    def items(name):
        for n in range(10):
            made.append(name)
            yield n

    first, second = turns.collect(items("a")), turns.collect(items("b"))
    assert await second == await first == list(range(10))
    assert made[:2] == ["a", "b"], "the first item of each is made at once"
    assert made[2:] in (["a"] * 9 + ["b"] * 9, ["b"] * 9 + ["a"] * 9)


async def test_of_tasks_that_are_woken_together_a_few_go_on_between_two_rounds(turns, monkeypatch):
    """Those that fit go on at once, the others in their order, and none is left out when one of them is cancelled."""
    now_s = 100.0
    monkeypatch.setattr(turns_module.time, "perf_counter", lambda: now_s)
    event, went_on, rounds = trio.Event(), [], []

    async def waits(number, scope):
        nonlocal now_s
        with scope:
            await event.wait()
            await turns.woken()
            went_on.append(number)
            now_s += AT_ONCE_S / 4

    async def elsewhere():
        while len(went_on) < 99:
            rounds.append(len(went_on))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in range(100)]
        for number, scope in enumerate(scopes):
            nursery.start_soon(waits, number, scope)
        await trio.testing.wait_all_tasks_blocked()
        event.set()
        nursery.start_soon(elsewhere)
        await trio.lowlevel.checkpoint()
        scopes[next(number for number in range(100) if number not in went_on)].cancel()
    steps = [after - before for before, after in itertools.pairwise(rounds)]
    assert len(set(went_on)) == 99 and max(steps) <= 5 + 2 * 8, "the order of the tasks of a round is random"


async def test_a_task_that_is_woken_alone_goes_on_at_once(turns):
    for _ in range(3):
        with trio.testing.assert_no_checkpoints():
            await turns.woken()
