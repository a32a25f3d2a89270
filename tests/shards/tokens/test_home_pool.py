"""home_pool.py: a mode with one table of transitions, and books that balance."""

import pytest

from shards.limits.caps import CapRule
from shards.tokens.home_pool import TRANSITIONS, Grants, HomePool, HomePoolMode


def make_pool(key: str = "broker") -> HomePool:
    return HomePool(key, CapRule(10, "kafka_connections_max"))


@pytest.mark.parametrize("before", HomePoolMode)
@pytest.mark.parametrize("after", HomePoolMode)
def test_a_mode_changes_as_the_table_says_or_not_at_all(before: HomePoolMode, after: HomePoolMode) -> None:
    pool = make_pool()
    pool.mode = before
    pool.tight = before is not HomePoolMode.OPEN
    if before is after or (before, after) in TRANSITIONS:
        pool.enter(after)
        assert pool.mode is after and pool.tight == (after is not HomePoolMode.OPEN)
    else:
        with pytest.raises(RuntimeError, match="can't become"):
            pool.enter(after)


def test_what_is_out_is_what_home_and_holders_have() -> None:
    pool, grants = make_pool(), Grants([1, 2])
    pool.in_use = 2
    grants.add(1, pool, 3)
    grants.add(2, pool, 1)
    assert pool.out == 6
    assert grants.of("broker") == {1: 3, 2: 1}
    assert grants.holders("broker") == [1, 2] and grants.holds(1, "broker")


def test_what_is_given_back_is_gone() -> None:
    pool, grants = make_pool(), Grants([1])
    grants.add(1, pool, 2)
    grants.take_back(1, pool, 2)
    assert pool.granted == 0 and not grants.holders("broker")
    grants.check({"broker": pool})


def test_nobody_gives_back_more_than_he_got() -> None:
    pool, grants = make_pool(), Grants([1])
    grants.add(1, pool, 1)
    with pytest.raises(RuntimeError, match="shard 1 gives back 1 tokens more than it was granted"):
        grants.take_back(1, pool, 2)


def test_the_books_of_a_dead_shard_are_handed_over_once() -> None:
    pool, grants = make_pool(), Grants([1, 2])
    grants.add(1, pool, 2)
    assert grants.drop(1) == {"broker": 2}
    assert grants.drop(1) == {}


def test_books_that_do_not_balance_are_seen() -> None:
    pool, grants = make_pool(), Grants([1])
    grants.add(1, pool, 2)
    pool.granted = 1
    with pytest.raises(AssertionError):
        grants.check({"broker": pool})
