"""homes.py: the same home everywhere, for ever, and about as many keys for each shard."""

from collections import Counter

import pytest

from shards.tokens.homes import home_of, home_of_partition


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
