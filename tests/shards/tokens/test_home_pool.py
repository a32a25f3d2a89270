"""home_pool.py: a mode with one table of transitions."""

import pytest

from shards.limits.caps import CapRule
from shards.tokens.home_pool import TRANSITIONS, HomePool
from shards.tokens.pool_terms import PoolMode, TermsTable


def make_pool(key: str = "broker") -> HomePool:
    return HomePool(key, TermsTable().of("broker", CapRule(10, "kafka_connections_max")))


@pytest.mark.parametrize("before", PoolMode)
@pytest.mark.parametrize("after", PoolMode)
def test_a_mode_changes_as_the_table_says_or_not_at_all(before: PoolMode, after: PoolMode) -> None:
    pool = make_pool()
    pool.terms = pool.terms.with_mode(before)
    if before is after or (before, after) in TRANSITIONS:
        pool.enter(after)
        assert pool.mode is after and pool.terms.tight == (after is not PoolMode.OPEN)
    else:
        with pytest.raises(RuntimeError, match="can't become"):
            pool.enter(after)
