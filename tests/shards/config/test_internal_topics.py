"""Internal topics: the partition of a key as Java computes it, and where it is at home."""

from __future__ import annotations

import pytest

from shards.config.changes import ConfigState
from shards.config.internal_topics import (
    CONFIGS,
    GROUP_METADATA,
    PARTITIONS,
    TRANSACTION_STATE,
    home_of_bucket,
    home_of_key,
    java_abs_hash,
    leader_of,
    leaders,
    partition_of,
)
from shards.config.topic_changes import create_partitions, create_topics, delete_topics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("polygenelubricants", 0),  # its hashCode() is Integer.MIN_VALUE
        ("group-1", 293427299),
        ("\u00e9", 233),
        ("\U0001f600", 1772899),  # two units of UTF-16
    ],
)
def test_a_text_is_hashed_as_by_java(text: str, expected: int) -> None:
    assert java_abs_hash(text) == expected
    assert partition_of(text) == expected % PARTITIONS


def test_the_longest_text_is_hashed() -> None:
    expected = 0
    for _ in range(32_767):
        expected = (expected * 31 + ord("z")) % (1 << 32)
    assert java_abs_hash("z" * 32_767) in (expected, (1 << 32) - expected)


@pytest.mark.parametrize("brokers", [1, 2, 3, 7])
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_groups_are_spread_over_the_brokers_and_over_the_shards_of_each(brokers: int, shards: int) -> None:
    assert leaders(brokers) == [leader_of(n, brokers) for n in range(PARTITIONS)]
    homes = [(leader_of(n, brokers), home_of_bucket(n, brokers, shards)) for n in range(PARTITIONS)]
    counts = [homes.count((broker, shard)) for broker in range(brokers) for shard in range(shards)]
    assert min(counts) >= 1
    assert max(counts) - min(counts) <= 1
    assert all(home_of_key(key, brokers, shards) == homes[partition_of(key)][1] for key in ("a", "b", "group-1"))


@pytest.mark.parametrize("name", [GROUP_METADATA, TRANSACTION_STATE])
def test_an_internal_topic_has_its_partitions_and_leaders_however_it_is_made(name: str) -> None:
    for partitions in (-1, PARTITIONS):
        now = ConfigState(3, {})
        now.put(create_topics(now, [["t", 2, {}]])[0])
        delta, results = create_topics(now, [[name, partitions, {}]])
        assert results == [["", ""]]
        now.put(delta)
        assert now.topics[name]["leaders"] == leaders(3)
        assert now.topics[name]["configs"] == CONFIGS[name]
        now.put(create_topics(now, [["u", 1, {}]])[0])
        assert now.topics["u"]["leaders"] == [2]  # those of others go on where they were
        assert create_partitions(now, [[name, 60]])[1][0][0] == "INVALID_PARTITIONS"
        assert delete_topics(now, [name]) == ([("topic", name, None)], [["", ""]])


def test_an_internal_topic_of_another_shape_is_refused() -> None:
    now = ConfigState(3, {})
    wanted = [[GROUP_METADATA, 3, {}], [GROUP_METADATA, 1, {}, [0]], ["t", 1, {}]]
    delta, results = create_topics(now, wanted)
    assert [result[0] for result in results] == ["INVALID_PARTITIONS", "INVALID_PARTITIONS", ""]
    assert [name for _, name, _ in delta] == ["t"]
