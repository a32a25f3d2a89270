"""pool.py: totals as tokens move, and a wheel that visits every pool once per turn."""

from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.holder_cache import HolderPool
from shards.tokens.pool import ADMITTED, PoolTable, TokenTotals


def make_table(*keys: str) -> PoolTable:
    table = PoolTable(lambda key: UNLIMITED)
    for key in keys:
        table.add(HolderPool(key, table.terms_of(key, 1)))
    return table


def test_totals_follow_what_is_taken_and_given_back() -> None:
    table = make_table("broker", "ip:10.0.0.1")
    table.pools["ip:10.0.0.1"].rule = CapRule(10, "kafka_connections_max")
    table.away_held = 5
    table.occupy(table.pools["broker"])
    table.occupy(table.pools["ip:10.0.0.1"], 3)
    assert table.totals() == TokenTotals(in_use=4, cached=2, pools=2)
    table.vacate(table.pools["ip:10.0.0.1"], 2)
    assert table.totals() == TokenTotals(in_use=2, cached=4, pools=2)


def test_the_peak_stays_until_it_is_reset() -> None:
    table = make_table("broker")
    pool = table.pools["broker"]
    table.occupy(pool, 4)
    table.vacate(pool, 3)
    assert (pool.in_use, pool.peak - pool.level) == (1, 3)


def test_a_pool_is_visited_one_turn_after_it_was_added() -> None:
    table = make_table("a")
    assert table.due(100.0, 8.0) == []  # the first tick only starts the wheel
    seen = [len(table.due(100.0 + 0.5 * step, 8.0)) for step in range(1, 17)]
    assert sum(seen) == 1 and seen[-1] == 1


def test_a_pool_that_is_kept_is_visited_again_after_a_turn() -> None:
    table = make_table("a")
    visits = 0
    for step in range(1 + 16 * 5):
        for pool in table.due(0.5 * step, 8.0):
            table.keep(pool)
            visits += 1
    assert visits == 5


def test_a_late_tick_catches_up_one_turn_and_no_more() -> None:
    table = make_table("a", "b")
    table.due(0.0, 8.0)
    assert {pool.key for pool in table.due(10_000.0, 8.0)} == {"a", "b"}
    assert table.due(10_000.1, 8.0) == []


def test_the_decision_to_admit_is_readable() -> None:
    assert repr(ADMITTED) == "ADMITTED"


def test_pools_are_found_by_key_and_by_kind() -> None:
    table = PoolTable(lambda key: UNLIMITED)
    for key in ("broker", "broker:all", "listener:A", "ip:10.0.0.1", "ip:10.0.0.2"):
        table.add(HolderPool(key, table.terms_of(key, 1)))

    def found(*names: str) -> list[str]:
        return sorted(pool.key for pool in table.matching(names))

    assert found("broker") == ["broker", "broker:all"]
    assert found("ip:10.0.0.2", "ip:10.0.0.3") == ["ip:10.0.0.2"]
    assert found("ip", "listener") == ["ip:10.0.0.1", "ip:10.0.0.2", "listener:A"]
    assert found("quota") == []
    table.forget(table.pools["broker:all"])
    assert found("broker") == ["broker"]
