"""The rates of listeners at their home, against one Kafka broker's ConnectionQuotas."""

import random

import pytest

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.rate import Window
from shards.limits.replay_gate import ADMITTED, IncomingConnection, ReplayGate
from shards.rates.listener_throttle import ListenerThrottle

LISTENERS = ("EXTERNAL", "INTERNAL")
RATE = "max.connection.creation.rate"


class Answers:
    """What the home answered, in order: (holder, listener, units, until, when)."""

    def __init__(self):
        self.all = []

    def __call__(self, holder, listener, units, until_ms, at_ms):
        self.all.append((holder, listener, units, until_ms, at_ms))


def throttle(broker=None, external=None, internal=None, *, exempt="INTERNAL", window=None):
    answers = Answers()
    made = ListenerThrottle(LISTENERS, window or Window(), answers)
    made.configure(broker, {"EXTERNAL": external, "INTERNAL": internal}, exempt)
    return made, answers


@pytest.mark.parametrize("seed", range(10))
def test_asks_of_many_holders_are_admitted_when_one_acceptor_admits_them(seed):
    source = random.Random(seed)
    values = {RATE: source.choice([3, 10, 40]), f"listener.name.external.{RATE}": source.choice([2, 10, 100])}
    limits = ConnectionLimits()
    for name, value in values.items():
        limits = limits.with_change(name, str(value), LISTENERS)
    reference = ReplayGate(limits, LISTENERS, inter_broker="INTERNAL")
    tested, answers = throttle(values[RATE], values[f"listener.name.external.{RATE}"], values[RATE])
    made, now_ms = [], 0
    for _ in range(1000):
        now_ms += int(source.expovariate(0.04))
        listener = source.choice(LISTENERS)
        reference.advance(now_ms=now_ms)
        made.append(IncomingConnection(reference.acceptors[listener], "10.0.0.1"))
        reference.connect(made[-1], now_ms=now_ms)
        tested.ask(source.randrange(8), listener, 1, now_ms=now_ms)
    reference.finish()
    while (due := tested.next_ms()) is not None:
        tested.advance(now_ms=due)
    for listener in LISTENERS:
        expected = [each.at_ms for each in made if each.acceptor.name == listener and each.outcome == ADMITTED]
        assert [until or at for _, name, _, until, at in answers.all if name == listener] == expected


def test_a_batch_goes_as_far_as_the_rate_allows_and_the_rest_waits_its_turn():
    tested, answers = throttle(external=1, window=Window(2, 1000))
    tested.ask(0, "EXTERNAL", 3, now_ms=1000)
    assert answers.all == [(0, "EXTERNAL", 1, 2000, 1000)]
    tested.ask(1, "EXTERNAL", 1, now_ms=1500)
    assert len(answers.all) == 1
    tested.advance(now_ms=9000)
    assert [(holder, until) for holder, _, _, until, _ in answers.all[1:]] == [(0, 3000), (1, 4000)]


def test_unused_units_leave_the_sample_they_are_in():
    tested, _ = throttle(external=20)
    tested.ask(0, "EXTERNAL", 11, now_ms=1000)
    tested.ask(0, "EXTERNAL", 1, now_ms=2050)
    tested.undo("EXTERNAL", 10, at_ms=1000)
    rate = tested.listeners["EXTERNAL"].rate
    assert rate.units(now_ms=2050) == 2
    assert rate.units(now_ms=1000 + rate.window.samples * rate.window.size_ms) == 1  # without the first sample


def test_a_shard_that_died_waits_no_more():
    tested, answers = throttle(external=1, window=Window(1, 1000))
    for holder in (0, 1, 0, 2):
        tested.ask(holder, "EXTERNAL", 1, now_ms=1000)
    tested.forget(0)
    tested.advance(now_ms=60_000)
    assert [holder for holder, *_ in answers.all] == [0, 1, 2]


def test_the_exempt_listener_is_held_to_its_own_rate_only():
    tested, answers = throttle(broker=1, external=1000, internal=1000)
    for _ in range(100):
        tested.ask(0, "INTERNAL", 1, now_ms=1000)
    assert all(until == 0 for _, _, _, until, _ in answers.all)
    assert tested.rate.peek(now_ms=1000) == 0
