"""The reference gate: each of its rules by example, and what never may happen under any order of events.

That its answers are Kafka's is tests/oracle's matter; here are the reasons, Redpanda's settings, and the invariants.
"""

from collections import Counter
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.connection_limits import ConnectionLimits
from shards.limits.replay_gate import IncomingConnection, ReplayGate
from shards.settings.config_types import text_of
from shards.settings.ranges import INT_MAX

LISTENERS = ("EXTERNAL", "INTERNAL")


class Broker:
    """A gate with two listeners, driven by verbs, at a time that `at` moves."""

    def __init__(self, *, inter_broker: str | None = "INTERNAL", ssl: Collection[str] = (), **settings: object) -> None:
        self.limits = ConnectionLimits()
        for name, value in settings.items():
            self.limits = self.limits.with_change(name.replace("__", "."), text_of(value), LISTENERS)
        self.gate = ReplayGate(self.limits, LISTENERS, inter_broker=inter_broker, ssl=ssl)
        self.now_ms = 0

    def at(self, now_ms: int) -> "Broker":
        self.now_ms = now_ms
        self.gate.advance(now_ms=now_ms)
        return self

    def set(self, name: str, value: object) -> None:
        self.limits = self.limits.with_change(name, None if value is None else text_of(value), LISTENERS)
        self.gate.configure(self.limits, now_ms=self.now_ms)

    def connect(self, ip: str = "10.0.0.1", listener: str = "EXTERNAL") -> IncomingConnection:
        connection = IncomingConnection(self.gate.acceptors[listener], ip)
        self.gate.connect(connection, now_ms=self.now_ms)
        return connection

    def connects(self, count: int, ip: str = "10.0.0.1", listener: str = "EXTERNAL") -> list[IncomingConnection]:
        return [self.connect(ip, listener) for _ in range(count)]

    def close(self, connection: IncomingConnection) -> None:
        self.gate.close(connection, now_ms=self.now_ms)


def answers(*connections: IncomingConnection) -> list[tuple[str | None, int, str | None]]:
    return [(connection.outcome, connection.at_ms, connection.reason) for connection in connections]


def test_over_its_addresss_cap_a_connection_is_refused_and_takes_no_place() -> None:
    broker = Broker(max__connections__per__ip=2)
    first, second, third = broker.connects(3)
    assert answers(first, second, third) == [("admitted", 0, None), ("admitted", 0, None), ("refused", 0, "ip_cap")]
    broker.at(5).close(first)
    assert answers(broker.connect()) == [("admitted", 5, None)]


def test_over_max_connections_a_connection_waits_for_a_slot_and_those_behind_it_too() -> None:
    broker = Broker(max__connections=1)
    first, second, third = broker.connects(3)
    assert [second.outcome, third.outcome] == [None, None]
    broker.at(7).close(first)
    assert answers(second) == [("admitted", 7, None)]
    broker.gate.finish()
    assert answers(third) == [("waiting", 0, "broker_cap")]


def test_a_listeners_own_cap_is_named() -> None:
    broker = Broker(listener__name__external__max__connections=1)
    _, waiting = broker.connects(2)
    assert broker.connect(listener="INTERNAL").outcome == "admitted"
    broker.gate.finish()
    assert answers(waiting) == [("waiting", 0, "listener_cap")]


def test_the_connection_that_waits_longest_for_a_slot_gets_it() -> None:
    broker = Broker(inter_broker=None, max__connections=1)
    first = broker.connect()
    early = broker.at(1).connect(listener="INTERNAL")
    late = broker.at(2).connect(listener="EXTERNAL")
    broker.at(3).close(first)
    assert [early.outcome, late.outcome] == ["admitted", None]


def test_a_raised_cap_wakes_at_once_and_a_lowered_one_closes_nobody() -> None:
    broker = Broker(max__connections=2)
    opened = broker.connects(3)
    broker.at(10).set("max.connections", 3)
    assert answers(opened[2]) == [("admitted", 10, None)]
    broker.set("max.connections", 1)
    assert broker.gate.count == 3
    late = broker.connect()
    for connection in opened[:2]:
        broker.close(connection)
    assert late.outcome is None
    broker.close(opened[2])
    assert late.outcome == "admitted"


def test_the_inter_broker_listener_gets_in_over_the_cap_by_closing_the_oldest_of_another() -> None:
    broker = Broker(max__connections=3, listener__name__internal__max__connections=10)
    oldest, second, third = broker.connects(3)
    broker.close(second)
    fourth = broker.connect()
    inner = broker.connects(3, listener="INTERNAL")
    assert [connection.open for connection in (oldest, third, fourth, *inner)] == [False] * 3 + [True] * 3
    assert broker.connect(listener="INTERNAL").open  # no connection is left to be closed
    assert broker.gate.count == 4


def test_alone_the_inter_broker_listener_is_like_any_other() -> None:
    limits = ConnectionLimits().with_change("max.connections", "1", ["ONLY"])
    gate = ReplayGate(limits, ["ONLY"], inter_broker="ONLY")
    connections = [IncomingConnection(gate.acceptors["ONLY"], "10.0.0.1") for _ in range(2)]
    for connection in connections:
        gate.connect(connection, now_ms=0)
    assert [connection.outcome for connection in connections] == ["admitted", None]


def test_an_unknown_inter_broker_listener_is_refused() -> None:
    with pytest.raises(ValueError, match="ELSEWHERE is not one of EXTERNAL, INTERNAL"):
        Broker(inter_broker="ELSEWHERE")


def test_a_rate_delays_by_what_it_takes_a_window_at_most_and_then_lets_in() -> None:
    broker = Broker(max__connection__creation__rate=1)
    assert [c.outcome for c in broker.connects(10)] == ["admitted"] * 10
    delayed, behind = broker.connects(2)
    broker.at(5000)
    assert answers(delayed, behind) == [("admitted", 1000, None), ("admitted", 2000, None)]


def test_a_rate_changed_live_leaves_a_delay_in_progress_alone() -> None:
    broker = Broker(max__connection__creation__rate=1)
    delayed = broker.connects(11)[-1]
    broker.at(10).set("max.connection.creation.rate", None)
    behind = broker.connect()
    assert delayed.outcome is behind.outcome is None
    broker.at(1000)
    assert answers(delayed, behind) == [("admitted", 1000, None)] * 2


def test_over_its_rate_an_address_is_refused_at_once_and_no_rate_remembers_it() -> None:
    broker = Broker(listener__name__external__max__connection__creation__rate=1)
    broker.gate.ip_quotas.update("10.0.0.1", 0)
    assert {c.reason for c in broker.connects(20)} == {"ip_rate"}
    assert [c.outcome for c in broker.connects(10, ip="10.0.0.2")] == ["admitted"] * 10


def test_an_addresss_own_quota_comes_before_the_default_one_and_int_max_is_none() -> None:
    broker = Broker()
    broker.gate.ip_quotas.update(None, 0)
    broker.gate.ip_quotas.update("10.0.0.1", INT_MAX)
    assert broker.connect("10.0.0.1").outcome == "admitted"
    assert broker.connect("10.0.0.2").reason == "ip_rate"
    broker.gate.ip_quotas.update("10.0.0.1", None)
    assert broker.connect("10.0.0.1").reason == "ip_rate"
    broker.gate.ip_quotas.update(None, None)
    assert broker.connect("10.0.0.2").outcome == "admitted"


def test_while_an_address_has_no_quota_nothing_is_recorded_for_it() -> None:
    broker = Broker()
    broker.gate.ip_quotas.update("10.0.0.1", INT_MAX)
    broker.connects(100)
    broker.gate.ip_quotas.update("10.0.0.1", 1)
    assert [c.reason for c in broker.connects(11)] == [None] * 10 + ["ip_rate"]


def test_closed_by_its_client_while_it_waits_a_connection_gets_in_and_is_gone() -> None:
    broker = Broker(max__connections=1)
    first, waiting, behind = broker.connects(3)
    broker.close(waiting)
    broker.at(9).close(first)
    assert answers(waiting, behind) == [("admitted", 9, None)] * 2
    assert [waiting.open, behind.open] == [False, True]


def test_redpandas_caps_refuse_at_once_and_the_tighter_one_wins() -> None:
    broker = Broker(kafka_connections_max=2, max__connections=3, kafka_connections_max_per_ip=5)
    assert answers(*broker.connects(3))[2] == ("refused", 0, "broker_cap")
    broker.set("max.connections", 1)
    broker.set("kafka_connections_max", 3)
    assert broker.connect().outcome is None


def test_listeners_with_tls_share_a_cap_that_refuses_and_is_asked_after_the_brokers() -> None:
    broker = Broker(turnstile__max__ssl__connections=2, kafka_connections_max=4, ssl=("EXTERNAL",))
    assert answers(*broker.connects(3))[2] == ("refused", 0, "ssl_cap")
    first, second, third = broker.connects(3, listener="INTERNAL")
    assert [first.open, second.open] == [True, True] and third.reason == "broker_cap"
    assert broker.connect().reason == "broker_cap"
    broker.set("kafka_connections_max", None)
    broker.set("turnstile.max.ssl.connections", 3)
    assert [each.reason for each in broker.connects(2)] == [None, "ssl_cap"]


def test_the_cap_of_the_cluster_is_asked_last_as_if_there_were_no_other_broker() -> None:
    broker = Broker(turnstile__cluster__max__connections=3, kafka_connections_max_per_ip=2)
    assert [each.reason for each in broker.connects(3)] == [None, None, "ip_cap"]
    assert broker.connect("10.0.0.2").open
    assert broker.connect("10.0.0.2", listener="INTERNAL").reason == "cluster_cap"
    assert broker.connect().reason == "ip_cap"


def test_the_rate_of_the_cluster_refuses_before_all_others_and_records_what_these_refuse() -> None:
    rates = {"max__connection__creation__rate": 1, "turnstile__cluster__max__connection__creation__rate": 1}
    broker = Broker(**rates, kafka_connections_max_per_ip=2)
    reasons = [each.reason for each in broker.connects(12)]
    assert reasons == [None, None, *["ip_cap"] * 8, "cluster_rate", "cluster_rate"], (
        "and none of these waits for the broker's"
    )
    assert broker.connect("10.0.0.2", listener="INTERNAL").reason == "cluster_rate"
    broker.set("turnstile.cluster.max.connection.creation.rate", 2)
    assert broker.connect("10.0.0.2", listener="INTERNAL").open
    broker.set("turnstile.cluster.max.connection.creation.rate", None)
    assert broker.at(1).connect("10.0.0.2", listener="INTERNAL").open


def test_a_connection_waits_for_its_listeners_slot_before_the_broker_refuses_it() -> None:
    broker = Broker(kafka_connections_max=5, **{"listener__name__external__max__connections": 2})
    outside, inside = broker.connects(2), broker.connects(3, listener="INTERNAL")
    (waiting,) = broker.connects(1)
    assert answers(waiting) == [(None, 0, None)], "the broker is full as well, but it is not asked yet"
    assert answers(*broker.connects(1, listener="INTERNAL")) == [("refused", 0, "broker_cap")]
    broker.at(7).close(inside[0])
    assert answers(*broker.connects(1, listener="INTERNAL")) == [("admitted", 7, None)]
    broker.at(9).close(outside[0])
    assert answers(waiting) == [("admitted", 9, None)]


def test_redpandas_rate_waits_100_ms_for_a_token_and_then_refuses() -> None:
    broker = Broker(kafka_connection_rate_limit=10, kafka_connection_rate_limit_overrides="10.0.0.9:1")
    assert [c.outcome for c in broker.connects(10)] == ["admitted"] * 10
    waiting = broker.connect()
    own = [IncomingConnection(broker.gate.acceptors["INTERNAL"], "10.0.0.9") for _ in range(3)]
    for connection in own:
        broker.gate.connect(connection, now_ms=0)
    broker.at(300)
    assert answers(waiting) == [("admitted", 100, None)]
    assert answers(*own) == [("admitted", 0, None), ("refused", 100, "core_rate"), ("refused", 200, "core_rate")]
    broker.set("kafka_connection_rate_limit", 1000)
    assert [c.outcome for c in broker.connects(2)] == ["admitted"] * 2


def test_with_recheck_an_address_is_looked_at_again_after_its_delay() -> None:
    broker = Broker(turnstile__ip__rate__recheck=True)
    broker.gate.ip_quotas.update("10.0.0.1", 1)
    broker.connects(10)
    held = broker.connect()
    broker.gate.ip_quotas.update("10.0.0.2", 0)
    hopeless = broker.connect("10.0.0.2")
    assert held.outcome is hopeless.outcome is None
    assert broker.connect("10.0.0.3").outcome == "admitted"  # the held connection delays no other
    broker.at(999)
    assert held.outcome is None
    broker.at(20_000)
    assert answers(hopeless, held) == [("refused", 1000, "ip_rate"), ("refused", 1000, "ip_rate")]
    broker.connects(10)
    held = broker.connect()
    broker.gate.ip_quotas.update("10.0.0.1", None)
    broker.at(30_000)
    assert answers(held) == [("admitted", 21_000, None)]


def test_with_recheck_and_no_slot_left_the_connection_is_refused() -> None:
    broker = Broker(turnstile__ip__rate__recheck=True, max__connections=1)
    broker.gate.ip_quotas.update("10.0.0.1", 0)
    held = broker.connect()
    broker.gate.ip_quotas.update("10.0.0.1", None)
    broker.connect()
    broker.at(1000)
    assert answers(held) == [("refused", 1000, "broker_cap")]


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("connect"), st.integers(0, 3), st.sampled_from(["EXTERNAL", "INTERNAL"])),
        st.tuples(st.just("close"), st.integers(0, 60), st.none()),
        st.tuples(st.just("sleep"), st.sampled_from([0, 1, 30, 400, 1000, 12_000]), st.none()),
        st.tuples(st.just("max.connections"), st.one_of(st.none(), st.integers(1, 6)), st.none()),
        st.tuples(st.just("max.connections.per.ip"), st.one_of(st.none(), st.integers(1, 3)), st.none()),
        st.tuples(st.just("max.connection.creation.rate"), st.one_of(st.none(), st.integers(1, 3)), st.none()),
        st.tuples(st.just("ip_rate"), st.one_of(st.none(), st.integers(0, 2)), st.none()),
    ),
    max_size=80,
)


@given(EVENTS)
def test_whatever_happens_counts_are_right_and_no_cap_is_passed(
    events: list[tuple[str, int | None, str | None]],
) -> None:
    broker = Broker()
    made: list[IncomingConnection] = []
    for what, value, listener in events:
        before = broker.gate.count
        if what == "connect":
            made.append(broker.connect(f"10.0.0.{value}", listener or ""))
        elif what == "close" and made:
            broker.close(made[(value or 0) % len(made)])
        elif what == "sleep":
            broker.at(broker.now_ms + (value or 0))
        elif what == "ip_rate":
            broker.gate.ip_quotas.update(None, value)
        elif what != "close":
            broker.set(what, value)
        check(broker, made, before)
    broker.gate.finish()
    assert all(connection.outcome is not None for connection in made)


def check(broker: Broker, made: list[IncomingConnection], before: int) -> None:
    """nothing_else_closes, the caps, and that an acceptor stands still only while something holds it up."""
    gate, limits = broker.gate, broker.limits
    opened = [connection for connection in made if connection.open]
    assert gate.count == len(opened)
    assert gate.count_of == Counter(connection.ip for connection in opened)
    for acceptor in gate.acceptors.values():
        assert acceptor.count == sum(connection.acceptor is acceptor for connection in opened)
        waits = {entry[3] for entry in gate.due} | gate._parked.keys()
        assert (acceptor.busy is None and not acceptor.behind) or acceptor.busy in waits
    cap = limits.waiting.cap
    if cap is not None and gate.count > before:
        external = [connection for connection in opened if not connection.acceptor.exempt]
        assert gate.count <= cap or not external
    for connection in gate._parked:
        assert gate._full(connection.acceptor)
