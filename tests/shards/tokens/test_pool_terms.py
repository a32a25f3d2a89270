"""pool_terms.py: what is shared is never changed."""

from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.home_pool import HomePool
from shards.tokens.pool_terms import HERE, PoolMode, terms_of

CAP = CapRule(10, "kafka_connections_max")


def test_a_pool_that_changes_leaves_others_as_they_are() -> None:
    one, other = HomePool("ip:10.0.0.1", CAP), HomePool("ip:10.0.0.2", CAP)
    assert one.terms is other.terms
    one.enter(PoolMode.TIGHT)
    one.rule = UNLIMITED
    assert (one.mode, one.rule) == (PoolMode.TIGHT, UNLIMITED)
    assert (other.mode, other.rule) == (PoolMode.OPEN, CAP)


def test_what_follows_from_rule_home_and_mode() -> None:
    assert [terms_of(rule, home).away for rule in (CAP, UNLIMITED) for home in (HERE, 0, 1)] == [0, 1, 1, 0, 0, 0]
    assert [terms_of(CAP, mode=mode).tight for mode in PoolMode] == [False, True, True]
