"""Observed creation rates of a shard: what is asked, counted and journaled, and who is in the observed world then."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from observed_desk import Desk

from shards.errors import PeerLost
from shards.limits.core_bucket import EXACT
from shards.limits.observed_windows import ADDRESS, BACK, LISTENER, USER
from shards.limits.quota_entities import key_of_entity
from shards.ownership import home_of
from shards.rates.observed_rates import GATHER_MS


def test_connections_beyond_an_observed_rate_of_their_address_are_out_and_ask_for_no_token():
    """A quota of 1/s with Kafka's windows: eleven seconds' worth passes at once, less the one that violates."""
    desk = Desk(kafka_connections_max_per_ip="20")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(15):
        desk.connect(number)
    desk.rates.flush()
    within = desk.in_use("ip:10.0.0.1")
    assert within == 10 and len(desk.open) == 15
    assert [name for name, _ in desk.counted] == ["observed_ip_rate"] * 5
    assert {row["reason"] for row in desk.journal if row.get("reason")} == {"ip_rate"}
    desk.now_ms += 30_000
    desk.connect(15)
    desk.rates.flush()
    assert desk.in_use("ip:10.0.0.1") == within + 1


def test_while_caps_are_observed_too_each_pass_asks():
    desk = Desk(kafka_connections_max_per_ip="20")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(3):
        desk.connect(number)
        desk.rates.flush()
    assert desk.members() == [0, 1, 2]


def test_an_observed_rate_of_a_listener_delays_nobody_and_counts_those_it_would_have():
    desk = Desk(listener__name__a__max__connection__creation__rate="1", kafka_connections_max_per_ip="99")
    for number in range(13):
        desk.connect(number)
    desk.rates.flush()
    assert desk.counted.count(("observed_rate_wait", "A")) == 3
    assert desk.members() == list(range(13)), "those that would have waited are in"
    assert desk.rehearsal.counts.describe()["caps"] == [["listener.name.a.max.connection.creation.rate", 1.0, True, 3]]


def test_connections_that_the_rate_of_their_listener_lets_in_come_into_the_observed_world():
    desk = Desk(max__connection__creation__rate="1", kafka_connections_max_per_ip="2")
    for number in range(3):
        desk.connect(number)
    desk.rates.flush()
    assert desk.members() == [0, 1] and desk.counted == [("observed_ip_cap", "A")]


def test_another_value_holds_for_the_next_question_and_none_asks_no_more():
    desk = Desk(max__connection__creation__rate="1000")
    numbers = itertools.count()

    def connect(connections: int) -> list[tuple[str, int]]:
        """What is noted of so many that come later."""
        desk.noted.clear()
        for _ in range(connections):
            desk.connect(next(numbers))
        for _ in range(3):
            desk.now_ms += GATHER_MS
            desk.rates.flush()
        return [(what, len(names)) for what, names, _ in desk.noted]

    desk.observe_rate_of("10.0.0.2", 1)  # stays
    desk.observe_rate_of("10.0.0.1", 1)
    assert connect(12) == [(LISTENER, 12), (ADDRESS, 10), (ADDRESS, 2), (BACK, 2)]
    desk.observe_rate_of("10.0.0.1", 100)
    assert connect(12) == [(LISTENER, 12), (ADDRESS, 12)]
    desk.observe_rate_of("10.0.0.1", None)
    assert connect(12) == [(LISTENER, 12)]


@pytest.mark.parametrize("of_listener", [True, False])
def test_where_the_rates_of_listeners_are_observed_their_home_is_asked_for_all_of_a_pass(of_listener):
    name = "listener__name__a__max__connection__creation__rate" if of_listener else "max__connection__creation__rate"
    desk = Desk(**{name: "1"})
    for number in range(13):
        desk.connect(number)
    assert desk.counted == [] and desk.noted == [], "nothing is decided before the end of the pass"
    desk.rates.flush()
    assert desk.counted == [("observed_rate_wait", "A")] * 3
    assert [(what, len(names)) for what, names, _ in desk.noted] == [(LISTENER, 10), (LISTENER, 3)]
    assert desk.noted[0][2] == 0 and all(delay_ms for _, _, delay_ms in desk.noted[1:])
    assert desk.rehearsal.counts.describe()["caps"] == [[name.replace("__", "."), 1.0, True, 3]]
    assert len(desk.open) == 13 and desk.journal == []


CLUSTER_RATE = {"turnstile__cluster__max__connection__creation__rate": "1"}


def test_the_rate_of_the_cluster_counts_and_journals_whom_it_would_have_refused():
    desk = Desk(**CLUSTER_RATE)
    for number in range(13):
        desk.connect(number, f"10.0.0.{number}")
    assert desk.counted == [] and len(desk.open) == 13, "nothing is decided before the end of the pass"
    desk.end_pass()
    assert desk.counted == [("observed_cluster_rate", "A")] * 3
    assert [(row["conn"], row["reason"], row["limit_value"]) for row in desk.journal] == [
        (number, "cluster_rate", 1) for number in (10, 11, 12)
    ]
    assert desk.noted == [] == desk.members(), "no other rate is asked, and nobody needs an observed token"


def test_a_connection_that_the_rate_of_the_cluster_would_have_refused_is_asked_about_by_no_other_limit():
    desk = Desk(**CLUSTER_RATE, max__connection__creation__rate="1", kafka_connections_max_per_ip="7")
    desk.observe_rate_of(None, 1)
    for number in range(13):
        desk.connect(number)
    desk.end_pass()
    assert [(what, len(names)) for what, names, _ in desk.noted] == [(LISTENER, 10), (ADDRESS, 10)]
    assert sorted(set(desk.counted)) == [("observed_cluster_rate", "A"), ("observed_ip_cap", "A")]
    assert desk.counted.count(("observed_cluster_rate", "A")) == 3 == desk.counted.count(("observed_ip_cap", "A"))
    assert desk.members() == list(range(7))


@pytest.mark.parametrize(("exact", "refused"), [("false", 7), ("true", 10)])
def test_a_core_counts_as_the_enforced_rate_would(exact: str, refused: int) -> None:
    """300 pass at once; then one waits for each token of the next 100 ms, in whole milliseconds or not."""
    desk = Desk(kafka_connection_rate_limit="300")
    desk.image.apply(desk.image.version + 1, [("setting", f"/{EXACT}", exact)])
    desk.rehearsal.follow()
    for number in range(340):
        desk.connect(number)
    assert [name for name, _ in desk.counted].count("observed_core_rate") == refused


def test_a_core_is_asked_before_the_cluster():
    desk = Desk(**CLUSTER_RATE, kafka_connection_rate_limit="4")
    for number in range(13):
        desk.connect(number)
    desk.end_pass()
    assert desk.counted.count(("observed_core_rate", "A")) == 9 and ("observed_cluster_rate", "A") not in desk.counted


def test_a_connection_that_the_rate_of_the_cluster_lets_in_and_another_would_refuse_stays_recorded_there():
    desk = Desk(**CLUSTER_RATE)
    desk.observe_rate_of("10.0.0.1", 0.1)
    for number in range(9):
        desk.connect(number)
    desk.end_pass()
    desk.now_ms += GATHER_MS
    desk.end_pass()
    assert desk.counted.count(("observed_ip_rate", "A")) == 8
    for number in range(20, 23):
        desk.connect(number, "10.0.0.2")
    desk.now_ms += GATHER_MS
    desk.end_pass()
    assert desk.counted.count(("observed_cluster_rate", "A")) == 2


def test_an_answer_of_a_rate_of_the_cluster_that_is_gone_counts_nothing():
    desk = Desk(**CLUSTER_RATE, kafka_connections_max_per_ip="20")
    for number in range(13):
        desk.connect(number)
    desk.rates.flush()
    assert desk.cluster_rate.busy, "it is asked, and has not answered"
    desk.observe(kafka_connections_max_per_ip="20")
    desk.end_pass()
    assert desk.counted == [] and desk.members() == list(range(13))


def test_the_rates_of_several_addresses_are_asked_together_and_noted_in_one_row():
    desk = Desk()
    desk.observe_rate_of(None, 1)
    ips = [f"10.0.0.{n}" for n in (1, 2, 3, 1)]
    for number, ip in enumerate(ips):
        desk.connect(number, ip)
    desk.rates.flush()
    assert desk.noted == [(ADDRESS, ips, 0)]
    assert (desk.counted, desk.journal) == ([], []), "what is within is told by its home alone"


def test_what_came_up_soon_after_a_question_goes_with_the_next():
    desk = Desk()
    desk.observe_rate_of(None, 1)
    desk.connect(1)
    desk.rates.flush()
    desk.now_ms += 1
    desk.connect(2)
    desk.connect(3)
    desk.rates.flush()
    desk.rates.flush()
    assert len(desk.noted) == 1
    desk.now_ms += GATHER_MS - 1
    desk.rates.flush()
    assert [len(names) for _, names, _ in desk.noted] == [1, 2]


def test_a_reset_forgets_what_came_up_before_it():
    desk = Desk(kafka_connections_max_per_ip="20")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(30):
        desk.connect(number)
    desk.rehearsal.reset()
    desk.rates.flush()
    assert desk.noted == [] and desk.counted.count(("observed_ip_cap", "A")) == 10
    assert desk.members() == list(range(20)), "none of them is left without a decision"


def desk_that_asks_another_shard(connections: int, **observed: str) -> Desk:
    """A rate of the broker is observed; so many connections have come, and its home, another shard, was asked about them."""
    shards = next(shards for shards in range(2, 99) if home_of("rate:broker", shards) != 0)
    desk = Desk(shards, max__connection__creation__rate="1", **observed)
    for number in range(connections):
        desk.connect(number)
    desk.rates.flush()
    return desk


def test_the_home_of_an_observed_rate_of_listeners_may_be_another_shard():
    desk = desk_that_asks_another_shard(4)
    ((asks, answer),) = desk.asked
    assert asks == (LISTENER, ["A"] * 4)
    answer.resolve([[1, 0, 700], [2, 0, 700], [3, 0, 700]])
    assert desk.counted == [("observed_rate_wait", "A")] * 3


def test_the_answer_of_a_rate_of_listeners_that_is_observed_no_more_counts_nothing():
    desk = desk_that_asks_another_shard(1)
    desk.observe()
    desk.asked[0][1].resolve([[0, 0, 700]])
    assert desk.counted == []


def test_a_home_of_a_rate_of_listeners_that_is_lost_leaves_it_open():
    desk = desk_that_asks_another_shard(3)
    desk.asked[0][1].fail(PeerLost("gone"))
    assert desk.counted == [("observed_shard_unavailable", "A")] * 3
    assert desk.rehearsal.counts.describe()["undecided"] == 3


def test_a_home_that_is_lost_after_its_rate_is_observed_no_more_counts_nothing():
    desk = desk_that_asks_another_shard(3, kafka_connections_max_per_ip="2")
    desk.observe_rate_of("10.0.0.9", 1)
    desk.observe(kafka_connections_max_per_ip="2")
    desk.asked[0][1].fail(PeerLost("gone"))
    assert "observed_shard_unavailable" not in [name for name, _ in desk.counted]


def test_a_process_that_ends_journals_the_connections_that_wait_for_an_observed_rate():
    desk = desk_that_asks_another_shard(2, kafka_connections_max_per_ip="1")
    desk.end_process()
    assert [row["reason"] for row in desk.journal] == ["ended"] * 2


def test_at_the_end_no_connection_waits_for_an_observed_rate():
    desk = desk_that_asks_another_shard(2, kafka_connections_max_per_ip="1")
    desk.observe()
    assert [row["reason"] for row in desk.journal] == ["ended"] * 2
    desk.asked[0][1].resolve([[1, 0, 700]])
    assert desk.counted == [] and desk.members() == [] and len(desk.journal) == 2


def test_a_mistake_about_one_connection_keeps_no_other_from_its_answer():
    desk = desk_that_asks_another_shard(3)
    count = desk.rehearsal.counts.add

    def add(ip: str, *what: Any) -> None:
        desk.rehearsal.counts.add = count  # type: ignore[method-assign]  # the first alone
        raise ValueError("a mistake")

    desk.rehearsal.counts.add = add  # type: ignore[method-assign]
    desk.asked[0][1].resolve([[0, 0, 700], [1, 0, 700]])
    assert [str(each) for each in desk.mistakes] == ["a mistake"]
    assert desk.rehearsal.counts.describe()["caps"] == [["max.connection.creation.rate", 1.0, True, 1]]


def test_an_observed_rate_of_the_core_refuses_beyond_a_tenth_of_a_second():
    desk = Desk(kafka_connection_rate_limit="20")
    for number in range(25):
        desk.connect(number)
    names = [name for name, _ in desk.counted]
    assert names.count("observed_rate_wait") == 2 and names.count("observed_core_rate") == 3


def test_a_connection_that_the_rate_of_its_address_would_have_refused_is_taken_back_from_its_listeners():
    desk = Desk(max__connection__creation__rate="1000")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(12):
        desk.connect(number)
    for _ in range(3):
        desk.now_ms += GATHER_MS
        desk.rates.flush()
    assert desk.counted == [("observed_ip_rate", "A")] * 2
    assert desk.noted[-1] == (BACK, ["A"] * 2, 0)


def test_a_home_that_is_lost_leaves_it_open():
    desk = Desk(2)
    ip = next(f"10.0.0.{n}" for n in range(1, 200) if home_of(f"rate:ip:10.0.0.{n}", 2) == 1)
    desk.observe_rate_of(ip, 1)
    for number in range(3):
        desk.connect(number, ip)
    desk.rates.flush()
    ((asks, answer),) = desk.asked
    assert asks == (ADDRESS, [ip] * 3) and desk.counted == []
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
    desk.asked[0][1].resolve([])
    desk.says()
    assert desk.in_use(f"ip:{ip}") == 0
    assert [row["reason"] for row in desk.journal] == ["closed"]


def test_a_rate_of_users_alone_asks_about_each_login_and_takes_no_token():
    desk = Desk(turnstile__max__connection__creation__rate__per__user="1")
    for number in range(12):
        desk.connect(number)
        desk.log_in(number, "alice" if number else "bob")
    desk.rates.flush()
    assert [(what, len(names)) for what, names, _ in desk.noted] == [(USER, 11), (USER, 1)]
    assert desk.counted == [("observed_user_rate", "A")]
    assert [(row["conn"], row["user"], row["reason"]) for row in desk.journal] == [(11, "alice", "user_rate")]
    assert desk.members() == [] and len(desk.open) == 12


def test_where_no_rate_of_users_is_observed_their_cap_is_asked_at_once():
    desk = Desk(turnstile__max__connections__per__user="1")
    for number in range(2):
        desk.connect(number)
        desk.log_in(number, "alice")
    assert desk.members() == [0] and desk.counted == [("observed_user_cap", "A")]


def test_beside_a_rate_of_addresses_only_those_in_the_observed_world_are_asked_about_their_users():
    desk = Desk(turnstile__max__connection__creation__rate__per__user="1")
    desk.observe_rate_of("10.0.0.1", 1)
    for number in range(12):
        desk.connect(number)
        desk.log_in(number, f"user-{number}")
    desk.rates.flush()
    assert desk.members() == list(range(10)), "two would not have come so far"
    users = [f"user-{number}" for number in range(10)]
    assert sorted(name for what, names, _ in desk.noted for name in names if what == USER) == users
    assert [desk.open[number].pools[-1] for number in range(10)] == [f"observed/user:{user}" for user in users]
    assert [row["user"] for row in desk.journal if row.get("user")] == users, "none was decided at once"


def test_a_login_that_the_rate_of_its_user_would_have_refused_leaves_a_world_that_has_begun_meanwhile():
    shards = next(shards for shards in range(2, 99) if home_of("rate:user:alice", shards) != 0)
    rate = {"turnstile__max__connection__creation__rate__per__user": "1"}
    desk = Desk(shards, **rate)
    for number in (1, 2):
        desk.connect(number)
        desk.log_in(number, "alice")
    desk.rates.flush()
    desk.observe(kafka_connections_max_per_ip="9", **rate)
    assert desk.members() == [1, 2]
    desk.asked[0][1].resolve([[1, 700, 0]])
    assert desk.members() == [1]
