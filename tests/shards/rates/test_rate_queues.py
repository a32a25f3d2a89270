"""The connections of one shard that wait for units of a rate."""

from shards.rates.rate_queues import DEADLINE_MS, UNAVAILABLE, RateQueues

KEY = "ip:10.0.0.1"
HOME = 1


class RecordingRateWaiter:
    def __init__(self):
        self.told = []

    def recorded(self, key, wait_ms):
        self.told.append(wait_ms)


class Desk:
    def __init__(self):
        self.posted = []
        self.queues = RateQueues(lambda home, item: self.posted.append(item))

    def ask(self, count=1, now_ms=1000, key=KEY):
        waiters = [RecordingRateWaiter() for _ in range(count)]
        for waiter in waiters:
            self.queues.wait(key, HOME, waiter, now_ms)
            self.queues.ask(key)
        self.queues.flush(now_ms)
        return waiters


def test_asks_of_one_pass_are_one():
    desk = Desk()
    desk.ask(5)
    assert desk.posted == [("ask", KEY, 5, 1000)]


def test_an_answered_queue_is_forgotten():
    desk = Desk()
    waiters = desk.ask(3)
    assert desk.queues.answered(KEY, 1, 1010) == waiters[:1]
    assert desk.queues.waiting() == {KEY: 2}
    assert desk.queues.answered(KEY, 2, 1020) == waiters[1:]
    assert desk.queues.get(KEY) is None
    desk.queues.check()


def test_a_connection_that_waits_too_long_is_told_and_its_answer_is_for_no_other():
    desk = Desk()
    waiters = desk.ask(2)
    desk.queues.give_up(1000 + DEADLINE_MS - 1, lambda home: True)
    assert waiters[0].told == []
    desk.queues.give_up(1000 + DEADLINE_MS, lambda home: True)
    assert [waiter.told for waiter in waiters] == [[UNAVAILABLE]] * 2
    (late,) = desk.ask(now_ms=2500)
    assert desk.queues.answered(KEY, 3, 2600) == [late]
    assert desk.queues.get(KEY) is None


def test_a_connection_that_waits_for_a_listener_waits_as_long_as_its_home_lives():
    desk = Desk()
    (waiter,) = desk.ask(key="listener:A")
    desk.queues.give_up(100_000, lambda home: True)
    assert waiter.told == []
    desk.queues.give_up(100_000, lambda home: False)
    assert waiter.told == [UNAVAILABLE]
    assert desk.queues.get("listener:A") is None


def test_a_new_home_is_asked_for_all_that_wait_and_answers_of_the_old_one_are_not_awaited():
    desk = Desk()
    desk.ask()
    desk.queues.give_up(1000 + DEADLINE_MS, lambda home: True)
    waiters = desk.ask(2, now_ms=2100)
    desk.queues.home_lost(HOME, 2150)
    desk.queues.home_up(HOME)
    desk.queues.flush(2150)
    assert desk.posted[-1] == ("ask", KEY, 2, 2150)
    assert desk.queues.answered(KEY, 2, 2200) == waiters
