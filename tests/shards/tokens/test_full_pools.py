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
    full = FullPools(Counts(), 0)
    assert full.refusal(KEY) is None
    full.note(KEY, 5, REFUSED)
    assert full.refusal(KEY) is REFUSED
    full.returned(KEY)
    assert full.refusal(KEY) is None


def test_the_first_connections_after_a_return_ask() -> None:
    full = FullPools(Counts(), 2)
    for returns in (5, 6):
        full.note(KEY, returns, REFUSED)
        assert full.refusal(KEY) is None
        full.note(KEY, returns, REFUSED)  # the answer to what it asked
        assert full.refusal(KEY) is None
        assert full.refusal(KEY) is REFUSED
        full.returned(KEY)


def test_it_does_not_know_any_number_of_pools() -> None:
    full = FullPools(Counts(), 0)
    for n in range(5000):
        full.note(f"ip:10.0.{n // 256}.{n % 256}", 5, REFUSED)
    assert full.refusal("ip:10.0.0.0") is None
    assert full.refusal(f"ip:10.0.{4999 // 256}.{4999 % 256}") is REFUSED


def test_what_came_before_a_return_is_known_no_more() -> None:
    full = FullPools(Counts(), 0)
    full.note(KEY, 4, REFUSED)
    assert full.refusal(KEY) is None


def test_nothing_is_known_while_the_returns_cant_be_told() -> None:
    counts = Counts()
    full = FullPools(counts, 0)
    full.note(KEY, 5, REFUSED)
    counts.number = None
    assert full.refusal(KEY) is None
    counts.number = 5
    assert full.refusal(KEY) is None


def test_another_version_and_another_pool_are_asked_about_anew() -> None:
    full = FullPools(Counts(), 0)
    full.note(KEY, 5, REFUSED)
    assert full.refusal("ip:10.0.0.2") is None
    full.forget_all()
    assert full.refusal(KEY) is None
    full.note(KEY, 5, REFUSED)
    full.forget(KEY)
    assert full.refusal(KEY) is None


def test_a_shard_without_shared_memory_knows_nothing() -> None:
    full = FullPools(NoReturnCounts(), 0)
    full.returned(KEY)
    assert full.returns(KEY) is None
