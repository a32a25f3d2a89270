"""Things come due in their order, once, and not at all when cancelled."""

import pytest
import trio

from shards.loop.time_slice import TimeSlice
from shards.loop.timers import Timers


class Clock:
    """Of a poller, in nanoseconds of trio's time."""

    def __init__(self):
        self.now_ns = self.clock_ns()
        self.time_slice = TimeSlice(self.clock_ns)

    def clock_ns(self):
        return int(trio.current_time() * 1e9)

    def touch(self):
        self.now_ns = self.clock_ns()
        self.time_slice.begin(self.now_ns)


@pytest.fixture
async def timers(autojump_clock, nursery):
    timers = Timers(Clock())
    nursery.start_soon(timers.run)
    return timers


async def test_in_order_of_their_time(timers):
    called = []
    for name, delay_ms in (("late", 300), ("soon", 100), ("between", 200)):
        timers.after(delay_ms, lambda name=name: called.append(name))
    await trio.sleep(0.25)
    assert called == ["soon", "between"]
    await trio.sleep(1)
    assert called == ["soon", "between", "late"]
    assert len(timers) == 0


async def test_a_sooner_one_is_not_late(timers):
    called = []
    timers.after(60_000, lambda: called.append("late"))
    await trio.sleep(1)
    timers.after(59_500, lambda: called.append("after"))
    timers.after(100, lambda: called.append("soon"))
    await trio.sleep(1)
    assert called == ["soon"]


async def test_cancelled_is_never_called_and_takes_no_room(timers):
    called = []
    stay = timers.after(500, lambda: called.append("stays"))
    for _ in range(10_000):
        gone = timers.after(400, lambda: called.append("gone"))
        timers.cancel(gone)
        timers.cancel(gone)
    assert len(timers) == 1
    timers.check()
    await trio.sleep(1)
    assert called == ["stays"]
    timers.cancel(stay)
    assert len(timers) == 0
