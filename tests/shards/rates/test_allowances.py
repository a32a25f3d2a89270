"""A holder's side of a rate: who waits, and spare units."""

from shards.rates.allowances import DEADLINE_MS, GRANT_MS, UNAVAILABLE, Allowances

KEY = "ip:10.0.0.1"


class RecordingRateWaiter:
    def __init__(self):
        self.told = []

    def recorded(self, key, wait_ms):
        self.told.append(wait_ms)


class Desk:
    def __init__(self):
        self.posted = []
        self.allowances = Allowances(lambda home, item: self.posted.append(item))

    def ask(self, count=1, now_ms=1000):
        waiters = [RecordingRateWaiter() for _ in range(count)]
        for waiter in waiters:
            self.allowances.wait(KEY, 1, waiter, now_ms)
            self.allowances.ask(KEY)
        self.allowances.flush()
        return waiters

    def answer(self, count, now_ms=1000):
        allowance = self.allowances.answered(KEY, now_ms)
        waiters = [allowance.next() for _ in range(count)]
        allowance.used += count
        return waiters


def test_asks_of_one_pass_are_one_and_only_a_user_asks_for_spare_units():
    desk = Desk()
    desk.ask(5)
    assert desk.posted == [("ask", KEY, 5, 0)]
    desk.answer(5)
    desk.ask()
    assert desk.posted[1] == ("ask", KEY, 1, 10)


def test_spare_units_are_used_until_they_expire_and_the_rest_goes_back():
    desk = Desk()
    desk.ask()
    desk.answer(1)
    desk.allowances.grant(KEY, 3, 1000, current=True)
    allowance = desk.allowances.get(KEY)
    assert allowance.use(1000 + GRANT_MS - 1)
    assert not allowance.use(1000 + GRANT_MS)
    desk.allowances.expire(1000 + GRANT_MS)
    assert desk.posted[-1] == ("unused", KEY, 2, 1000)
    for later in range(2, 6):
        desk.allowances.expire(1000 + later * GRANT_MS)
    assert desk.allowances.get(KEY) is None
    assert desk.allowances.next_ms() is None


def test_another_version_voids_what_there_is_and_what_comes_late():
    desk = Desk()
    desk.ask()
    desk.answer(1)
    desk.allowances.grant(KEY, 3, 1000, current=True)
    desk.allowances.void()
    desk.allowances.grant(KEY, 4, 1001, current=False)
    assert desk.posted[1:] == [("unused", KEY, 3, 1000), ("unused", KEY, 4, 1001)]
    assert not desk.allowances.get(KEY).use(1002)


def test_who_waits_too_long_is_told_and_its_answer_is_nobodys():
    desk = Desk()
    waiters = desk.ask(2)
    desk.allowances.give_up(1000 + DEADLINE_MS - 1, lambda home: True)
    assert waiters[0].told == []
    desk.allowances.give_up(1000 + DEADLINE_MS, lambda home: True)
    assert [waiter.told for waiter in waiters] == [[UNAVAILABLE]] * 2
    (late,) = desk.ask(now_ms=2500)
    assert desk.answer(3, now_ms=2600) == [None, None, late]


def test_a_connection_that_waits_for_a_listener_waits_as_long_as_its_home_lives():
    allowances = Allowances(lambda home, item: None)
    waiter = RecordingRateWaiter()
    allowances.wait("listener:A", 1, waiter, 1000)
    allowances.give_up(100_000, lambda home: True)
    assert waiter.told == []
    allowances.give_up(100_000, lambda home: False)
    assert waiter.told == [UNAVAILABLE]


def test_a_new_home_is_asked_for_all_that_wait_and_nothing_old_counts():
    desk = Desk()
    desk.ask()
    desk.answer(1)
    desk.allowances.grant(KEY, 3, 1000, current=True)
    desk.ask(2)
    desk.allowances.home_lost(1, 1050)
    assert not desk.allowances.get(KEY).use(1060)
    desk.allowances.home_up(1)
    desk.allowances.flush()
    assert desk.posted[-1][:3] == ("ask", KEY, 2)
    assert not any(item[0] == "unused" for item in desk.posted)
