"""home_pool.py: a mode with one table of transitions."""

import pytest

from shards.limits.caps import CapRule
from shards.tokens.home_pool import TRANSITIONS, HomePool, HomePoolMode


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
