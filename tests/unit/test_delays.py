"""Things come due in their order, once, and not at all when cancelled."""

import pytest
import trio

from broker.delays import Delays


class Clock:
    """Of a poller, in nanoseconds of trio's time."""

    def __init__(self):
        self.now_ns = self.clock_ns()

    def clock_ns(self):
        return int(trio.current_time() * 1e9)

    def touch(self):
        self.now_ns = self.clock_ns()


@pytest.fixture
async def delays(autojump_clock, nursery):
    delays = Delays(Clock())
    nursery.start_soon(delays.run)
    return delays


async def test_in_order_of_their_time(delays):
    called = []
    for name, delay_ms in (("late", 300), ("soon", 100), ("between", 200)):
        delays.after(delay_ms, lambda name=name: called.append(name))
    await trio.sleep(0.25)
    assert called == ["soon", "between"]
    await trio.sleep(1)
    assert called == ["soon", "between", "late"]
    assert len(delays) == 0


async def test_a_sooner_one_is_not_late(delays):
    called = []
    delays.after(60_000, lambda: called.append("late"))
    await trio.sleep(1)
    delays.after(59_500, lambda: called.append("after"))
    delays.after(100, lambda: called.append("soon"))
    await trio.sleep(1)
    assert called == ["soon"]


async def test_cancelled_is_never_called_and_takes_no_room(delays):
    called = []
    stay = delays.after(500, lambda: called.append("stays"))
    for _ in range(10_000):
        gone = delays.after(400, lambda: called.append("gone"))
        delays.cancel(gone)
        delays.cancel(gone)
    assert len(delays) == 1
    assert len(delays._heap) < 100
    await trio.sleep(1)
    assert called == ["stays"]
    delays.cancel(stay)
    assert len(delays) == 0
