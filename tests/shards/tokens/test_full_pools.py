"""Pools that a shard knows to be full."""

from shards.limits.caps import CapRule
from shards.tokens.full_pools import FullPools, NoReturnCounts
from shards.tokens.pool import Refused

KEY = "ip:10.0.0.1"
REFUSED = Refused(KEY, CapRule(3, "kafka_connections_max_per_ip"), 7)


class Counts:
    def __init__(self) -> None:
        self.number: int | None = 5

    def of(self, key: str) -> int | None:
        return self.number

    def add(self, key: str) -> None:
        assert self.number is not None
        self.number += 1


def test_a_connection_is_refused_until_a_return() -> None:
    full = FullPools(Counts())
    assert full.refusal(KEY) is None
    full.note(KEY, 5, REFUSED)
    assert full.refusal(KEY) is REFUSED
    full.returned(KEY)
    assert full.refusal(KEY) is None


def test_what_came_before_a_return_is_known_no_more() -> None:
    full = FullPools(Counts())
    full.note(KEY, 4, REFUSED)
    assert full.refusal(KEY) is None


def test_nothing_is_known_while_the_returns_cant_be_told() -> None:
    counts = Counts()
    full = FullPools(counts)
    full.note(KEY, 5, REFUSED)
    counts.number = None
    assert full.refusal(KEY) is None
    counts.number = 5
    assert full.refusal(KEY) is None


def test_another_version_and_another_pool_are_asked_about_anew() -> None:
    full = FullPools(Counts())
    full.note(KEY, 5, REFUSED)
    assert full.refusal("ip:10.0.0.2") is None
    full.forget_all()
    assert full.refusal(KEY) is None
    full.note(KEY, 5, REFUSED)
    full.forget(KEY)
    assert full.refusal(KEY) is None


def test_a_shard_without_shared_memory_knows_nothing() -> None:
    full = FullPools(NoReturnCounts())
    full.returned(KEY)
    assert full.returns(KEY) is None
