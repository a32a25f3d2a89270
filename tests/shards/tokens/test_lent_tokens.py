"""lent.py: books that balance, whether one shard has all of a pool's tokens or several have some."""

import random
from collections import Counter

import pytest

from shards.limits.caps import CapRule
from shards.tokens.home_pool import SEVERAL, HomePool
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.pool_terms import TermsTable


def books(others: list[int], key: str = "broker") -> tuple[HomePool, LentTokens]:
    pool = HomePool(key, TermsTable().of("broker", CapRule(10, "kafka_connections_max")))
    return pool, LentTokens(others, {key: pool})


def test_what_is_out_is_what_home_and_holders_have() -> None:
    pool, lent = books([1, 2])
    pool.level = 2
    lent.add(1, pool, 3)
    lent.add(2, pool, 1)
    assert pool.out == 6
    assert lent.by_shard("broker") == {1: 3, 2: 1}
    assert lent.holders("broker") == [1, 2] and lent.holds(1, pool)


def test_what_is_given_back_is_gone() -> None:
    pool, lent = books([1])
    lent.add(1, pool, 2)
    lent.take_back(1, pool, 2)
    assert pool.lent == 0 and not lent.holders("broker")
    lent.check()


@pytest.mark.parametrize("also", [[], [2]])
def test_no_shard_gives_back_more_than_it_got(also: list[int]) -> None:
    pool, lent = books([1, 2])
    for shard in [1, *also]:
        lent.add(shard, pool, 1)
    with pytest.raises(RuntimeError, match="shard 1 gives back 1 tokens more than it was granted"):
        lent.take_back(1, pool, 2)


def test_no_shard_gives_back_what_another_has() -> None:
    pool, lent = books([1, 2])
    lent.add(1, pool, 2)
    with pytest.raises(RuntimeError, match="shard 2 gives back 1 tokens more than it was granted"):
        lent.take_back(2, pool, 1)


def test_the_books_of_a_dead_shard_are_handed_over_once() -> None:
    pool, lent = books([1, 2])
    lent.add(1, pool, 2)
    assert lent.pop_shard(1) == {"broker": 2}
    assert lent.pop_shard(1) == {}


@pytest.mark.parametrize("also", [[], [2]])
def test_books_that_do_not_balance_are_seen(also: list[int]) -> None:
    pool, lent = books([1, 2])
    for shard in [1, *also]:
        lent.add(shard, pool, 2)
    lent._of[1]["broker"] = 3
    with pytest.raises(AssertionError):
        lent.check()


def test_a_pool_of_one_holder_has_no_entry_in_the_tables() -> None:
    pool, lent = books([1, 2])
    lent.add(1, pool, 2)
    lent.add(1, pool, 1)
    assert (pool.holder, lent._of) == (1, {1: {}, 2: {}})
    lent.add(2, pool, 1)
    assert (pool.holder, lent._of) == (SEVERAL, {1: {"broker": 3}, 2: {"broker": 1}})
    lent.take_back(1, pool, 3)
    lent.take_back(2, pool, 1)
    lent.add(2, pool, 1)
    assert (pool.holder, lent._of) == (2, {1: {}, 2: {}})


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_grants_losses_and_reports_is_booked_as_by_shard(seed: int) -> None:
    chance, others = random.Random(seed), [1, 2, 3]
    pools = {key: HomePool(key, TermsTable().of(key, CapRule(None, ""))) for key in ("broker", "ip:10.0.0.1")}
    lent = LentTokens(others, pools)
    sure, unsure = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for _ in range(300):
        shard, (key, pool), n = chance.choice(others), chance.choice(list(pools.items())), chance.randint(1, 3)
        step = chance.choice(["add", "take_back", "take_back", "doubt", "reported", "settle", "drop"])
        if step == "add":
            lent.add(shard, pool, n)
            sure[shard, key] += n
        elif step == "take_back" and sure[shard, key]:
            n = min(n, sure[shard, key])
            lent.take_back(shard, pool, n)
            sure[shard, key] -= n
        elif step == "reported":
            more = lent.reported(shard, pool, n)
            assert more == n - min(n, unsure[shard, key])
            unsure[shard, key] -= n - more
            sure[shard, key] += n
        elif step in ("doubt", "drop"):
            lent.mark_unsure(shard)
            for each in pools:
                unsure[shard, each] += sure.pop((shard, each), 0)
        if step in ("settle", "drop"):
            lost = lent.pop_unsure(shard) if step == "settle" else lent.pop_shard(shard)
            for each in pools:
                assert lost.get(each, 0) == unsure[shard, each]
                pools[each].lend(-unsure.pop((shard, each), 0))
        lent.check()
        for each, its_pool in pools.items():
            assert lent.by_shard(each) == {
                other: total for other in others if (total := sure[other, each] + unsure[other, each])
            }
            assert [other for other in others if lent.holds(other, its_pool)] == [
                other for other in others if sure[other, each]
            ]
        assert {(other, each): n for other, of in lent.sure().items() for each, n in of.items()} == +sure
