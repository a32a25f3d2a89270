"""Values that come later: told once, in the pass in which they come, or awaited."""

import pytest
import trio
import trio.testing

from shards.errors import PeerLost
from shards.loop.deferred import Deferred, Spawn, gather, use_unawaited


def test_a_callback_is_called_at_once_when_the_value_comes_and_only_once():
    later, told = Deferred(), []
    later.add_callback(lambda each: told.append(("first", each.result())))
    later.add_callback(lambda each: told.append(("second", each.result())))
    assert told == []
    later.resolve(5)
    later.add_callback(lambda each: told.append(("late", each.result())))
    assert told == [("first", 5), ("second", 5), ("late", 5)]
    with pytest.raises(AssertionError):
        later.resolve(6)


def test_a_value_that_nothing_waits_for_is_used_and_each_error_is_told_apart():
    used, mistakes = [], []
    later, failing, unusable = Deferred(), Deferred(), Deferred()
    use_unawaited(1, used.append, mistakes.append)
    use_unawaited(later, used.append, mistakes.append)
    use_unawaited(failing, used.append, mistakes.append)
    use_unawaited(unusable, lambda value: used.append(value / 0), mistakes.append)
    use_unawaited(0, lambda value: used.append(1 / value), mistakes.append)
    later.resolve(2)
    lost = PeerLost("gone")
    failing.fail(lost)
    unusable.resolve(3)
    assert used == [1, 2]
    assert [type(each) for each in mistakes] == [ZeroDivisionError, PeerLost, ZeroDivisionError]


def test_an_error_goes_the_way_of_the_value():
    later, failing = Deferred(), Deferred()
    mapped = [
        later.then(lambda value: value + 1),
        later.then(lambda value: value / 0),
        failing.then(lambda value: value + 1),
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


def test_a_deferred_that_follows_from_one_is_followed():
    first, second, told = Deferred(), Deferred(), []
    first.then(lambda value: second.then(lambda other: value + other)).add_callback(
        lambda each: told.append(each.result())
    )
    first.resolve(1)
    assert told == []
    second.resolve(2)
    assert told == [3]


def test_errors_that_are_expected_become_a_value():
    lost, broken = Deferred(), Deferred()
    recovered = [each.recover((PeerLost,), lambda: "lost") for each in (lost, broken)]
    lost.fail(PeerLost("1 is down"))
    broken.fail(KeyError("x"))
    assert recovered[0].result() == "lost"
    with pytest.raises(KeyError):
        recovered[1].result()


def test_what_is_gathered_comes_in_its_order_when_the_last_is_there():
    assert gather([1, 2]) == [1, 2]
    later, last, told = Deferred(), Deferred(), []
    gather([later, 2, last]).add_callback(lambda each: told.append(each.result()))
    last.resolve(3)
    assert told == []
    later.resolve(1)
    assert told == [[1, 2, 3]]


def test_the_first_error_ends_what_is_gathered_and_cancels_the_rest():
    later, failing, told = Deferred(), Deferred(), []
    later.on_cancel = lambda: told.append("cancelled")
    gathered = gather([later, failing])
    failing.fail(PeerLost("1 is down"))
    with pytest.raises(PeerLost):
        gathered.result()
    later.resolve(1)
    assert told == ["cancelled"]


@pytest.mark.parametrize("derive", [lambda each: each, lambda each: each.then(str), lambda each: gather([each])])
def test_cancelling_ends_the_work_and_calls_no_callback(derive):
    later, told = Deferred(), []
    later.on_cancel = lambda: told.append("ended")
    derived = derive(later)
    derived.add_callback(lambda each: told.append(each))
    derived.cancel()
    derived.cancel()
    later.resolve(1)
    assert told == ["ended"]


async def test_a_coroutine_is_cancelled_only_where_it_is_a_wait(nursery, autojump_clock):
    done = []

    async def work(name):
        await trio.sleep(1)
        done.append(name)

    spawn = Spawn(nursery.start_soon)
    spawn(work("a wait"), cancellable=True).cancel()
    spawn(work("a change")).cancel()
    await spawn(work("wanted"))
    await trio.sleep(1)
    assert sorted(done) == ["a change", "wanted"]


async def test_an_error_of_a_coroutine_is_that_of_its_deferred(nursery):
    async def fail():
        raise PeerLost("1 is down")

    with pytest.raises(PeerLost):
        await Spawn(nursery.start_soon)(fail())
