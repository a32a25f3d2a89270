"""Held connections: each is let go once, in time or early."""

from broker.accept.held_connections import HeldConnections


class Timers:
    """Delays that come due together, in their order."""

    def __init__(self):
        self.due = []

    def after(self, delay_ms, function):
        self.due.append((delay_ms, function))
        return function

    def cancel(self, timer):
        self.due = [each for each in self.due if each[1] is not timer]

    def run(self):
        while self.due:
            first = min(self.due, key=lambda each: each[0])
            self.due.remove(first)
            first[1]()


class Connection:
    """Gives its permit back when it is let go, as it must."""

    def __init__(self, log, name):
        self.log, self.name = log, name

    def let_go(self, *, early=False):
        self.log.append((self.name, early))
        self.permit.give_back()


def hold(most, *delays_ms):
    timers, log, connections = Timers(), [], []
    held = HeldConnections(timers, most)
    for number, delay_ms in enumerate(delays_ms):
        connections.append(Connection(log, number))
        connections[-1].permit = held.hold(connections[-1], delay_ms)
    return timers, held, log, connections


def test_each_is_let_go_when_its_own_time_has_come():
    timers, held, log, _ = hold(10, 300, 100, 200)
    assert len(held) == 3
    timers.run()
    assert log == [(1, False), (2, False), (0, False)]
    assert len(held) == 0


def test_beyond_the_bound_the_one_held_longest_goes_early_and_only_once():
    timers, _, log, _ = hold(2, 300, 100, 200)
    assert log == [(0, True)]
    timers.run()
    assert log == [(0, True), (1, False), (2, False)]


def test_room_is_made_while_there_is_one_to_let_go():
    _, held, log, _ = hold(10, 300, 100)
    assert held.make_room()
    assert held.make_room()
    assert log == [(0, True), (1, True)]
    assert not held.make_room()


def test_a_permit_given_back_ends_the_hold():
    timers, held, log, connections = hold(10, 300, 100)
    connections[1].permit.give_back()
    timers.run()
    assert log == [(0, False)] and len(held) == 0
