"""The way of a connection while rates are set: what is taken, recorded and given back, and in which order."""

import os

import pytest

from broker.accept.admission import Admission
from broker.accept.held_connections import HeldConnections
from broker.accept.rated import Rated
from shards.config.image import ClusterImage
from shards.limits.caps import CapRule
from shards.rates.rates import UNAVAILABLE
from shards.tokens.tokens import ADMITTED, Refused

IP_KEY = "ip:10.0.0.1"
SLOT = ("broker", "listener:EXTERNAL")
FULL = Refused(IP_KEY, CapRule(5, "max.connections.per.ip"), 7)


class Desk:
    """A listener whose rates and tokens answer what `answers` says, by key: a value, or None and then `later`."""

    def __init__(self, *, limits_listeners=True, limited=True, core=None, **settings):
        self.log, self.answers, self.waiters = [], {}, {}
        self.now_ns, self.version, self.limits_listeners, self.limits_ips = 1_000_000_000, 7, limits_listeners, limited
        self.stopped = self.waiting = 0
        self.active = core is not None
        self.core = core
        self.due = []
        image = ClusterImage()
        records = [("setting", f"/{name}", value) for name, value in settings.items()]
        image.apply(7, [*records, ("quota", '{"ip":"10.0.0.1"}', {"connection_creation_rate": 20})], whole=True)
        self.held = HeldConnections(self, 10)
        self.admission = Admission(
            "EXTERNAL", self, self, self, self, self, self.admit, iter(range(1, 99)), self, self.held, self.force,
            fd_ceiling=10_000,
        )  # fmt: skip
        self.admission.rated = Rated(self.admission, self, self, self.held, self, self, self, image, self).begin

    def connect(self):
        self.fd = os.open(os.devnull, os.O_RDONLY)
        self.admission.arrived(self.fd, "10.0.0.1", 4711)
        return self.log

    # rates, core rates
    def has_quota(self, ip):
        return self.limits_ips

    def record(self, key, waiter, *, now_ms):
        self.log.append(f"record {key}")
        self.waiters[key] = waiter
        return self.answers.get(key, 0)

    def count(self, listener, units, *, now_ms):
        self.log.append(f"count {listener} {units}")

    # tokens
    def take(self, pools, waiter):
        if not isinstance(pools, tuple):
            return self.core  # the bucket's: take(ip)
        self.log.append(f"take {' '.join(pools)}")
        self.waiters[pools] = waiter
        return self.answers.get(pools, ADMITTED)

    def release(self, pools):
        self.log.append(f"release {' '.join(pools)}")

    def force(self):
        self.log.append("force")

    # pacing, delays, counters, talkers, journal
    def look(self):
        self.log.append("pause" if self.stopped or self.waiting else "accept")

    def after(self, delay_ms, function):
        self.due.append(function)
        self.log.append(f"after {delay_ms}")

    def fire(self):
        self.due.pop(0)()

    def accept_delayed(self, listener, delay_ms):
        self.log.append(f"accept delayed {delay_ms}")

    def ip_delayed(self, listener, delay_ms):
        self.log.append(f"ip delayed {delay_ms}")

    def add(self, *args):
        pass

    def refused(self, *args):
        if len(args) > 2:
            self.log.append(f"refused {args[4]} {args[5]} {args[6]:g}")
            with pytest.raises(OSError):
                os.fstat(self.fd)

    def admit(self, *args):
        os.close(self.fd)
        self.log.append("admitted")


class CoreDesk(Desk):
    """The same with the core's bucket in front."""

    def take(self, pools, waiter=None, *, now_ms=0):
        return self.core if isinstance(pools, str) else super().take(pools, waiter)


def test_everything_at_hand_is_decided_at_once_in_kafkas_order():
    assert Desk().connect() == [
        "record listener:EXTERNAL", "take broker listener:EXTERNAL", f"record {IP_KEY}", f"take {IP_KEY}", "admitted",
    ]  # fmt: skip


def test_an_address_without_quota_is_not_recorded():
    assert Desk(limited=False).connect() == ["record listener:EXTERNAL", f"take {' '.join(SLOT)} {IP_KEY}", "admitted"]


def test_a_delay_of_the_listener_comes_before_the_slot():
    desk = Desk(limited=False)
    desk.answers["listener:EXTERNAL"] = 300
    assert desk.connect() == ["record listener:EXTERNAL", "pause", "accept delayed 300", "after 300"]
    desk.fire()
    assert desk.log[4:] == ["accept", f"take {' '.join(SLOT)} {IP_KEY}", "admitted"]


@pytest.mark.parametrize(("wait_ms", "then"), [(0, ["accept"]), (50, ["accept delayed 50", "after 50"])])
def test_an_answer_from_afar_pauses_until_it_comes(wait_ms, then):
    desk = Desk(limited=False)
    desk.answers["listener:EXTERNAL"] = None
    assert desk.connect() == ["record listener:EXTERNAL", "pause"]
    desk.waiters["listener:EXTERNAL"].recorded("listener:EXTERNAL", wait_ms)
    assert desk.log[2 : 2 + len(then)] == then
    assert ("admitted" in desk.log) == (wait_ms == 0)


def test_an_address_over_its_rate_takes_everything_back_and_is_held_then_closed():
    desk = Desk()
    desk.answers[IP_KEY] = 250
    assert desk.connect()[2:] == [
        f"record {IP_KEY}", "release broker listener:EXTERNAL", "count EXTERNAL -1", "ip delayed 250", "after 250",
    ]  # fmt: skip
    assert len(desk.held) == 1
    desk.fire()
    assert desk.log[-1] == "refused ip_rate connection_creation_rate 20"


@pytest.mark.parametrize("again_ms", [0, 100])
def test_with_recheck_it_is_asked_about_again(again_ms):
    desk = Desk(**{"turnstile.ip.rate.recheck": "true"})
    desk.answers[IP_KEY] = 250
    desk.connect()
    desk.answers[IP_KEY] = again_ms
    desk.fire()
    if again_ms:
        assert desk.log[-1] == "refused ip_rate connection_creation_rate 20"
    else:
        assert desk.log[-3:] == ["count EXTERNAL 1", f"take {' '.join(SLOT)} {IP_KEY}", "admitted"]


def test_an_address_at_its_cap_stays_recorded_and_frees_its_slot():
    desk = Desk()
    desk.answers[(IP_KEY,)] = FULL
    assert desk.connect()[3:] == [
        f"take {IP_KEY}", "release broker listener:EXTERNAL", "refused ip_cap max.connections.per.ip 5",
    ]  # fmt: skip


def test_a_slot_that_has_to_be_waited_for_stops_the_listener():
    desk = Desk()
    desk.admission.slots_wait = True
    desk.answers[SLOT] = None
    assert desk.connect()[1:] == ["take broker listener:EXTERNAL", "pause"]
    desk.waiters[SLOT].decided(ADMITTED)
    assert desk.log[3:] == ["accept", f"record {IP_KEY}", f"take {IP_KEY}", "admitted"]


def test_a_home_that_does_not_answer_is_said():
    desk = Desk()
    desk.answers[IP_KEY] = UNAVAILABLE
    assert desk.connect()[3:] == [
        "release broker listener:EXTERNAL", "refused shard_unavailable connection_creation_rate 0",
    ]  # fmt: skip


def test_a_core_without_a_token_lets_wait_and_then_refuses():
    desk = CoreDesk(core=0, kafka_connection_rate_limit="10")
    assert desk.connect()[0] == "record listener:EXTERNAL"
    desk = CoreDesk(core=40, kafka_connection_rate_limit="10")
    assert desk.connect() == ["pause", "after 40"]
    desk.fire()
    assert desk.log[2:4] == ["accept", "record listener:EXTERNAL"]
    desk = CoreDesk(core=40, kafka_connection_rate_limit="10")
    desk.core = None
    desk.active = True
    assert desk.connect() == ["pause", "after 100"]
    desk.fire()
    assert desk.log[2:] == ["accept", "refused core_rate kafka_connection_rate_limit 10"]


def test_the_inter_broker_listener_takes_its_broker_token_in_any_case():
    desk = Desk()
    desk.admission.first = 1
    assert desk.connect()[1:] == [
        "take listener:EXTERNAL", f"record {IP_KEY}", f"take {IP_KEY}", "force", "admitted",
    ]  # fmt: skip
