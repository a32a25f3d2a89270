"""Held connections: each is let go once, in time or early."""

from broker.accept.held_connections import HeldConnections


class Timers:
    def __init__(self):
        self.due = []

    def after(self, delay_ms, function):
        self.due.append((delay_ms, function))

    def run(self):
        due, self.due = sorted(self.due, key=lambda each: each[0]), []
        for _, function in due:
            function()


class Connection:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def let_go(self, *, early):
        self.log.append((self.name, early))


def hold(most, *delays_ms):
    timers, log = Timers(), []
    held = HeldConnections(timers, most)
    for number, delay_ms in enumerate(delays_ms):
        held.hold(Connection(log, number), delay_ms)
    return timers, held, log


def test_each_is_let_go_when_its_own_time_has_come():
    timers, held, log = hold(10, 300, 100, 200)
    assert len(held) == 3
    timers.run()
    assert log == [(1, False), (2, False), (0, False)]
    assert len(held) == 0


def test_beyond_the_bound_the_one_held_longest_goes_early_and_only_once():
    timers, _, log = hold(2, 300, 100, 200)
    assert log == [(0, True)]
    timers.run()
    assert log == [(0, True), (1, False), (2, False)]


def test_room_is_made_while_there_is_somebody_to_let_go():
    _, held, log = hold(10, 300, 100)
    assert held.make_room()
    held.let_go_all()
    assert log == [(0, True), (1, True)]
    assert not held.make_room()
