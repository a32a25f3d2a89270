"""holder_cache.py: what a holder does with its tokens, and what it tells the home."""

from typing import Any

import pytest

from shards.limits.caps import UNLIMITED, CapRule
from shards.ownership import home_of
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable

POOL = "ip:10.0.0.1"
SHARDS = 4
HOME = home_of(POOL, SHARDS)
ME = (HOME + 1) % SHARDS
CAP = CapRule(10, "kafka_connections_max_per_ip")


class Holder:
    """The cache of one shard, and what it says to the home."""

    def __init__(self, rule: CapRule = CAP) -> None:
        self.rule = rule
        self.table = PoolTable(lambda key: self.rule)
        self.peers = Peers(ME, SHARDS, epoch=1)
        self.peers.mark_up(HOME, 2)
        self.cache = HolderCache(SHARDS, self.table, self.peers)

    @property
    def pool(self) -> HolderPool:
        return self.cache.pool_of(POOL)

    def use(self, n: int) -> None:
        self.table.occupy(self.pool, n)

    def close(self, n: int = 1) -> None:
        self.table.vacate(self.pool, n)
        self.cache.return_if_tight(self.pool)

    def change(self, rule: CapRule) -> None:
        self.rule = rule
        self.cache.change_rule(self.pool, rule)

    def said(self) -> list[Any]:
        self.cache.check()
        self.table.check()
        sent: list[Any] = []
        self.peers.outbox.flush(lambda peer, message: sent.extend(message[1]))
        return sent


@pytest.fixture
def holder() -> Holder:
    return Holder()


def test_a_new_share_has_nothing_to_take(holder: Holder) -> None:
    assert (holder.pool.cached, holder.pool.terms.away, holder.pool.home) == (0, 1, HOME)
    assert holder.pool.level >= holder.pool.terms.limit


def test_without_a_cap_there_is_no_limit_and_nothing_to_say() -> None:
    holder = Holder(UNLIMITED)
    holder.use(100)
    holder.close(99)
    assert holder.pool.level < holder.pool.terms.limit
    assert holder.said() == []


def test_what_closes_stays_in_a_loose_pool(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 3, True)
    holder.use(2)
    holder.close(2)
    assert holder.pool.cached == 3
    assert holder.table.totals().cached == 3
    assert holder.said() == []


def test_what_closes_goes_home_from_a_tight_pool(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 2, False)
    holder.use(2)
    holder.close()
    holder.close()
    assert holder.said() == [("give", POOL, 2)]


def test_a_reclaim_takes_what_is_cached_and_makes_tight(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(2)
    assert holder.cache.tighten(POOL) == 3
    assert (holder.pool.held, holder.pool.level) == (2, holder.pool.terms.limit)
    holder.close()
    assert holder.said() == [("give", POOL, 1)]


def test_a_reclaim_of_an_unknown_pool_finds_nothing(holder: Holder) -> None:
    assert holder.cache.tighten(POOL) == 0
    assert POOL not in holder.table.pools


def test_a_grant_makes_a_tight_pool_loose_again(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 1, False)
    holder.use(1)
    holder.cache.add_granted(POOL, 2, True)
    holder.close()
    assert holder.pool.cached == 3


def test_a_cap_that_appears_makes_use_known_once() -> None:
    holder = Holder(UNLIMITED)
    holder.use(4)
    holder.change(CAP)
    assert holder.said() == [("report", POOL, 4)]
    holder.change(UNLIMITED)
    holder.use(2)
    holder.change(CAP)
    assert holder.said() == [("report", POOL, 2)]
    assert holder.pool.tight
    holder.close(6)
    assert holder.said() == [("give", POOL, 6)]


def test_granted_tokens_go_home_after_the_cap_is_gone(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 3, True)
    holder.use(3)
    holder.change(UNLIMITED)
    holder.use(2)
    holder.close(4)
    holder.cache.sweep(holder.pool)
    assert holder.said() == []  # they were needed a moment ago
    holder.cache.sweep(holder.pool)
    assert holder.said() == [("give", POOL, 2)]


def test_totals_count_what_capped_pools_cache_whatever_became_of_the_cap(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(2)
    holder.change(UNLIMITED)
    assert holder.table.totals().cached == 0
    holder.change(CAP)
    assert holder.table.totals().cached == 3
    holder.said()


def test_use_that_a_home_that_is_away_has_not_heard_of_is_not_counted_as_fewer_than_no_cached_tokens() -> None:
    holder = Holder(UNLIMITED)
    holder.use(3)
    holder.peers.mark_dead(HOME)
    holder.change(CAP)
    assert holder.table.totals().cached == 0
    assert holder.said() == []


def test_a_sweep_sends_home_what_was_not_needed_and_forgets_what_is_empty(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(3)
    holder.close(3)
    assert holder.cache.sweep(holder.pool)
    assert holder.said() == [("give", POOL, 2)]
    assert not holder.cache.sweep(holder.pool)
    assert holder.said() == [("give", POOL, 3)]


def test_a_home_that_came_up_hears_of_use_and_cached_tokens_are_void(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(2)
    holder.peers.mark_dead(HOME)
    holder.peers.mark_up(HOME, 9)
    holder.cache.report_all(HOME)
    assert holder.said() == [("report", POOL, 2)]
    assert (holder.pool.held, holder.pool.tight) == (2, True)


def test_a_home_that_came_up_does_not_hear_of_pools_without_a_cap() -> None:
    holder = Holder(UNLIMITED)
    holder.use(2)
    holder.cache.report_all(HOME)
    assert holder.said() == []


def test_while_the_home_is_down_a_cap_that_appears_lets_nobody_in() -> None:
    holder = Holder(UNLIMITED)
    holder.use(2)
    holder.peers.mark_dead(HOME)
    holder.change(CAP)
    assert holder.pool.level >= holder.pool.terms.limit
    holder.peers.mark_up(HOME, 9)
    holder.cache.report_all(HOME)
    assert holder.said() == [("report", POOL, 2)]


@pytest.mark.parametrize("kind", ["ip", None])
def test_recalled_tokens_are_not_at_hand_and_go_home_before_the_pool_is_asked_for(
    holder: Holder, kind: str | None
) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(2)
    pool = holder.pool
    holder.table.terms.recall(HOME, kind)
    assert pool.level >= pool.terms.limit and (pool.in_use, pool.cached) == (2, 3)
    assert holder.pool is pool and not pool.terms.recalled
    assert (pool.held, pool.in_use, pool.cached) == (2, 2, 0)
    assert holder.said() == [("give", POOL, 3)]


def test_recalled_tokens_go_home_with_the_wheel_and_what_is_granted_then_is_not_recalled(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(5)
    holder.close(3)
    holder.table.terms.recall(HOME, "ip")
    assert holder.cache.sweep(holder.table.pools[POOL])  # type: ignore[arg-type]
    assert holder.said() == [("give", POOL, 3)]
    holder.table.terms.recall(HOME, "ip")
    holder.cache.add_granted(POOL, 4, True)
    assert holder.pool.cached == 4 and holder.pool.level < holder.pool.terms.limit


def test_another_kind_and_another_home_are_not_recalled(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.table.terms.recall(HOME, "user")
    holder.table.terms.recall((HOME + 2) % SHARDS, "ip")
    assert holder.pool.cached == 5 and holder.pool.level < holder.pool.terms.limit


def test_a_reclaim_takes_recalled_tokens_along(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.table.terms.recall(HOME, "ip")
    assert holder.cache.tighten(POOL) == 5
    assert holder.said() == []


def test_a_rule_of_its_own_for_a_recalled_pool_gives_back_first(holder: Holder) -> None:
    holder.cache.add_granted(POOL, 5, True)
    holder.use(1)
    pool = holder.pool
    holder.table.terms.recall(HOME, "ip")
    holder.cache.change_rule(pool, CapRule(7, "max.connections.per.ip.overrides"))
    assert (pool.held, pool.in_use, pool.cached) == (1, 1, 0)
    assert holder.said() == [("give", POOL, 4)]


def test_only_the_shares_of_one_home_are_its_shares(holder: Holder) -> None:
    keys = [f"ip:10.0.1.{n}" for n in range(50)]
    for key in keys:
        if home_of(key, SHARDS) != ME:
            holder.cache.pool_of(key)
    assert {pool.key for pool in holder.cache.pools_of(HOME)} == {key for key in keys if home_of(key, SHARDS) == HOME}
