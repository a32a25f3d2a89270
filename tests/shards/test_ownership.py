"""ownership.py: the same home everywhere, for ever, and about as many keys for each shard; hashes as Java computes them."""

from collections import Counter

import pytest

from shards.ownership import (
    PARTITIONS,
    bucket_leaders,
    bucket_of,
    home_of,
    home_of_bucket,
    home_of_coordinator_key,
    home_of_partition,
    java_abs_hash,
    leader_of_bucket,
)


@pytest.mark.parametrize(
    ("key", "shards", "home"),
    [("broker", 4, 3), ("ip:10.0.0.1", 4, 3), ("ip:10.0.0.1", 7, 6), ("partition:t:0", 16, 13)],
)
def test_a_home_never_changes(key: str, shards: int, home: int) -> None:
    assert home_of(key, shards) == home


def test_one_shard_is_home_to_everything() -> None:
    assert {home_of(f"ip:10.0.0.{n}", 1) for n in range(100)} == {0}


def test_addresses_spread_over_the_shards() -> None:
    homes = Counter(home_of(f"ip:10.0.{n >> 8}.{n & 255}", 8) for n in range(4096))
    assert len(homes) == 8
    assert max(homes.values()) < 1.2 * 4096 / 8


def test_the_partitions_of_a_topic_spread_evenly() -> None:
    for topic in ("t", "orders", "perf-1000-0"):
        homes = Counter(home_of_partition(topic, n, 4) for n in range(8))
        assert set(homes.values()) == {2}
    assert len({home_of_partition(f"t{n}", 0, 4) for n in range(50)}) == 4, "and so do topics of one partition"


def test_names_of_any_script_have_a_home() -> None:
    assert 0 <= home_of("user:Łukasz", 3) < 3


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
    assert bucket_of(text) == expected % PARTITIONS


def test_the_longest_text_is_hashed() -> None:
    expected = 0
    for _ in range(32_767):
        expected = (expected * 31 + ord("z")) % (1 << 32)
    assert java_abs_hash("z" * 32_767) in (expected, (1 << 32) - expected)


@pytest.mark.parametrize("brokers", [1, 2, 3, 7])
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_groups_are_spread_over_the_brokers_and_over_the_shards_of_each(brokers: int, shards: int) -> None:
    assert bucket_leaders(brokers) == [leader_of_bucket(n, brokers) for n in range(PARTITIONS)]
    homes = [(leader_of_bucket(n, brokers), home_of_bucket(n, brokers, shards)) for n in range(PARTITIONS)]
    counts = [homes.count((broker, shard)) for broker in range(brokers) for shard in range(shards)]
    assert min(counts) >= 1
    assert max(counts) - min(counts) <= 1
    assert all(
        home_of_coordinator_key(key, brokers, shards) == homes[bucket_of(key)][1] for key in ("a", "b", "group-1")
    )
