"""The observed world of a shard: who is in it, what is counted and journaled, and that the real one does not notice."""

from __future__ import annotations

from typing import Any

import pytest
from observed_desk import Desk

from shards.limits.caps import OBSERVED
from shards.ownership import home_of

PER_IP = "kafka_connections_max_per_ip"
AWAY = next(f"10.0.0.{n}" for n in range(1, 200) if home_of(f"{OBSERVED}ip:10.0.0.{n}", 2) == 1)


def test_while_nothing_is_observed_nobody_stands_between_admission_and_serving():
    def serve(*anything: Any) -> None: ...

    assert Desk().rehearsal.opener("A", ("listener:A", "broker"), serve, forced=False) is serve


def test_a_connection_that_would_be_refused_is_open_and_counted_and_holds_no_observed_token():
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


def test_another_value_counts_anew_and_keeps_the_members():
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
def test_a_connection_that_closes_before_its_decision_gives_back_what_it_is_granted(granted):
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


@pytest.mark.parametrize("ends", [Desk.observe, Desk.end_process])
def test_at_the_end_no_connection_waits_for_an_observed_token(ends):
    desk = Desk(2, kafka_connections_max_per_ip="1")
    desk.connect(1, AWAY)
    desk.says()
    ends(desk)
    assert desk.tokens.snapshot().in_flight == {}
    assert [row["reason"] for row in desk.journal] == ["ended"]
    desk.hears(("grant", f"{OBSERVED}ip:{AWAY}", 1, False, 1))
    assert desk.members() == [] and desk.in_use(f"ip:{AWAY}") == 0
