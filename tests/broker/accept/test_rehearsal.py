"""The observed world of a shard: who is in it, what is counted and journaled, and that the real one does not notice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from cluster_pools import uncapped

from broker.accept.rate_rehearsal import RateRehearsal
from broker.accept.rehearsal import Rehearsal
from shards.config.image import ClusterImage
from shards.errors import PeerLost
from shards.limits.caps import OBSERVED
from shards.limits.quota_entities import key_of_entity
from shards.loop.deferred import Deferred
from shards.ownership import home_of
from shards.rates.observed_rates import ADDRESS, LISTENER, AnswerRun, Ask, ObservedRates
from shards.tokens.tokens import Tokens

PER_IP = "kafka_connections_max_per_ip"
AWAY = next(f"10.0.0.{n}" for n in range(1, 200) if home_of(f"{OBSERVED}ip:10.0.0.{n}", 2) == 1)


class OpenConnection:
    def __init__(self, pools: tuple[str, ...]) -> None:
        self.pools = pools

    def hold(self, pools: tuple[str, ...]) -> None:
        self.pools = pools


class Desk:
    """Shard 0 of `shards`; the others are the test. `journal` and `counted`: what was observed."""

    def __init__(self, shards: int = 1, **observed: str) -> None:
        self.image = ClusterImage(0)
        self.sent: list[Any] = []
        self.journal: list[dict[str, Any]] = []
        self.counted: list[tuple[str, str]] = []
        self.noted: list[tuple[Ask, AnswerRun]] = []
        self.now_ms = 0
        self.asked: list[tuple[list[Any], Deferred[Any]]] = []
        self.tokens = Tokens(
            0,
            shards,
            epoch=1,
            send=lambda peer, message: self.sent.extend(message[1]),
            rule_of=self.image.rule_of,
            on_wait=lambda waiter, pool, rule: waiter.waits(pool, rule),
        )
        self.open: dict[int, OpenConnection] = {}
        self.mistakes: list[Exception] = []
        context = SimpleNamespace(
            log=SimpleNamespace(call_mistaken=self.mistakes.append),
            image=self.image,
            tokens=self.tokens,
            cluster=uncapped(),
            poller=SimpleNamespace(now_ns=0),
            journal=SimpleNamespace(
                add=lambda kind, **row: self.journal.append(row),
                refused=lambda conn, ip, port, listener, **row: self.journal.append({"conn": conn, **row}),
            ),
            counters=SimpleNamespace(add=lambda name, amount, listener: self.counted.append((name, listener))),
        )
        rates = ObservedRates(
            0, shards, ("A", "B"), self.image, call=self._call, now_ms=lambda: self.now_ms, touch=lambda: None,
            notes=cast(
                Any,
                SimpleNamespace(
                    answered=lambda ask, run, **how: self.noted.append((ask, run)), began=lambda **how: None
                ),
            ),
        )  # fmt: skip
        self.rates = rates
        self.rehearsal = Rehearsal(cast(Any, context), self.open, RateRehearsal(self.image, rates))
        if shards > 1:
            self.tokens.peer_up(1, 2)
        self.observe(**observed)
        if shards > 1:
            self.hears(("sync", 1))

    def _call(self, peer: int, method: str, asks: list[Any]) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        self.asked.append((asks, answer))
        return answer

    def observe_rate_of(self, ip: str | None, per_s: float | None) -> None:
        """A quota of an address is observed; None: no more."""
        values = None if per_s is None else {"connection_creation_rate": per_s}
        self.image.apply(self.image.version + 1, [("observed_quota", key_of_entity((("ip", ip),)), values)])
        self.rehearsal.follow()

    def observe(self, **observed: str) -> None:
        """The image comes to another version, in which these caps and no others are observed."""
        records = [("observed", f"/{name.replace('__', '.')}", text) for name, text in observed.items()]
        change = self.image.apply(self.image.version + 1, records, whole=True)
        self.rehearsal.follow()
        self.tokens.apply(self.image.version, lambda: None, change.pools)
        self.says()

    def connect(self, number: int, ip: str = "10.0.0.1", *, forced: bool = False) -> None:
        """A connection that was admitted."""
        pools = ("listener:A", "broker", f"ip:{ip}")
        assert self.tokens.take_at_hand(pools) or self.tokens.take(pools, cast(Any, None))

        def opened(fd: int, number: int, ip: str, port: int, pools: tuple[str, ...]) -> None:
            self.open[number] = OpenConnection(pools)

        self.rehearsal.opener("A", pools[:2], opened, forced=forced)(9, number, ip, 4711, pools)

    def close(self, number: int) -> None:
        self.tokens.release(self.open.pop(number).pools)

    def members(self) -> list[int]:
        return [number for number, each in self.open.items() if each.pools[-1].startswith(OBSERVED)]

    def in_use(self, pool: str) -> int:
        return self.tokens.snapshot().in_use.get(OBSERVED + pool, 0)

    def hears(self, *items: tuple[Any, ...]) -> list[Any]:
        self.tokens.receive(1, (2, list(items)))
        return self.says()

    def says(self) -> list[Any]:
        self.tokens.flush()
        self.tokens.check()
        assert self.mistakes == []
        sent, self.sent = self.sent, []
        return sent


def test_while_nothing_is_observed_nobody_stands_between_admission_and_serving():
    def serve(*anything: Any) -> None: ...

    assert Desk().rehearsal.opener("A", ("listener:A", "broker"), serve, forced=False) is serve


def test_who_would_be_refused_is_open_and_counted_and_holds_no_observed_token():
    desk = Desk(kafka_connections_max_per_ip="1")
    desk.connect(1)
    desk.connect(2)
    assert list(desk.open) == [1, 2] and desk.members() == [1]
    assert desk.counted == [("observed_ip_cap", "A")]
    assert [(row["conn"], row["reason"], row["limit"], row["limit_value"], row["version"]) for row in desk.journal] == [
        (2, "ip_cap", PER_IP, 1, 1)
    ]
    assert desk.in_use("ip:10.0.0.1") == desk.in_use("broker") == 1
    assert desk.rehearsal.counts.describe()["caps"] == [[PER_IP, 1, False, 1]]
    assert (desk.tokens.refused, desk.tokens.decided_rpc) == (0, 0)  # nobody was refused
    assert desk.tokens.decided_home + desk.tokens.decided_cached == 2  # and each was decided once


def test_a_closed_connection_makes_room_in_the_observed_world_only_if_it_was_in_it():
    desk = Desk(kafka_connections_max_per_ip="1")
    for number in (1, 2):
        desk.connect(number)
    desk.close(2)
    desk.connect(3)
    desk.close(1)
    desk.connect(4)
    assert desk.members() == [4]
    assert [row["conn"] for row in desk.journal] == [2, 3]


def test_a_cap_that_lets_wait_counts_those_that_would_wait():
    desk = Desk(max__connections="1")
    for number in (1, 2):
        desk.connect(number)
    desk.says()
    assert [row["reason"] for row in desk.journal] == [
        "listener_wait"
    ]  # a listener has the broker's number, and comes first
    assert desk.rehearsal.counts.describe()["caps"] == [["max.connections", 1, True, 1]]


def test_connections_that_are_open_are_in_the_observed_world_from_its_beginning():
    desk = Desk()
    for number in (1, 2, 3):
        desk.connect(number)
    desk.observe(kafka_connections_max_per_ip="2")
    assert desk.members() == [1, 2, 3] and desk.in_use("ip:10.0.0.1") == 3
    desk.close(1)
    desk.connect(4)
    assert desk.members() == [2, 3]
    desk.close(2)
    desk.connect(5)
    assert desk.members() == [3, 5]


def test_at_the_end_every_observed_token_is_given_back_and_a_new_beginning_has_everybody():
    desk = Desk(kafka_connections_max_per_ip="1")
    for number in (1, 2):
        desk.connect(number)
    desk.observe()
    assert desk.members() == [] and desk.in_use("ip:10.0.0.1") == 0
    assert [each.pools for each in desk.open.values()] == [("listener:A", "broker", "ip:10.0.0.1")] * 2
    desk.observe(kafka_connections_max_per_ip="1")
    assert desk.members() == [1, 2]


def test_another_value_counts_anew_and_keeps_who_is_in():
    desk = Desk(kafka_connections_max_per_ip="1")
    for number in (1, 2):
        desk.connect(number)
    desk.observe(kafka_connections_max_per_ip="2")
    assert desk.rehearsal.counts.describe()["caps"] == []
    desk.connect(3)
    assert desk.members() == [1, 3]


def test_the_inter_broker_listener_is_in_the_brokers_pool_in_any_case():
    desk = Desk(max__connections="1", listener__name__a__max__connections="9")
    for number in (1, 2):
        desk.connect(number, forced=True)
    assert desk.members() == [1, 2] and desk.in_use("broker") == 2


def test_a_decision_that_takes_another_shard_follows_the_opening():
    desk = Desk(2, kafka_connections_max_per_ip="1")
    desk.connect(1, AWAY)
    assert desk.members() == []
    asked = desk.says()
    assert [item[:2] for item in asked] == [("borrow", f"{OBSERVED}ip:{AWAY}")]
    desk.hears(("grant", f"{OBSERVED}ip:{AWAY}", 1, False, 1))
    assert desk.members() == [1]
    assert [(row["conn"], row.get("reason")) for row in desk.journal] == [(1, None)]
    desk.close(1)
    assert desk.says() == [("give", f"{OBSERVED}ip:{AWAY}", 1)]


@pytest.mark.parametrize("granted", [True, False])
def test_one_that_closes_before_its_decision_gives_back_what_it_is_granted(granted):
    desk = Desk(2, kafka_connections_max_per_ip="1")
    desk.connect(1, AWAY)
    desk.says()
    desk.close(1)
    pool = f"{OBSERVED}ip:{AWAY}"
    if granted:
        assert desk.hears(("grant", pool, 1, False, 1)) == [("give", pool, 1)]
        assert [row["reason"] for row in desk.journal] == ["closed"]
    else:
        desk.hears(("refuse", pool, 1, 1, PER_IP, 1, False, None))
        assert [row["reason"] for row in desk.journal] == ["ip_cap"]
    assert desk.in_use(f"ip:{AWAY}") == 0


def test_a_home_that_does_not_answer_leaves_the_decision_open():
    desk = Desk(2, kafka_connections_max_per_ip="1")
    desk.connect(1, AWAY)
    desk.says()
    for now_s in (1.0, 2.5):
        desk.tokens.tick(now_s)
    desk.says()
    assert [row["reason"] for row in desk.journal] == ["shard_unavailable"]
    counts = desk.rehearsal.counts.describe()
    assert (counts["caps"], counts["undecided"]) == ([], 1)


def test_at_the_end_nobody_waits_for_an_observed_token():
    desk = Desk(2, kafka_connections_max_per_ip="1")
    desk.connect(1, AWAY)
    desk.says()
    desk.observe()
    assert desk.tokens.snapshot().in_flight == {}
    assert [row["reason"] for row in desk.journal] == ["ended"]
    desk.hears(("grant", f"{OBSERVED}ip:{AWAY}", 1, False, 1))
    assert desk.members() == [] and desk.in_use(f"ip:{AWAY}") == 0


def test_connections_beyond_an_observed_rate_of_their_address_are_out_and_ask_for_no_token():
    """A quota of 1/s with Kafka's windows: eleven seconds' worth passes at once, less the one that violates."""
    desk = Desk(kafka_connections_max_per_ip="20")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(15):
        desk.connect(number)
    within = desk.in_use("ip:10.0.0.1")
    assert within == 10 and len(desk.open) == 15
    assert [name for name, _ in desk.counted] == ["observed_ip_rate"] * 5
    assert {row["reason"] for row in desk.journal if row.get("reason")} == {"ip_rate"}
    desk.now_ms += 30_000
    desk.connect(15)
    assert desk.in_use("ip:10.0.0.1") == within + 1


def test_an_observed_rate_of_a_listener_delays_nobody_and_counts_those_it_would_have():
    desk = Desk(listener__name__a__max__connection__creation__rate="1", kafka_connections_max_per_ip="99")
    for number in range(13):
        desk.connect(number)
    assert desk.counted.count(("observed_rate_wait", "A")) == 3
    assert desk.members() == list(range(13)), "those that would have waited are in"
    assert desk.rehearsal.counts.describe()["caps"] == [["listener.name.a.max.connection.creation.rate", 1.0, True, 3]]


@pytest.mark.parametrize("of_listener", [True, False])
def test_where_the_rates_of_listeners_alone_are_observed_their_home_is_asked_once_a_pass(of_listener):
    name = "listener__name__a__max__connection__creation__rate" if of_listener else "max__connection__creation__rate"
    desk = Desk(**{name: "1"})
    for number in range(13):
        desk.connect(number)
    assert desk.counted == [] and desk.noted == [], "nothing is decided before the end of the pass"
    desk.rates.flush()
    assert desk.counted == [("observed_rate_wait", "A")] * 3
    assert sum(run.arrivals for _, run in desk.noted) == 13 and desk.noted[0][1].arrivals == 10
    assert desk.rehearsal.counts.describe()["caps"] == [[name.replace("__", "."), 1.0, True, 3]]
    assert len(desk.open) == 13 and desk.journal == []


def desk_that_asks_another_shard(connections: int) -> Desk:
    """A rate of the broker is observed; so many connections have come, and its home, another shard, was asked about them."""
    shards = next(shards for shards in range(2, 99) if home_of("rate:broker", shards) != 0)
    desk = Desk(shards, max__connection__creation__rate="1")
    for number in range(connections):
        desk.connect(number)
    desk.rates.flush()
    return desk


def test_the_home_of_an_observed_rate_of_listeners_may_be_another_shard():
    desk = desk_that_asks_another_shard(4)
    ((asks, answer),) = desk.asked
    assert asks == [[LISTENER, "A", 4]]
    answer.resolve([[[0, 0, 1], [0, 700, 3]]])
    assert desk.counted == [("observed_rate_wait", "A")] * 3


def test_the_answer_of_a_rate_of_listeners_that_is_observed_no_more_counts_nothing():
    desk = desk_that_asks_another_shard(1)
    desk.observe()
    desk.asked[0][1].resolve([[[0, 700, 1]]])
    assert desk.counted == []


def test_a_home_of_a_rate_of_listeners_that_is_lost_leaves_it_open():
    desk = desk_that_asks_another_shard(3)
    desk.asked[0][1].fail(PeerLost("gone"))
    assert desk.counted == [("observed_shard_unavailable", "A")] * 3
    assert desk.rehearsal.counts.describe()["undecided"] == 3


def test_an_observed_rate_of_the_core_refuses_beyond_a_tenth_of_a_second():
    desk = Desk(kafka_connection_rate_limit="20")
    for number in range(25):
        desk.connect(number)
    names = [name for name, _ in desk.counted]
    assert names.count("observed_rate_wait") == 2 and names.count("observed_core_rate") == 3


def test_a_home_that_is_lost_leaves_it_open():
    desk = Desk(2)
    ip = next(f"10.0.0.{n}" for n in range(1, 200) if home_of(f"rate:ip:10.0.0.{n}", 2) == 1)
    desk.observe_rate_of(ip, 1)
    for number in range(3):
        desk.connect(number, ip)
    desk.rates.flush()
    ((asks, answer),) = desk.asked
    assert asks == [[ADDRESS, ip, 3]] and desk.counted == []
    answer.fail(PeerLost("gone"))
    assert [name for name, _ in desk.counted] == ["observed_shard_unavailable"] * 3
    assert desk.rehearsal.counts.describe()["undecided"] == 3


def test_a_rate_that_is_in_force_already_is_not_asked():
    desk = Desk(1)
    quota = key_of_entity((("ip", None),))
    desk.image.apply(desk.image.version + 1, [("quota", quota, {"connection_creation_rate": 1})])
    desk.observe_rate_of(None, 1)
    assert not desk.rehearsal.rates.is_on


def test_a_closed_connection_whose_rate_is_told_late_is_in_no_pool():
    desk = Desk(2, kafka_connections_max_per_ip="5")
    ip = next(f"10.0.0.{n}" for n in range(1, 200) if home_of(f"rate:ip:10.0.0.{n}", 2) == 1)
    desk.observe_rate_of(ip, 1)
    desk.connect(1, ip)
    desk.rates.flush()
    desk.close(1)
    desk.asked[0][1].resolve([[[0, 0, 1]]])
    desk.says()
    assert desk.in_use(f"ip:{ip}") == 0
