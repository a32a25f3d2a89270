"""One shard's rates, message by message; whole brokers are in tests/simulation/test_rates.py."""

import pytest

from shards.config.image import ClusterImage
from shards.rates.rate_queues import DEADLINE_MS, UNAVAILABLE
from shards.rates.rates import NAME, Rates

LISTENERS = ("EXTERNAL", "INTERNAL")
RATE = "max.connection.creation.rate"
IP = "10.0.0.1"


class RecordingRateWaiter:
    def __init__(self):
        self.told = []

    def recorded(self, key, wait_ms):
        self.told.append((key, wait_ms))


class Pair:
    """Two shards with links that deliver when told to; `home` and `holder` are seen from the address 10.0.0.1."""

    def __init__(self, *records):
        self.now_ms, self.version = 1000, 1
        self.links = {(0, 1): [], (1, 0): []}
        self.images, self.rates, self.blocked = [], [], []
        for me in (0, 1):
            image = ClusterImage()
            image.apply(1, [("setting", "/inter.broker.listener.name", "INTERNAL"), *records], whole=True)
            self.images.append(image)
            self.rates.append(
                Rates(
                    me,
                    2,
                    LISTENERS,
                    image,
                    send=lambda peer, message, me=me: self.links[me, peer].append(message),
                    blocked=lambda listener, until_ms, me=me: self.blocked.append((me, listener, until_ms)),
                )
            )
            self.rates[me].apply(1, now_ms=self.now_ms)
        for me in (0, 1):
            self.rates[me].peer_up(1 - me)
        self.settle()
        home = self.rates[0].home(f"ip:{IP}")
        self.home, self.holder = self.rates[home], self.rates[1 - home]

    def settle(self):
        """Delivers until nothing is on its way."""
        while True:
            for rates in self.rates:
                rates.flush(now_ms=self.now_ms)
            if not any(self.links.values()):
                return
            for (sender, receiver), messages in self.links.items():
                while messages:
                    name, items = messages.pop(0)
                    assert name == NAME
                    self.rates[receiver].receive(sender, items, now_ms=self.now_ms)

    def apply(self, *records):
        self.version += 1
        for image, rates in zip(self.images, self.rates, strict=True):
            image.apply(self.version, records)
            rates.apply(self.version, now_ms=self.now_ms)
        self.settle()

    def record(self, rates, key, times=1):
        """The answers to `times` connections in one pass."""
        waiter, answers = RecordingRateWaiter(), []
        for _ in range(times):
            wait_ms = rates.record(key, waiter, now_ms=self.now_ms)
            if wait_ms is not None:
                answers.append(wait_ms)
        self.settle()
        assert all(told == key for told, _ in waiter.told)
        return answers + [wait_ms for _, wait_ms in waiter.told]


def ip_quota(rate, ip=IP):
    return ("quota", f'{{"ip":"{ip}"}}', None if rate is None else {"connection_creation_rate": rate})


def test_both_shards_draw_on_one_window():
    pair = Pair(ip_quota(2))  # 20 in ten windows
    answers = pair.record(pair.holder, f"ip:{IP}", 15) + pair.record(pair.home, f"ip:{IP}", 15)
    assert answers[:20] == [0] * 20
    assert answers[20:] == [500] * 10


def test_many_connections_of_a_pass_are_one_ask():
    pair = Pair(ip_quota(100))
    for _ in range(50):
        pair.holder.record(f"ip:{IP}", RecordingRateWaiter(), now_ms=1000)
    pair.holder.flush(now_ms=1000)
    (message,) = pair.links[pair.holder.me, pair.home.me]
    assert message == (NAME, [("ask", f"ip:{IP}", 50, 1000)])


def test_those_recorded_together_are_told_in_order_after_one_ask():
    pair = Pair(ip_quota(1))  # 10 in ten windows
    for rates in (pair.holder, pair.home):
        waiter = RecordingRateWaiter()
        rates.record_some(f"ip:{IP}", 7, waiter, now_ms=pair.now_ms)
        rates.flush(now_ms=pair.now_ms)
        asks = [message for message in pair.links[pair.holder.me, pair.home.me] if "ask" in str(message)]
        assert asks == ([(NAME, [("ask", f"ip:{IP}", 7, 1000)])] if rates is pair.holder else [])
        pair.settle()
        within = 7 if rates is pair.holder else 3
        assert waiter.told == [(f"ip:{IP}", 0)] * within + [(f"ip:{IP}", 1000)] * (7 - within)


def test_an_address_without_quota_is_not_counted_but_its_past_is_not_forgotten():
    pair = Pair(ip_quota(2))
    assert not pair.holder.has_quota("ip:10.0.0.2")
    assert pair.record(pair.holder, f"ip:{IP}", 20) == [0] * 20
    pair.apply(ip_quota(None))
    assert not pair.holder.has_quota(f"ip:{IP}")
    pair.apply(ip_quota(1))
    assert pair.record(pair.holder, f"ip:{IP}") == [1000]


@pytest.mark.parametrize("name", [RATE, f"listener.name.external.{RATE}"])
def test_a_listener_over_its_rate_blocks_every_shard_until_its_connection_goes(name):
    pair = Pair(("setting", f"/{name}", "2"))
    assert pair.rates[0].limits_listeners and pair.rates[1].limits_listeners
    answers = pair.record(pair.rates[0], "listener:EXTERNAL", 12) + pair.record(pair.rates[1], "listener:EXTERNAL", 9)
    assert answers == [0] * 20 + [500]
    assert sorted(pair.blocked) == [(0, "EXTERNAL", 1500), (1, "EXTERNAL", 1500)]
    assert pair.record(pair.rates[0], "listener:EXTERNAL") == []  # its turn comes when the acceptor goes on
    assert pair.rates[pair.rates[0].listeners_home].next_ms() <= 1500


def test_what_waits_at_the_gate_goes_when_it_is_due():
    pair = Pair(("setting", f"/{RATE}", "2"))
    pair.record(pair.rates[0], "listener:EXTERNAL", 21)
    waiter = RecordingRateWaiter()
    other = pair.rates[1 - pair.rates[0].listeners_home]
    other.record("listener:EXTERNAL", waiter, now_ms=pair.now_ms)
    pair.settle()
    assert waiter.told == []
    pair.now_ms = 1500
    for rates in pair.rates:
        rates.advance(now_ms=pair.now_ms)
    pair.settle()
    assert waiter.told == [("listener:EXTERNAL", 500)]  # 22 in 10.5 s; 2 a second take 11 s for them


def test_the_inter_broker_listener_passes_while_the_broker_is_over_its_rate():
    pair = Pair(("setting", f"/{RATE}", "2"), ("setting", f"/listener.name.internal.{RATE}", "100"))
    pair.record(pair.rates[0], "listener:EXTERNAL", 25)
    assert pair.record(pair.rates[1], "listener:INTERNAL", 50) == [0] * 50


def test_what_is_taken_back_is_free_again():
    pair = Pair(("setting", f"/{RATE}", "2"))
    pair.record(pair.rates[0], "listener:EXTERNAL", 20)
    for rates in pair.rates:
        for _ in range(5):
            rates.count("EXTERNAL", -1, now_ms=pair.now_ms)
    pair.settle()
    assert pair.record(pair.rates[1], "listener:EXTERNAL", 11) == [0] * 10 + [500]


def test_without_rates_there_is_nothing_to_ask():
    pair = Pair()
    for rates in pair.rates:
        assert not rates.limits_listeners
        assert not rates.limits_ips
        assert not rates.busy


def test_a_default_quota_limits_every_address_but_an_exempted_one():
    pair = Pair(("quota", '{"ip":null}', {"connection_creation_rate": 5}), ip_quota(2147483647, "10.0.0.9"))
    assert pair.holder.limits_ips
    assert pair.holder.has_quota("ip:10.0.0.2")
    assert not pair.holder.has_quota("ip:10.0.0.9")


@pytest.mark.parametrize("configured_first", [True, False])
def test_a_home_that_died_is_asked_again_and_its_successor_knows_what_was_used(configured_first):
    pair = Pair(ip_quota(1), ("setting", "/quota.window.num", "21"))
    pair.record(pair.holder, f"ip:{IP}", 8)
    pair.record(pair.home, f"ip:{IP}", 8)
    waiter, me = RecordingRateWaiter(), pair.holder
    me.record(f"ip:{IP}", waiter, now_ms=pair.now_ms)
    me.flush(now_ms=pair.now_ms)
    successor = succeeded(pair, configured_first=configured_first)
    assert waiter.told == [(f"ip:{IP}", 0)]
    assert pair.record(successor, f"ip:{IP}", 4) == [0, 0, 0, 1000]


def succeeded(pair: Pair, *, configured_first: bool) -> Rates:
    """The home dies, and another takes its place."""
    me, home = pair.holder, pair.home.me
    pair.links[me.me, home].clear()
    me.peer_lost(home, now_ms=pair.now_ms)
    me.peer_dead(home, now_ms=pair.now_ms)
    successor = pair.rates[home] = Rates(
        home, 2, LISTENERS, pair.images[home], send=lambda peer, message: pair.links[home, peer].append(message)
    )
    if configured_first:
        successor.apply(1, now_ms=pair.now_ms)
    successor.peer_up(me.me)
    me.peer_up(home)
    pair.settle()
    if not configured_first:
        successor.apply(1, now_ms=pair.now_ms)
        pair.settle()
    return successor


def test_what_is_recorded_is_described():
    pair = Pair(ip_quota(50))
    pair.record(pair.holder, f"ip:{IP}", 20)
    assert pair.home.describe(now_ms=pair.now_ms) == {"waiting": 0, "rates": [(f"ip:{IP}", 2.0)]}


def test_a_user_that_is_named_as_an_address_has_a_rate_of_its_own():
    pair = Pair(ip_quota(2), ("setting", "/turnstile.max.connection.creation.rate.per.user", "1"))
    assert pair.record(pair.holder, f"ip:{IP}", 20) == [0] * 20
    assert pair.record(pair.holder, f"user:{IP}", 12) == [0] * 10 + [1000] * 2
    assert pair.record(pair.home, f"ip:{IP}") == [500]


def test_a_user_without_a_rate_need_not_be_recorded():
    pair = Pair(("setting", "/turnstile.max.connection.creation.rate.per.user.overrides", "alice:1"))
    assert pair.holder.has_quota("user:alice") and not pair.holder.has_quota("user:bob")


def give_up_all(pair, waiters):
    """The holder's connections wait for a home that does not read, until they are told so."""
    pair.now_ms += DEADLINE_MS
    pair.holder.tick(now_ms=pair.now_ms)
    assert {wait_ms for waiter in waiters for _, wait_ms in waiter.told} == {UNAVAILABLE}


def asked(pair, count):
    waiters = [RecordingRateWaiter() for _ in range(count)]
    for waiter in waiters:
        pair.holder.record(f"ip:{IP}", waiter, now_ms=pair.now_ms)
    pair.holder.flush(now_ms=pair.now_ms)
    return waiters


def test_a_home_that_stood_still_records_nothing_for_asks_that_are_no_longer_waited_for():
    pair = Pair(ip_quota(1))
    give_up_all(pair, asked(pair, 10))
    assert pair.record(pair.holder, f"ip:{IP}", 10) == [0] * 10


def test_a_late_ask_of_which_the_connections_still_wait_tells_them_that_there_was_no_answer():
    pair = Pair(ip_quota(1))
    waiters = asked(pair, 3)
    pair.now_ms += DEADLINE_MS  # before the next tick
    pair.settle()
    assert [waiter.told for waiter in waiters] == [[(f"ip:{IP}", UNAVAILABLE)]] * 3


def test_units_that_were_recorded_nowhere_are_not_taken_back():
    pair = Pair(ip_quota(1))
    assert pair.record(pair.holder, f"ip:{IP}", 10) == [0] * 10
    waiters = asked(pair, 10)
    pair.holder.tick(now_ms=pair.now_ms + DEADLINE_MS)  # by a clock that is ahead: the ask is not late for its home
    assert all(waiter.told for waiter in waiters)
    image = pair.images[pair.home.me]
    image.apply(2, [ip_quota(None)])
    pair.home.apply(2, now_ms=pair.now_ms)
    pair.settle()
    image.apply(3, [ip_quota(1)])
    pair.home.apply(3, now_ms=pair.now_ms)
    assert pair.home.snapshot(now_ms=pair.now_ms).recorded == {f"ip:{IP}": 10}


def test_a_reset_is_not_undone_by_units_of_before():
    pair = Pair(ip_quota(1))
    waiters = asked(pair, 10)
    (message,) = pair.links[pair.holder.me, pair.home.me]
    pair.links[pair.holder.me, pair.home.me].clear()
    pair.home.receive(pair.holder.me, message[1], now_ms=pair.now_ms)
    pair.holder.tick(now_ms=pair.now_ms + DEADLINE_MS)
    assert all(waiter.told for waiter in waiters)
    for rates in pair.rates:
        rates.reset(now_ms=pair.now_ms)
    assert pair.record(pair.home, f"ip:{IP}", 10) == [0] * 10, "whose units the others' do not take back"
    assert pair.home.snapshot(now_ms=pair.now_ms).recorded == {f"ip:{IP}": 10}
