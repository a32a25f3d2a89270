"""home_pool.py: a mode with one table of transitions, and books that balance."""

import pytest

from shards.limits.caps import CapRule
from shards.tokens.home_pool import TRANSITIONS, Grants, HomePool, HomePoolMode


def make_account(key: str = "broker") -> HomePool:
    return HomePool(key, CapRule(10, "kafka_connections_max"))


@pytest.mark.parametrize("before", HomePoolMode)
@pytest.mark.parametrize("after", HomePoolMode)
def test_a_mode_changes_as_the_table_says_or_not_at_all(before: HomePoolMode, after: HomePoolMode) -> None:
    account = make_account()
    account.mode = before
    account.tight = before is not HomePoolMode.OPEN
    if before is after or (before, after) in TRANSITIONS:
        account.enter(after)
        assert account.mode is after and account.tight == (after is not HomePoolMode.OPEN)
    else:
        with pytest.raises(RuntimeError, match="can't become"):
            account.enter(after)


def test_what_is_out_is_what_home_and_holders_have() -> None:
    account, grants = make_account(), Grants([1, 2])
    account.in_use = 2
    grants.add(1, account, 3)
    grants.add(2, account, 1)
    assert account.out == 6
    assert grants.of("broker") == {1: 3, 2: 1}
    assert grants.holders("broker") == [1, 2] and grants.holds(1, "broker")


def test_what_is_given_back_is_gone() -> None:
    account, grants = make_account(), Grants([1])
    grants.add(1, account, 2)
    grants.take_back(1, account, 2)
    assert account.granted == 0 and not grants.holders("broker")
    grants.check({"broker": account})


def test_nobody_gives_back_more_than_he_got() -> None:
    account, grants = make_account(), Grants([1])
    grants.add(1, account, 1)
    with pytest.raises(RuntimeError, match="shard 1 gives back 1 tokens more than it was granted"):
        grants.take_back(1, account, 2)


def test_the_books_of_a_dead_shard_are_handed_over_once() -> None:
    account, grants = make_account(), Grants([1, 2])
    grants.add(1, account, 2)
    assert grants.drop(1) == {"broker": 2}
    assert grants.drop(1) == {}


def test_books_that_do_not_balance_are_seen() -> None:
    account, grants = make_account(), Grants([1])
    grants.add(1, account, 2)
    account.granted = 1
    with pytest.raises(AssertionError):
        grants.check({"broker": account})
