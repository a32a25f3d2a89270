"""What is taken, recorded and given back on the way of a connection, in which order, and how each way ends."""

import os

import pytest
from cluster_pools import uncapped, unrated

from broker.accept.admission import Admission
from broker.accept.held_connections import HeldConnections
from broker.accept.pacing import Pacing
from broker.accept.refused_sockets import RefusedSockets
from broker.accept.step_actions import Deciders
from broker.metrics.outcomes import Outcomes
from broker.metrics.source_counts import SourceCounts
from broker.runtime.shard_context import ShardContext
from shards.config.image import ClusterImage
from shards.limits.caps import CapRule
from shards.rates.rates import UNAVAILABLE
from shards.tokens.tokens import ADMITTED, Refused

IP = "ip:10.0.0.1"
LISTENER = "listener:EXTERNAL"
SLOT = (LISTENER, "broker")
ALL = (*SLOT, IP)
FULL = Refused(IP, CapRule(5, "max.connections.per.ip"), 7)
WAITS = CapRule(9, "max.connections", True)


class Clock:
    now_ns = 1_000_000_000


class Alarm:
    """A timer that is called when told to."""

    def __init__(self, delay_ms, function):
        self.delay_ms, self.function = delay_ms, function


class Timers:
    def __init__(self, log):
        self.alarms, self._log = [], log

    def after(self, delay_ms, function):
        self._log.append(f"after {delay_ms}")
        self.alarms.append(Alarm(delay_ms, function))
        return self.alarms[-1]

    def cancel(self, alarm):
        if alarm in self.alarms:
            self.alarms.remove(alarm)

    def fire(self):
        self.alarms.pop(0).function()


class Answers:
    """Rates and tokens that answer what they are told, by key; None: later, by the waiter they keep."""

    def __init__(self, log):
        self._log = log
        self.answers, self.waiters, self.cancelled = {}, {}, []

    def ask(self, what, key, waiter, otherwise):
        self._log.append(f"{what} {key}")
        answer = self.answers.get(key, otherwise)
        if answer is None:
            self.waiters[key] = waiter
        return answer


class Rates(Answers):
    def __init__(self, log):
        super().__init__(log)
        self.limits_listeners, self.limits_ips = True, True

    def has_quota(self, ip):
        return self.limits_ips

    def record(self, key, waiter, *, now_ms):
        return self.ask("record", key, waiter, 0)

    def count(self, listener, units, *, now_ms):
        self._log.append(f"count {listener} {units}")


class Tokens(Answers):
    """`held` is what connections hold; `rules` are those of the pools that are waited for."""

    version = 7

    def __init__(self, log):
        super().__init__(log)
        self.held, self.rules = [], {}
        self.suspended, self.resumed = {}, {}

    def take_at_hand(self, pools):
        if " ".join(pools) in self.answers:
            return 0
        self.take(pools, None)
        return len(pools)

    def take(self, pools, waiter, *, at_once=False):
        decision = self.ask("take at once" if at_once else "take", " ".join(pools), waiter, ADMITTED)
        if decision is ADMITTED:
            self.held += pools
        elif decision is None:
            waiter.began_to_wait(pools[0], self.rules.get(pools[0], CapRule(5, "max.connections.per.ip")))
        return decision

    def release(self, pools):
        if not pools:
            return
        self._log.append(f"release {' '.join(pools)}")
        for pool in pools:
            self.held.remove(pool)

    def suspend(self, pools, waiter):
        self.suspended[waiter] = pools

    def resume(self, more, waiter):
        self.resumed[waiter] = self.suspended.pop(waiter)
        decision = self.take(more, waiter)
        if isinstance(decision, Refused):
            self.release(self.resumed[waiter])
        return decision

    def take_rest(self, pools, taken, waiter):
        if not taken:
            return self.take(pools, waiter)
        self.suspend(pools[:taken], waiter)
        return self.resume(pools[taken:], waiter)

    def cancel(self, waiter):
        if waiter in self.suspended:
            self.release(self.suspended.pop(waiter))
        elif waiter in self.waiters.values():
            self.cancelled.append(waiter)
            self.release(self.resumed.pop(waiter, ()))

    def decide(self, pools, decision=ADMITTED):
        """The home's answer."""
        waiter = self.waiters.pop(" ".join(pools))
        slot = self.resumed.pop(waiter, ())
        if decision is ADMITTED:
            self.held += pools
        else:
            self.release(slot)
        waiter.decided(decision)


class Journal:
    def __init__(self, log):
        self._log, self.fd = log, -1

    def admitted(self, *row):
        self._log.append("admitted")

    def refused(self, number, ip, port, listener, *, reason, limit, limit_value, version, held_ms):
        self._log.append(f"refused {reason} {limit} {limit_value:g}")
        os.fstat(self.fd)  # open still: refused_is_counted_before_it_is_seen


class Counters:
    """Accepts every count, and notes delays."""

    def __init__(self, log):
        self._log = log
        self.counted = []

    def accept_delayed(self, listener, delay_ms):
        self._log.append(f"accept delayed {delay_ms}")

    def ip_delayed(self, listener, delay_ms):
        self._log.append(f"ip delayed {delay_ms}")

    def admitted(self, listener):
        self.counted.append("admitted")

    def refused(self, listener, reason):
        self.counted.append(reason)

    def borrowed(self, took_ns):
        self.counted.append("borrowed")

    def add(self, *counter):
        pass


class TopTalkers:
    def add(self, ip, reason):
        pass


class Acceptor:
    """The listening socket."""

    def __init__(self, log):
        self._log = log
        self.accepting = False

    def start(self):
        if not self.accepting:
            self._log.append("accept")
        self.accepting = True

    def pause(self):
        self._log.append("pause")
        self.accepting = False

    close = pause


class CoreRates:
    def __init__(self, wait_ms=0, active=False):
        self.wait_ms, self.active = wait_ms, active

    def take(self, ip, *, now_ms):
        return self.wait_ms


class Desk:
    """A listener; `log` is what happened, in order, without the start of the listener."""

    def __init__(self, *, gated=True, limited=True, core=None, direct=False, forced=False, most_waiting=1, **settings):
        self.log = []
        self.rates, self.tokens, self.timers = Rates(self.log), Tokens(self.log), Timers(self.log)
        self.rates.limits_listeners, self.rates.limits_ips = gated, limited
        self.acceptor, self.journal = Acceptor(self.log), Journal(self.log)
        self.counters, self.image = Counters(self.log), ClusterImage()
        records = [("setting", f"/{name}", value) for name, value in settings.items()]
        quota = ("quota", '{"ip":"10.0.0.1"}', {"connection_creation_rate": 20})
        self.image.apply(7, [*records, quota], whole=True)
        talkers = TopTalkers()
        context = ShardContext(
            shard=0, shards=1, image=self.image, tokens=self.tokens, cluster=uncapped(),
            cluster_rate=unrated(),
            poller=Clock(), timers=self.timers,
            journal=self.journal, counters=self.counters, top_talkers=talkers, log=None, send=None, request=None,
            start_soon=None,
        )  # fmt: skip
        self.held = HeldConnections(self.timers, 10)
        self.pending = set()
        deciders = Deciders(
            rates=self.rates, core_rates=core or CoreRates(), held=self.held,
            refused_sockets=RefusedSockets(self.image, self.timers, 10), force=lambda: self.log.append("force"),
            numbers=iter(range(1, 99)), pending=self.pending, fd_ceiling=10_000,
        )  # fmt: skip
        pacing = Pacing("EXTERNAL", Clock(), self.timers, self.counters, lambda: most_waiting)
        outcomes = Outcomes("EXTERNAL", self.journal, self.counters, talkers, SourceCounts())
        self.admission = Admission(context, deciders, outcomes, pacing, self.open, answering=lambda *_: None)
        self.admission.direct, self.admission.forced = direct, forced
        pacing.start(self.acceptor)
        self.log.clear()

    def open(self, fd, number, ip, port, pools):
        os.close(fd)
        self.log.append("open " + " ".join(pools))

    def connect(self):
        self.journal.fd = fd = os.open(os.devnull, os.O_RDONLY)
        self.admission.arrived(fd, "10.0.0.1", 4711)
        return self.log

    def has_closed(self):
        """Whether the descriptor of the last connection is closed."""
        try:
            os.fstat(self.journal.fd)
        except OSError:
            return True
        return False

    def since(self, step):
        """What happened after a line of the log."""
        return self.log[self.log.index(step) + 1 :]


IN = ["admitted", "open " + " ".join(ALL)]


# Decided at once


def test_without_rates_tokens_decide():
    assert Desk(direct=True).connect() == [f"take {' '.join(ALL)}", *IN]


def test_without_rates_a_full_pool_refuses():
    desk = Desk(direct=True)
    desk.tokens.answers[" ".join(ALL)] = FULL
    assert desk.connect()[1:] == ["refused ip_cap max.connections.per.ip 5"]
    assert desk.counters.counted == ["ip_cap"] and not desk.pending and desk.has_closed()


def test_with_everything_at_hand_the_order_is_kafkas():
    assert Desk().connect() == [f"record {LISTENER}", f"take {' '.join(SLOT)}", f"record {IP}", f"take {IP}", *IN]


def test_an_address_without_quota_is_not_recorded_and_takes_its_tokens_together():
    assert Desk(limited=False).connect() == [f"record {LISTENER}", f"take {' '.join(ALL)}", *IN]


def test_the_inter_broker_listener_takes_its_broker_token_in_any_case():
    assert Desk(forced=True).connect()[1:] == [f"take {LISTENER}", f"record {IP}", f"take {IP}", "force", *IN]
    assert Desk(forced=True, limited=False).connect()[1:] == [f"take {LISTENER} {IP}", "force", *IN]


# Rates


def test_a_delay_of_the_listener_comes_before_the_slot():
    desk = Desk(limited=False)
    desk.rates.answers[LISTENER] = 300
    assert desk.connect() == [f"record {LISTENER}", "pause", "accept delayed 300", "after 300"]
    desk.timers.fire()
    assert desk.since("after 300") == ["accept", f"take {' '.join(ALL)}", *IN]


@pytest.mark.parametrize(
    ("wait_ms", "then"),
    [
        (0, ["accept", f"take {' '.join(ALL)}", *IN]),
        (50, ["accept delayed 50", "after 50"]),
        (UNAVAILABLE, ["accept", "refused shard_unavailable max.connection.creation.rate 0"]),
    ],
)
def test_an_answer_about_the_listeners_rate_is_waited_for(wait_ms, then):
    desk = Desk(limited=False)
    desk.rates.answers[LISTENER] = None
    assert desk.connect() == [f"record {LISTENER}", "pause"]
    desk.rates.waiters[LISTENER].recorded(LISTENER, wait_ms)
    assert desk.since("pause") == then


def test_an_address_over_its_rate_takes_everything_back_and_is_held_then_closed():
    desk = Desk()
    desk.rates.answers[IP] = 250
    assert desk.connect()[2:] == [
        f"record {IP}",
        f"release {' '.join(SLOT)}",
        "count EXTERNAL -1",
        "ip delayed 250",
        "after 250",
    ]
    assert len(desk.held) == 1 and desk.acceptor.accepting
    desk.timers.fire()
    assert desk.since("after 250") == ["refused ip_rate connection_creation_rate 20"]
    assert len(desk.held) == 0 and not desk.pending


def test_a_held_connection_that_has_to_make_room_is_refused_early():
    desk = Desk(**{"turnstile.ip.rate.recheck": "true"})
    desk.rates.answers[IP] = 250
    desk.connect()
    assert desk.held.make_room()
    assert desk.since("after 250") == ["refused ip_rate connection_creation_rate 20"]
    assert not desk.timers.alarms


def test_an_unanswered_address_rate_frees_the_slot():
    desk = Desk()
    desk.rates.answers[IP] = UNAVAILABLE
    assert desk.connect()[3:] == [f"release {' '.join(SLOT)}", "refused shard_unavailable connection_creation_rate 0"]


@pytest.mark.parametrize("active", [True, False])
def test_a_core_token_at_hand_is_taken_at_once(active):
    assert Desk(core=CoreRates(0, active)).connect()[0] == f"record {LISTENER}"


def test_a_core_token_soon_to_come_is_waited_for():
    desk = Desk(core=CoreRates(40, True), kafka_connection_rate_limit="10")
    assert desk.connect() == ["pause", "after 40"]
    desk.timers.fire()
    assert desk.since("after 40")[:2] == ["accept", f"record {LISTENER}"]


def test_without_a_core_token_for_long_it_is_refused_after_a_while():
    desk = Desk(core=CoreRates(None, True), kafka_connection_rate_limit="10")
    assert desk.connect() == ["pause", "after 100"]
    desk.timers.fire()
    assert desk.since("after 100") == ["accept", "refused core_rate kafka_connection_rate_limit 10"]


# With a recheck


def rechecked(again_ms, tokens=ADMITTED):
    desk = Desk(**{"turnstile.ip.rate.recheck": "true"})
    desk.rates.answers[IP] = 250
    desk.connect()
    desk.rates.answers[IP] = again_ms
    desk.tokens.answers[" ".join(ALL)] = tokens
    desk.tokens.rules[LISTENER] = WAITS
    desk.timers.fire()
    return desk


def test_within_its_rate_again_it_is_recorded_and_gets_in():
    assert rechecked(0).since("after 250") == [f"record {IP}", "count EXTERNAL 1", f"take at once {' '.join(ALL)}", *IN]


@pytest.mark.parametrize(
    ("again_ms", "refused"),
    [(100, "ip_rate connection_creation_rate 20"), (UNAVAILABLE, "shard_unavailable connection_creation_rate 0")],
)
def test_still_over_its_rate_it_is_refused(again_ms, refused):
    assert rechecked(again_ms).since("after 250") == [f"record {IP}", f"refused {refused}"]


def test_it_does_not_stop_its_listener_for_a_slot_and_is_refused_by_its_home_alone():
    desk = rechecked(0, tokens=None)
    assert desk.acceptor.accepting and "pause" not in desk.log
    assert not desk.timers.alarms and len(desk.pending) == 1
    desk.tokens.waiters[" ".join(ALL)].decided(Refused(LISTENER, WAITS, 7))
    assert desk.log[-1] == "refused listener_cap max.connections 9"
    assert not desk.pending and not desk.tokens.held


# Tokens


def test_an_address_at_its_cap_stays_recorded_and_frees_its_slot():
    desk = Desk()
    desk.tokens.answers[IP] = FULL
    assert desk.connect()[3:] == [f"take {IP}", f"release {' '.join(SLOT)}", "refused ip_cap max.connections.per.ip 5"]


def test_a_slot_that_has_to_be_waited_for_stops_the_listener():
    desk = Desk()
    desk.tokens.answers[" ".join(SLOT)] = None
    desk.tokens.rules[LISTENER] = WAITS
    assert desk.connect()[1:] == [f"take {' '.join(SLOT)}", "pause"]
    desk.tokens.decide(SLOT)
    assert desk.since("pause") == ["accept", f"record {IP}", f"take {IP}", *IN]
    assert "borrowed" not in desk.counters.counted, "a wait for a slot is none for another shard"


@pytest.mark.parametrize("direct", [True, False])
def test_a_pool_that_lets_no_connection_wait_does_not_stop_the_listener(direct):
    desk = Desk(direct=direct, limited=False)
    desk.tokens.answers[" ".join(ALL)] = None
    desk.connect()
    assert desk.acceptor.accepting and len(desk.pending) == 1
    desk.tokens.decide(ALL)
    assert desk.log[-2:] == IN and not desk.pending
    assert desk.counters.counted == ["borrowed", "admitted"]


@pytest.mark.parametrize(("before", "after"), [(CapRule(5, "kafka_connections_max"), WAITS), (WAITS, CapRule(5, "x"))])
def test_a_rule_that_changes_while_it_is_waited_for_stops_the_listener_or_lets_it_go_on(before, after):
    desk = Desk(direct=True)
    desk.tokens.rules[LISTENER] = before
    desk.tokens.answers[" ".join(ALL)] = None
    desk.connect()
    assert desk.acceptor.accepting is not before.wait
    desk.tokens.waiters[" ".join(ALL)].rule_changed(after)
    assert desk.acceptor.accepting is not after.wait


def test_the_listener_goes_on_as_soon_as_the_slot_is_taken_and_only_the_address_is_waited_for():
    desk = Desk(direct=True)
    desk.tokens.answers[" ".join(ALL)] = None
    desk.tokens.rules[LISTENER] = WAITS
    desk.connect()
    assert not desk.acceptor.accepting
    desk.tokens.waiters[" ".join(ALL)].began_to_wait(IP, FULL.rule)
    assert desk.acceptor.accepting
    desk.tokens.decide(ALL)
    assert desk.log[-2:] == IN


# The end of the shard


def waiting_in(step):
    """A connection that waits in a step, and for what."""
    desk = Desk(core=CoreRates(40, step == "core rate"), kafka_connection_rate_limit="10")
    if step == "listener rate":
        desk.rates.answers[LISTENER] = None
    elif step == "delay":
        desk.rates.answers[LISTENER] = 300
    elif step == "slot":
        desk.tokens.answers[" ".join(SLOT)] = None
        desk.tokens.rules[LISTENER] = WAITS
    elif step == "address rate":
        desk.rates.answers[IP] = None
    elif step == "address tokens":
        desk.tokens.answers[IP] = None
    elif step == "held":
        desk.rates.answers[IP] = 250
    desk.connect()
    assert len(desk.pending) == 1
    return desk


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("core rate", "shard_unavailable"),
        ("listener rate", "shard_unavailable"),
        ("delay", "shard_unavailable"),
        ("slot", "shard_unavailable"),
        ("address rate", "shard_unavailable"),
        ("address tokens", "shard_unavailable"),
        ("held", "ip_rate"),
    ],
)
def test_when_the_shard_ends_each_is_refused_and_holds_nothing(step, reason):
    desk = waiting_in(step)
    waiter = next(iter(desk.pending))
    desk.admission.close()
    assert desk.counters.counted[-1:] == [reason] and desk.log[-1].startswith(f"refused {reason}")
    assert desk.has_closed()
    assert not (desk.pending or desk.tokens.held or len(desk.held) or desk.timers.alarms or desk.acceptor.accepting)
    assert desk.tokens.cancelled == [waiter] * (step in ("slot", "address tokens"))
    before = list(desk.log)
    waiter.decided(ADMITTED)
    waiter.recorded(IP, 0)
    desk.admission.close()
    assert desk.log == before, "a late answer changes nothing"
