"""A listener is paused exactly while something holds it."""

import pytest

from broker.accept.pacing import Pacing


class Clock:
    now_ns = 1_000_000_000


class Timers:
    """Delays that fire when the clock is moved."""

    def __init__(self, clock):
        self.clock, self.due = clock, []

    def after(self, delay_ms, function):
        self.due.append((self.clock.now_ns + int(delay_ms * 1e6), function))

    def move(self, ms):
        self.clock.now_ns += int(ms * 1e6)
        due, self.due = (
            [each for each in self.due if each[0] <= self.clock.now_ns],
            [each for each in self.due if each[0] > self.clock.now_ns],
        )
        for _, function in due:
            function()


class Listener:
    accepting = False

    def start(self):
        self.accepting = True

    def pause(self):
        self.accepting = False

    close = pause


class Counters:
    blocked_ns = 0

    def add(self, name, amount, listener):
        assert (name, listener) == ("blocked_ns", "EXTERNAL")
        self.blocked_ns += amount


class Desk:
    def __init__(self):
        self.clock = Clock()
        self.timers, self.listener, self.counters = Timers(self.clock), Listener(), Counters()
        self.pacing = Pacing("EXTERNAL", self.clock, self.timers, self.counters, lambda: 3)
        self.pacing.start(self.listener)


@pytest.fixture
def desk():
    return Desk()


def test_it_accepts_until_as_many_wait_as_may(desk):
    places = []
    for accepting in (True, True, False, False):
        places.append(desk.pacing.join())
        assert desk.listener.accepting is accepting
    for accepting in (False, True, True, True):
        places.pop().give_back()
        assert desk.listener.accepting is accepting


def test_it_stops_until_the_last_permit_is_given_back(desk):
    one, other = desk.pacing.stop(), desk.pacing.stop()
    assert not desk.listener.accepting
    one.give_back()
    one.give_back()
    assert not desk.listener.accepting
    other.give_back()
    assert desk.listener.accepting


def test_it_is_blocked_until_the_latest_time_it_was_told(desk):
    desk.pacing.block(1500)
    desk.pacing.block(2000)
    desk.pacing.block(1200)
    desk.timers.move(501)
    assert not desk.listener.accepting
    desk.timers.move(501)
    assert desk.listener.accepting


def test_the_time_it_was_paused_is_counted_also_while_it_lasts(desk):
    desk.pacing.block(2000)
    desk.timers.move(400)
    desk.pacing.tick()
    assert desk.counters.blocked_ns == 400_000_000
    desk.timers.move(600.1)
    assert desk.counters.blocked_ns == 1_000_100_000
    desk.timers.move(5000)
    desk.pacing.tick()
    assert desk.counters.blocked_ns == 1_000_100_000


def test_closed_it_never_accepts_again(desk):
    desk.pacing.block(2000)
    desk.pacing.close()
    desk.timers.move(5000)
    assert not desk.listener.accepting


def test_blocked_before_it_starts_it_waits():
    desk = Desk()
    pacing = Pacing("EXTERNAL", desk.clock, desk.timers, desk.counters, lambda: 3)
    pacing.block(1500)
    pacing.start(desk.listener)
    assert not desk.listener.accepting
    desk.timers.move(501)
    assert desk.listener.accepting
