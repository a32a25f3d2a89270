"""A change that visits more pools than one pass may: what holds before the last of them has its rule (rule_changes.py)."""

from random import Random
from typing import Any

import pytest

from shards.limits.caps import GENERAL, UNLIMITED, CapRule
from shards.ownership import home_of
from shards.tokens.rule_changes import RuleChanges
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens

NAME = "kafka_connections_max_per_ip"
GENERAL_IP = f"{GENERAL}ip"
ADDRESSES = [f"ip:10.0.0.{number}" for number in range(40)]
HERE = [pool for pool in ADDRESSES if home_of(pool, 2) == 0]
AWAY = [pool for pool in ADDRESSES if home_of(pool, 2) == 1]


class Waiter:
    """Notes its decision."""

    decision: Admitted | Refused | None = None

    def decided(self, decision: Admitted | Refused) -> None:
        self.decision = decision


class Shard:
    """Shard 0 of two, which visits three pools in a pass; shard 1 is the test. One rule for all addresses."""

    def __init__(self, cap: int | None, *, is_met: bool = True) -> None:
        self.rule = CapRule(cap, NAME if cap is not None else "")
        self.sent: list[Any] = []
        self.done: list[int] = []
        self.tokens = Tokens(
            0,
            2,
            epoch=1,
            send=lambda peer, message: self.sent.extend(message[1]),
            rule_of=lambda pool: self.rule if pool.startswith("ip:") else UNLIMITED,
            piece=3,
        )
        if is_met:
            self.tokens.peer_up(1, 2)
            self.hears(("sync", 0))
            self.end_pass()

    def hears(self, *items: tuple[Any, ...]) -> None:
        self.tokens.receive(1, (2, list(items)))

    def end_pass(self) -> list[Any]:
        self.tokens.continue_change()
        return self.flush()

    def flush(self) -> list[Any]:
        self.tokens.flush()
        self.tokens.check()
        sent, self.sent = self.sent, []
        return sent

    def takes(self, *pools: str) -> None:
        for pool in pools:
            assert self.tokens.take((pool,), Waiter()) is ADMITTED

    def applies(self, version: int, cap: int | None, changed: str = "ip") -> None:
        self.rule = CapRule(cap, NAME if cap is not None else "")
        self.tokens.apply(version, lambda: self.done.append(version), {changed})

    def hears_grants(self, *pools: str) -> None:
        self.hears(*(("grant", pool, 3, True, 0) for pool in pools))
        self.flush()


@pytest.mark.parametrize("pools", [HERE[:3], HERE[:6], HERE[:8]])
def test_peers_hear_of_a_version_once_every_pool_has_its_rule(pools: list[str]) -> None:
    shard = Shard(None)
    shard.takes(*pools)
    shard.applies(1, 5)
    passes = 0
    while shard.tokens.changing:
        assert ("sync", 1) not in shard.flush()
        shard.tokens.continue_change()
        passes += 1
    assert ("sync", 1) in shard.flush()
    assert passes == (0 if len(pools) == 3 else len(pools) // 3 + 1)
    assert all(each["cap"] == 5 for each in shard.tokens.describe()["home"])


def test_use_without_a_cap_is_reported_before_the_version_is_told() -> None:
    shard = Shard(None)
    shard.takes(*AWAY[:8])
    shard.applies(1, 5)
    said: list[Any] = []
    while shard.tokens.changing:
        said += shard.end_pass()
    assert sorted(said[:-1]) == [("report", pool, 1) for pool in sorted(AWAY[:8])]
    assert said[-1] == ("sync", 1)


def test_a_connection_that_asks_is_decided_by_the_new_rule_though_its_pool_was_not_visited_yet() -> None:
    shard = Shard(5)
    for pool in HERE[:8]:
        shard.takes(pool)
    shard.applies(1, 1)
    shard.applies(2, 0)
    refused = shard.tokens.take((HERE[7], "listener:A"), Waiter())
    assert refused is ADMITTED, "a token at hand, under the earlier rule"
    shard.hears(("borrow", HERE[6], 1, 1, 1, 1, False))
    assert ("refuse", HERE[6], 1, 0, NAME, 2, False, None) in shard.flush()


def test_connections_that_wait_are_served_at_once() -> None:
    shard = Shard(1)
    shard.takes(*HERE[:7])
    here, away = Waiter(), Waiter()
    shard.hears(("borrow", HERE[7], 1, 1, 7, 7, False))
    shard.flush()
    for pool, waiter in ((HERE[7], here), (AWAY[0], away)):
        assert shard.tokens.take((pool,), waiter) is None
    assert ("reclaim", HERE[7], False) in shard.flush()
    shard.applies(1, 3)
    shard.flush()
    assert (here.decision, away.decision) == (ADMITTED, None)
    shard.applies(2, None)
    shard.flush()
    assert away.decision is ADMITTED


def test_versions_that_come_meanwhile_are_done_in_their_order() -> None:
    shard = Shard(5)
    shard.takes(*HERE[:8])
    shard.applies(1, 6)
    shard.end_pass()
    shard.applies(2, 7)
    shard.tokens.apply(3, lambda: shard.done.append(3), {"broker"})
    told = [item for _ in range(8) for item in shard.end_pass() if item[0] == "sync"]
    assert told == [("sync", 1), ("sync", 2), ("sync", 3)]
    shard.hears(("sync", 3), ("synced", 3))
    shard.flush()
    assert shard.done == [1, 2, 3]
    assert all(each["cap"] == 7 for each in shard.tokens.describe()["home"])


@pytest.mark.parametrize("is_met", [False, True])
def test_a_pool_that_is_forgotten_meanwhile_is_left_alone(is_met: bool) -> None:
    shard = Shard(None, is_met=is_met)
    for pool in HERE[:8]:
        shard.takes(pool)
        shard.tokens.release((pool,))
    shard.applies(1, 6)
    for now_s in range(0, 40, 2):
        shard.tokens.tick(float(now_s))
    assert shard.tokens.totals().pools == 0
    while shard.tokens.changing:
        shard.end_pass()
    assert shard.tokens.totals().pools == 0


def test_a_pool_that_is_new_meanwhile_has_the_new_rule() -> None:
    shard = Shard(5)
    shard.takes(*HERE[:8])
    shard.applies(1, 1)
    shard.takes(HERE[9])
    assert shard.tokens.take((HERE[9],), Waiter()) == Refused(HERE[9], CapRule(1, NAME), 1)


def test_versions_of_something_else_need_no_sweep_of_their_own() -> None:
    shard = Shard(5)
    shard.takes(*HERE[:8])
    shard.applies(1, 6)
    version = 1
    for _ in range(20):
        version += 1
        shard.tokens.apply(version, lambda: None, ())
        shard.end_pass()
    assert not shard.tokens.changing


@pytest.mark.parametrize("caps", [(5, 7), (5, 2), (7, 3), (2, 5), (4, None), (None, 4), (3, 0)], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_most_pools_get_their_rule_as_refresh_gives_it(
    caps: tuple[int | None, int | None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, before = Random(seed), caps[0]
    use = [(random.choice([*HERE, *AWAY]), random.randrange(4)) for _ in range(60)]
    tables = []
    for is_plain in (True, False):
        if not is_plain:
            monkeypatch.setattr(RuleChanges, "_refresh_plain", lambda self, piece: piece)
        shard = Shard(before)
        for pool, what in use:
            if what == 0 and pool in HERE:
                shard.hears(("borrow", pool, 1, 1, 1, 1, True))
            elif pool in HERE or before is None:
                shard.tokens.take((pool,), Waiter())
            else:
                shard.hears(("grant", pool, 1, what > 1, 0))
        shard.end_pass()
        shard.applies(1, caps[1])
        said = [item for _ in range(20) for item in shard.end_pass()]
        assert not shard.tokens.changing
        pools = shard.tokens._table.pools.values()
        tables.append(
            (said, [(pool.key, pool.in_use, pool.terms.limit - pool.level, pool.rule, pool.mode) for pool in pools])
        )
    assert tables[0] == tables[1]


def test_nothing_is_granted_under_another_cap_either_before_older_peers_have_reported() -> None:
    shard = Shard(5, is_met=False)
    for pool in HERE[:8]:
        waiter = Waiter()
        assert shard.tokens.take((pool,), waiter) is None
        shard.tokens.cancel(waiter)
    shard.applies(1, 7)
    while shard.tokens.changing:
        shard.end_pass()
    assert {each.terms.limit for each in shard.tokens._table.pools.values()} == {0}


def test_what_a_dead_holder_had_is_free_before_the_new_rule_is_enforced() -> None:
    shard = Shard(10)
    shard.takes(*HERE[:8], HERE[8], HERE[8], HERE[8])
    shard.hears(("borrow", HERE[8], 4, 4, 1, 4, False))
    shard.flush()
    shard.applies(1, 5)
    shard.tokens.peer_dead(1)
    shard.flush()
    assert shard.tokens.reclaims == 0


def test_another_general_cap_is_in_force_at_once_however_many_pools_there_are() -> None:
    shard = Shard(5)
    shard.takes(*HERE[:12])
    shard.applies(1, 2, GENERAL_IP)
    assert not shard.tokens.changing
    assert shard.flush() == [("recall", "ip"), ("sync", 1)]
    shard.takes(*HERE[:12])
    assert shard.tokens.take((HERE[3],), Waiter()) == Refused(HERE[3], CapRule(2, NAME), 1)
    shard.applies(2, 3, GENERAL_IP)
    assert shard.flush() == [("sync", 2)], "a raised cap leaves nothing to recall"
    shard.takes(*HERE[:12])


def test_a_general_cap_that_appears_or_goes_is_carried_to_each_pool() -> None:
    shard = Shard(None)
    shard.takes(*HERE[:6], *AWAY[:6])
    shard.applies(1, 5, GENERAL_IP)
    assert shard.tokens.changing
    said = [item for _ in range(6) for item in shard.end_pass()]
    assert sorted(said[:-1]) == [("report", pool, 1) for pool in sorted(AWAY[:6])] and said[-1] == ("sync", 1)


def test_nothing_is_recalled_by_a_shard_that_is_home_to_no_pool_of_the_kind() -> None:
    shard = Shard(5)
    shard.hears_grants(*AWAY[:4])
    shard.applies(1, 2, GENERAL_IP)
    assert shard.flush() == [("sync", 1)]
    shard.takes(AWAY[0])
    assert shard.tokens.totals().cached == 11, "its home decides what is recalled"


def test_a_recalled_token_is_not_taken_but_given_back_by_a_connection_that_comes_for_it() -> None:
    shard = Shard(5)
    shard.hears_grants(*AWAY[:4])
    shard.hears(("recall", "ip"))
    assert shard.flush() == []
    waiter = Waiter()
    assert shard.tokens.take((AWAY[0],), waiter) is None
    assert shard.flush() == [("give", AWAY[0], 3), ("borrow", AWAY[0], 1, 17, 1, 1, False)]
    shard.hears(("grant", AWAY[0], 2, True, 1))
    shard.flush()
    assert waiter.decision is ADMITTED
    shard.takes(AWAY[0])


def test_a_connection_that_waits_is_served_at_once_by_a_higher_general_cap() -> None:
    shard = Shard(1)
    shard.hears(("borrow", HERE[7], 1, 1, 7, 7, False))
    shard.flush()
    waiter = Waiter()
    assert shard.tokens.take((HERE[7],), waiter) is None
    assert ("reclaim", HERE[7], False) in shard.flush()
    shard.applies(1, 3, GENERAL_IP)
    shard.flush()
    assert waiter.decision is ADMITTED


def test_a_general_cap_is_changed_and_changed_back_while_another_change_visits_pools() -> None:
    shard = Shard(None)
    shard.takes(*HERE[:8])
    shard.applies(1, 5, GENERAL_IP)
    shard.end_pass()
    shard.applies(2, 4, GENERAL_IP)
    shard.applies(3, 5, GENERAL_IP)
    told = [item for _ in range(8) for item in shard.end_pass() if item[0] == "sync"]
    assert told == [("sync", 1), ("sync", 2), ("sync", 3)]
    assert all(each["cap"] == 5 for each in shard.tokens.describe()["home"])


def test_terms_that_no_pool_has_are_forgotten() -> None:
    shard = Shard(5)
    shard.takes(*HERE[:8])
    now_s = 0.0
    for _ in range(200):
        shard.hears_grants(*AWAY[:2])
        shard.hears(("recall", "ip"))
        shard.flush()
        now_s += 0.5
        shard.tokens.tick(now_s)
    assert len(shard.tokens._table.terms._known) < 20
