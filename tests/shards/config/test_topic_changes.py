"""Topics: one answer each, in Kafka's words; leaders spread over the brokers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.config.config_state import ConfigState
from shards.config.topic_changes import (
    create_partitions,
    create_topics,
    delete_topics,
    illegal_name,
    topic_configs_delta,
)
from shards.settings.errors import ConfigInvalid


def state(brokers: int = 3, static: dict[str, str] | None = None, **topics: int) -> ConfigState:
    found = ConfigState(brokers, static or {})
    found.put(create_topics(found, [[name, count, {}] for name, count in topics.items()])[0])
    return found


@given(st.lists(st.integers(1, 20), min_size=1, max_size=20), st.integers(1, 5))
def test_leaders_are_spread_evenly_however_topics_arrive(counts, brokers):
    now = state(brokers)
    for n, count in enumerate(counts):
        now.put(create_topics(now, [[f"t{n}", count, {}]])[0])
    leaders = Counter(leader for topic in now.topics.values() for leader in topic["leaders"])
    per_broker = [leaders[broker] for broker in range(brokers)]
    assert sum(per_broker) == sum(counts)
    assert max(per_broker) - min(per_broker) <= 1


def test_a_thousand_topics_are_created_at_once():
    delta, results = create_topics(state(), [[f"t{n}", 3, {"retention.ms": "1000"}] for n in range(1000)])
    assert len(delta) == 1000
    assert set(map(tuple, results)) == {("", "")}


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (["taken", 1, {}], "TOPIC_ALREADY_EXISTS", "Topic 'taken' already exists."),
        (["a_b", 1, {}], "INVALID_TOPIC_EXCEPTION", "Topic 'a_b' collides with existing topic: a.b"),
        (["no good", 1, {}], "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: 'no good' contains one or more"),
        (["", 1, {}], "INVALID_TOPIC_EXCEPTION", "the empty string is not allowed"),
        (["t", 0, {}], "INVALID_PARTITIONS", "non-positive"),
        (["t", -2, {}], "INVALID_PARTITIONS", "non-positive"),
        (["t", 20_000, {}], "POLICY_VIOLATION", "Excessively large"),
        (["t", 1, {"retention.m": "5"}], "INVALID_CONFIG", "did you mean retention.ms?"),
        (["t", 1, {"retention.ms": "x"}], "INVALID_CONFIG", "retention.ms cannot be 'x'"),
        (["t", 1, {"retention.ms": None}], "INVALID_CONFIG", "must have a value"),
        (
            ["t", 1, {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}],
            "INVALID_CONFIG",
            "conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_answered_apart_from_its_neighbours(topic, error, message):
    now = state()
    now.put(create_topics(now, [["taken", 1, {}], ["a.b", 1, {}]])[0])
    delta, results = create_topics(now, [topic, ["good", 2, {}]])
    assert [name for _, name, _ in delta] == ["good"]
    assert results[0][0] == error
    assert message in results[0][1]
    assert results[1] == ["", ""]


def test_minus_one_partitions_means_the_clusters_default():
    delta, _ = create_topics(state(static={"/num.partitions": "4"}), [["t", -1, {}]])
    assert len(delta[0][2]["leaders"]) == 4


def test_partitions_are_only_added():
    now = state(t=3)
    delta, results = create_partitions(now, [["t", 5], ["t", 3], ["t", 2], ["nope", 3]])
    errors = [result[0] for result in results]
    assert errors == ["", "INVALID_PARTITIONS", "INVALID_PARTITIONS", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert results[1][1] == "Topic already has 3 partition(s)."
    before = now.topics["t"]
    assert delta[0][2]["leaders"][:3] == before["leaders"]
    assert len(delta[0][2]["leaders"]) == 5
    assert delta[0][2]["id"] == before["id"]


def test_deleting_answers_each_name():
    delta, results = delete_topics(state(t=1), ["t", "nope"])
    assert delta == [("topic", "t", None)]
    assert [result[0] for result in results] == ["", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert delete_topics(state(static={"/delete.topic.enable": "false"}, t=1), ["t"])[0] == []


def test_topic_configs_change_all_or_nothing():
    now = state(t=1)
    now.put(topic_configs_delta(now, [["t", "retention.ms", " 7 "], ["t", "cleanup.policy", '["delete"]']]))
    assert now.topics["t"]["configs"] == {"retention.ms": "7", "cleanup.policy": "delete"}
    with pytest.raises(ConfigInvalid):
        topic_configs_delta(now, [["t", "retention.ms", None], ["t", "segment.bytes", "1"]])
    now.put(topic_configs_delta(now, [["t", "retention.ms", None]]))
    assert now.topics["t"]["configs"] == {"cleanup.policy": "delete"}


def test_names_as_long_as_kafka_allows():
    assert illegal_name("x" * 249) == ""
    assert "max allowed length 249" in illegal_name("x" * 250)


def test_replicas_that_cannot_be_are_refused_here_too() -> None:
    now = state(t=1)
    wanted = [["t", 2, [[]]], ["t", 2, [[7]]], ["t", 2, [[0], [1]]], ["t", 3, [[1]]], ["t", 2, [[1, 0]]]]
    delta, results = create_partitions(now, wanted)
    assert (delta, {error for error, _ in results}) == ([], {"INVALID_REPLICA_ASSIGNMENT"})
    delta, results = create_topics(now, [["a", -1, {}, [[]], -1], ["b", -1, {}, [[0], [9]], -1]])
    assert (delta, {error for error, _ in results}) == ([], {"INVALID_REPLICA_ASSIGNMENT"})


def test_there_are_no_more_topics_of_users_than_kafka_topics_max():
    """Internal topics don't count, a topic that is gone leaves its room, and a limit below what there is takes nothing away."""
    now = state(static={"/kafka_topics_max": "3"}, a=1, b=1, __consumer_offsets=-1)
    delta, results = create_topics(now, [["c", 0, {}], ["c", 1, {}], ["d", 1, {}], ["__transaction_state", -1, {}]])
    assert [error for error, _ in results] == ["INVALID_PARTITIONS", "", "POLICY_VIOLATION", ""]
    assert "kafka_topics_max" in results[2][1]
    now.put(delta)
    now.put(delete_topics(now, ["a"])[0])
    assert create_topics(now, [["d", 1, {}]])[1] == [["", ""]]
    now.put([("setting", "/kafka_topics_max", "1")])
    assert create_topics(now, [["e", 1, {}]])[1][0][0] == "POLICY_VIOLATION"
    assert {"b", "c"} <= now.topics.keys()


def test_there_are_no_more_replicas_than_brokers_have_memory_for():
    """Three brokers of 10 MB, of which 20 % are for partitions: room for 60 of 100,000 bytes. The tighter bound rules."""
    limited = {"/topic_memory_per_partition": "100000", "/topic_partitions_memory_allocation_percent": "20"}
    now = state(static=limited, __consumer_offsets=-1)
    now.put([("setting", "/turnstile.broker.memory.bytes", "10000000")])
    delta, results = create_topics(now, [["a", 15, {}, None, 3], ["b", 16, {}], ["c", 15, {}], ["d", 1, {}]], 2)
    assert [error for error, _ in results] == ["", "INVALID_PARTITIONS", "", "INVALID_PARTITIONS"]
    assert "60 that topic_memory_per_partition" in results[1][1]
    now.put(delta)
    now.put([("setting", "/turnstile.broker.memory.bytes", None)])
    now.put([("setting", "/topic_partitions_per_shard", "11")])
    (problem,) = create_topics(now, [["d", 7, {}]], 2)[1]
    assert "66 that topic_partitions_per_shard" in problem[1]
    assert create_topics(now, [["d", 6, {}]], 2)[1] == [["", ""]]


def test_there_are_no_more_replicas_than_topic_partitions_per_shard_on_all_of_them():
    """Three brokers of two shards: 3 * (2 * 3 - 1) = 15. Named replicas count; internal topics don't."""
    limited = {"/topic_partitions_per_shard": "3", "/topic_partitions_reserve_shard0": "1"}
    now = state(static=limited, __consumer_offsets=-1)
    delta, results = create_topics(now, [["a", 4, {}, None, 3], ["b", 4, {}], ["c", 2, {}], ["d", 2, {}]], 2)
    assert [error for error, _ in results] == ["", "INVALID_PARTITIONS", "", "INVALID_PARTITIONS"]
    assert "15" in results[1][1] and "topic_partitions_per_shard" in results[1][1]
    now.put(delta)
    assert [error for error, _ in create_partitions(now, [["a", 5], ["c", 3], ["c", 3]], 2)[1]] == [
        "INVALID_PARTITIONS", "", "INVALID_PARTITIONS",
    ]  # fmt: skip
    assert create_topics(now, [["d", 1, {}, [[0, 1]]]], 2)[1][0][0] == "INVALID_PARTITIONS"
    assert create_topics(now, [["d", 1, {}, [[0]]]], 2)[1] == [["", ""]]
