"""What a scenario's events do (its invariants), and which of them make no sense."""

import json
import random
from typing import Any

import pytest

from shards.limits.rate import Rate
from turnstile.replay.stream import ReplayError, replay


def run(*events: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [json.dumps({"at": 0, **event}) for event in events]
    return [json.loads(answer) for answer in replay(lines)]


def refused(*events: dict[str, Any]) -> list[str]:
    sentences: list[str] = []
    list(replay([json.dumps({"at": 0, **event}) for event in events], lambda line, why: sentences.append(why)))
    return sentences


def connect(name: object = "a", ip: str = "10.0.0.1", **fields: Any) -> dict[str, Any]:
    return {"do": "connect", "id": name, "ip": ip, **fields}


def change(name: str, value: object, **fields: Any) -> dict[str, Any]:
    return {"do": "set", "name": name, "value": value, **fields}


def quota(entity: dict[str, str | None], key: str, value: float | None, **fields: Any) -> dict[str, Any]:
    return {"do": "quota", "entity": entity, "key": key, "value": value, **fields}


def record(kind: str, amount: float, **fields: Any) -> dict[str, Any]:
    return {"do": "record", "quota": kind, "amount": amount, "user": "alice", "client_id": "app", **fields}


def test_what_is_due_at_an_events_time_happens_before_it() -> None:
    rate = change("max.connection.creation.rate", 1)
    burst = [connect(n) for n in range(11)]
    answers = run(rate, *burst, change("max.connections", 10, at=1000))
    assert answers[10] == {"id": 10, "outcome": "admitted", "at": 1000, "reason": None}


def test_a_change_a_broker_refuses_is_not_made_and_told() -> None:
    sentences = refused(change("max.connections", 0), quota({"user": "alice"}, "producer_byte_rate", 0))
    assert sentences == [
        "max.connections cannot be '0': it must be at least 1 while the cluster runs.",
        "Quota producer_byte_rate must be greater than 0",
    ]
    assert (
        run(change("max.connections.per.ip", 1), change("max.connections.per.ip", "x"), connect(1), connect(2))[1][
            "reason"
        ]
        == "ip_cap"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 1.5),
        ("consumer_byte_rate", -1),
        ("request_percentage", 0),
        ("controller_mutation_rate", -0.1),
        ("producer_byte_rate", 1e300),
    ],
)
def test_a_quota_that_cannot_be_is_refused(key: str, value: float) -> None:
    assert len(refused(quota({"user": "alice"}, key, value))) == 1


@pytest.mark.parametrize("value", [-1, 0, 1.5, 2**31])
def test_an_addresss_rate_that_cannot_be_is_refused(value: float) -> None:
    assert len(refused(quota({"ip": None}, "connection_creation_rate", value))) == 1


def test_windows_are_set_before_the_first_connect_or_record() -> None:
    assert refused(change("quota.window.num", 2), connect()) == []
    assert "when a broker starts" in refused(connect(), change("quota.window.num", 2))[0]
    assert "when a broker starts" in refused(record("produce", 1), change("controller.quota.window.num", 2))[0]


def test_settings_and_quotas_before_setup_hold_after_it() -> None:
    answers = run(
        change("listener.name.b.max.connections", 1),
        quota({"ip": "10.0.0.9"}, "connection_creation_rate", 1),
        {"do": "setup", "listeners": ["A", "B"]},
        connect(1, listener="B"),
        connect(2, listener="B"),
        *(connect(n, ip="::ffff:10.0.0.9", listener="A") for n in range(3, 14)),
    )
    assert [answer["reason"] for answer in answers] == [None, "listener_cap", *[None] * 10, "ip_rate"]


def test_without_setup_there_is_one_listener_that_need_not_be_named() -> None:
    assert [answer["outcome"] for answer in run(connect(1), connect(2, listener="PLAINTEXT"))] == ["admitted"] * 2


def test_an_id_may_be_used_again_once_its_connection_is_gone() -> None:
    close = {"do": "close", "id": "a"}
    answers = run(change("max.connections.per.ip", 1), connect(), connect("b"), connect("b"), close, connect())
    assert [answer["outcome"] for answer in answers] == ["admitted", "refused", "refused", "admitted"]


def test_closing_what_was_refused_or_closed_by_the_broker_does_nothing() -> None:
    answers = run(
        {"do": "setup", "listeners": ["OUT", "IN"], "inter_broker": "IN"},
        change("max.connections", 1),
        change("max.connections.per.ip", 1),
        connect(1, listener="OUT"),
        connect(2, ip="10.0.0.2", listener="IN"),
        {"do": "close", "id": 1},
        connect(3, ip="10.0.0.3", listener="OUT"),
        {"do": "close", "id": 2},
        connect(4, ip="10.0.0.3", listener="OUT", at=9),
    )
    assert [answer["outcome"] for answer in answers] == ["admitted", "admitted", "admitted", "waiting"]


def test_a_setup_says_which_listeners_have_tls() -> None:
    answers = run(
        {"do": "setup", "listeners": ["OUT", "IN"], "ssl": ["OUT"]},
        change("turnstile.max.ssl.connections", 1),
        *(connect(n, listener=listener) for n, listener in enumerate(("OUT", "OUT", "IN"))),
    )
    assert [answer["reason"] for answer in answers] == [None, "ssl_cap", None]
    with pytest.raises(ReplayError, match="those listeners that have TLS"):
        run({"do": "setup", "listeners": ["OUT"], "ssl": ["IN"]})


def test_the_rate_of_a_user_is_asked_before_its_cap_and_a_refused_login_takes_no_place() -> None:
    of_users = [connect(n, user="alice", ip=f"10.0.0.{n + 1}") for n in range(13)]
    answers = run(
        change("turnstile.max.connections.per.user", 2),
        change("turnstile.max.connection.creation.rate.per.user", 1),
        change("kafka_connections_max", 3),
        *of_users,
        connect("bob", user="bob"),
        connect("full"),
        {"do": "close", "id": 0},
        {"do": "close", "id": "bob"},
        connect("none", at=0),
        {"do": "close", "id": 1, "at": 20_000},
        connect("later", user="alice", at=20_000),
    )
    reasons = [answer["reason"] for answer in answers]
    assert reasons == [None] * 2 + ["user_cap"] * 8 + ["user_rate"] * 3 + [None, "broker_cap", None, None]


def test_a_client_that_closed_before_it_was_admitted_has_not_logged_in() -> None:
    answers = run(
        change("max.connections", 1),
        change("turnstile.max.connections.per.user", 1),
        connect("first"),
        connect("gone", user="alice"),
        {"do": "close", "id": "gone"},
        {"do": "close", "id": "first"},
        connect("second", user="alice"),
    )
    assert [answer["outcome"] for answer in answers] == ["admitted"] * 3
    with pytest.raises(ReplayError, match='"user" is 5'):
        run(connect(user=5))


def test_a_mutation_is_strict_unless_it_says_otherwise_and_names_may_be_absent() -> None:
    small = quota({"user": None}, "controller_mutation_rate", 1)
    spent = record("mutation", 12)
    assert run(small, spent, record("mutation", 1))[1] == {"outcome": "refused", "throttle_ms": 1000}
    assert run(small, spent, record("mutation", 1, strict=False))[1] == {"outcome": "accepted", "throttle_ms": 2000}
    nobody = {"do": "record", "quota": "produce", "amount": 10**9}
    assert run(quota({"user": None}, "producer_byte_rate", 1), nobody) == [{"outcome": "accepted", "throttle_ms": 0}]


def test_unknown_fields_are_ignored() -> None:
    assert run({**connect(), "personality": "curious"})[0]["outcome"] == "admitted"


def test_fractions_of_a_handlers_millisecond_count() -> None:
    answers = run(quota({"user": "alice"}, "request_percentage", 1), record("request", 100.5), record("request", 0.5))
    assert [answer["throttle_ms"] for answer in answers] == [50, 100]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"do": "dance"}, "\"do\" is 'dance'"),
        ({}, '"do" is None'),
        ({"do": ["connect"]}, '"do" is'),
        ({"do": "connect", "at": -1, "id": "x", "ip": "10.0.0.1"}, '"at" is -1'),
        ({"do": "connect", "at": "1", "id": "x", "ip": "10.0.0.1"}, "whole number of milliseconds"),
        ({"do": "connect", "at": 1.5, "id": "x", "ip": "10.0.0.1"}, "whole number of milliseconds"),
        ({"do": "connect", "at": None, "id": "x", "ip": "10.0.0.1"}, "whole number of milliseconds"),
        (connect("x", ip="10.0.0.300"), "'10.0.0.300' is not an IP address"),
        ({"do": "connect", "id": "x"}, '"ip" is None'),
        ({"do": "connect", "ip": "10.0.0.1"}, '"id" is None'),
        (connect(True), '"id" is True'),
        (connect("open"), "connection 'open' is already there"),
        (connect("x", listener="ELSEWHERE"), "\"listener\" is 'ELSEWHERE'; it must be one of PLAINTEXT"),
        ({"do": "close", "id": "unknown"}, "there is no connection 'unknown' to close"),
        ({"do": "close", "id": []}, "there is no connection"),
        ({"do": "setup", "listeners": ["A"]}, "setup comes once, before the first connect"),
        (change("max.conections", 1), "max.conections is not a setting"),
        ({"do": "set"}, '"name" is None'),
        (quota({"ip": "10.0.0.1"}, "producer_byte_rate", 1), "Invalid configuration key producer_byte_rate"),
        (quota({"user": "alice"}, "connection_creation_rate", 1), "Invalid configuration key connection_creation_rate"),
        (quota({"ip": "10.0.0.1", "user": "alice"}, "producer_byte_rate", 1), "Invalid quota entity combination"),
        (quota({"ip": "nowhere"}, "connection_creation_rate", 1), "nowhere is not a valid IP"),
        (quota({}, "producer_byte_rate", 1), "Invalid empty client quota entity"),
        ({"do": "quota", "entity": "alice", "key": "producer_byte_rate"}, '"entity" is'),
        ({"do": "quota", "entity": {"user": 5}, "key": "producer_byte_rate"}, '"entity" is'),
        ({"do": "quota", "entity": {"user": "a"}, "key": "producer_byte_rate", "value": "5"}, '"value" is'),
        (record("cache", 1), "\"quota\" is 'cache'"),
        (record("produce", -1), '"amount" is -1'),
        (record("produce", 10**400), '"amount" is'),
        ({"do": "record", "quota": "produce"}, '"amount" is None'),
        (record("produce", 1, user=5), "must be strings"),
        (record("mutation", 1, strict="no"), "\"strict\" is 'no'"),
    ],
)
def test_what_makes_no_sense_ends_the_run_with_its_line_and_a_sentence(event: dict[str, Any], why: str) -> None:
    with pytest.raises(ReplayError) as error:
        run(connect("open"), event)
    assert error.value.line == 2
    assert why in error.value.why


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"listeners": []}, "at least one listener"),
        ({"listeners": "A"}, "it must be a list of names"),
        ({"listeners": ["A", "a"]}, "each one once"),
        ({"listeners": ["A"], "inter_broker": "B"}, "none of the listeners"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused(event: dict[str, Any], why: str) -> None:
    with pytest.raises(ReplayError, match=why):
        run({"do": "setup", **event})


def test_time_must_not_fall() -> None:
    with pytest.raises(ReplayError, match='"at" is 4, after 5 on an earlier line'):
        run(connect(1, at=5), connect(2, at=4))


def test_ipv6_clients_of_a_network_count_as_one_address_from_the_first_connect_on() -> None:
    answers = run(
        change("turnstile.ipv6.prefix.length", 64), change("kafka_connections_max_per_ip", 1),
        quota({"ip": "2001:db8:0:1::5"}, "connection_creation_rate", 1),
        quota({"ip": "2001:db8:0:1::6"}, "connection_creation_rate", 9),
        connect("a", "2001:db8::1"), connect("b", "2001:DB8::2"), connect("c", "2001:db8:0:2::1"),
        *(connect(f"{n}", f"2001:db8:0:1::{n:x}", at=n) for n in range(1, 20)),
    )  # fmt: skip
    outcomes = {answer["id"]: answer["reason"] for answer in answers}
    assert (outcomes["a"], outcomes["b"], outcomes["c"]) == (None, "ip_cap", None)
    assert "ip_rate" in outcomes.values()
    assert refused(connect(), change("turnstile.ipv6.prefix.length", 64)) == [
        "turnstile.ipv6.prefix.length is read when a broker starts; set it before the first connect or record"
    ]


@pytest.mark.parametrize("seed", range(10))
def test_a_rate_of_the_cluster_is_one_window_for_the_listeners_of_all_its_brokers(seed: int) -> None:
    chance = random.Random(seed)
    name = "turnstile.cluster.max.connection.creation.rate"
    events: list[dict[str, Any]] = [{"do": "setup", "listeners": ["OF_0", "OF_1", "OF_2"]}]
    events += [change("max.connections.per.ip", 2), change(name, 3)]
    rate, per_s, expected = Rate(), 3, {}
    for n, at_ms in enumerate(sorted(chance.randrange(60_000) for _ in range(600))):
        if not chance.randrange(60):
            per_s = chance.randrange(1, 20)
            events.append(change(name, per_s, at=at_ms))
        events.append(connect(n, f"10.0.0.{n % 7}", listener=f"OF_{chance.randrange(3)}", at=at_ms))
        expected[n] = bool(rate.charge(1, per_s, now_ms=at_ms))
        if expected[n]:
            rate.record(-1, now_ms=at_ms)
    answers = run(*events)
    assert {each["id"]: each["reason"] == "cluster_rate" for each in answers} == expected
    assert {each["reason"] for each in answers} == {None, "ip_cap", "cluster_rate"}, (
        "what the cap refuses was recorded before"
    )
