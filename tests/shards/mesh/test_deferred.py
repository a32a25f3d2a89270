"""Values that come later: told once, in the pass in which they come, or awaited."""

import pytest
import trio
import trio.testing

from shards.errors import PeerLost
from shards.mesh.deferred import Deferred


def test_whoever_asked_is_told_at_once_when_it_comes_and_only_once():
    later, told = Deferred(), []
    later.add_callback(lambda each: told.append(("first", each.result())))
    later.add_callback(lambda each: told.append(("second", each.result())))
    assert told == []
    later.resolve(5)
    later.add_callback(lambda each: told.append(("late", each.result())))
    assert told == [("first", 5), ("second", 5), ("late", 5)]
    with pytest.raises(AssertionError):
        later.resolve(6)


def test_an_error_goes_the_way_of_the_value():
    later, failing = Deferred(), Deferred()
    mapped = [
        later.map(lambda value: value + 1),
        later.map(lambda value: value / 0),
        failing.map(lambda value: value + 1),
    ]
    later.resolve(1)
    failing.fail(PeerLost("1 is down"))
    assert mapped[0].result() == 2
    with pytest.raises(ZeroDivisionError):
        mapped[1].result()
    with pytest.raises(PeerLost):
        mapped[2].result()


async def test_a_task_awaits_it_before_and_after_it_came(autojump_clock):
    later, found = Deferred(), []

    async def wait():
        found.append(await later)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        later.resolve("there")
    await wait()
    assert found == ["there"] * 3


async def test_a_task_that_gives_up_does_not_spoil_it_for_others(autojump_clock):
    later, told = Deferred(), []
    later.add_callback(lambda each: told.append(each.result()))
    with trio.move_on_after(1):
        await later
    later.resolve(7)
    assert told == [7]
