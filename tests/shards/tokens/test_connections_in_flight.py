"""connections_in_flight.py: connections in flight, by what their shard tells the homes of their pools."""

from __future__ import annotations

from typing import Any

import pytest

from shards.limits.caps import UNLIMITED, CapRule
from shards.ownership import home_of
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens

NAME = "kafka_connections_max_per_ip"
FIRST, SECOND = [f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == 1][:2]


class RecordingTokenWaiter:
    def __init__(self) -> None:
        self.decision: Admitted | Refused | None = None

    def decided(self, decision: Admitted | Refused) -> None:
        self.decision = decision


class Shard:
    """Shard 0 of two; both pools are at home at the other, which is the test."""

    def __init__(self) -> None:
        self.rules = {FIRST: CapRule(50, NAME), SECOND: CapRule(50, NAME)}
        self.sent: list[Any] = []
        self.tokens = Tokens(
            0,
            2,
            epoch=1,
            send=lambda peer, message: self.sent.extend(message[1]),
            rule_of=lambda pool: self.rules.get(pool, UNLIMITED),
        )
        self.tokens.peer_up(1, 2)
        self.hears(("sync", 0))

    def arrive(self, *pools: str, at_once: bool = False) -> RecordingTokenWaiter:
        waiter = RecordingTokenWaiter()
        assert self.tokens.take(pools, waiter, at_once=at_once) is None
        return waiter

    def hears(self, *items: tuple[Any, ...]) -> list[Any]:
        self.tokens.receive(1, (2, list(items)))
        return self.says()

    def says(self) -> list[Any]:
        self.tokens.flush()
        self.tokens.check()
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_a_connection_asks_for_one_pool_after_the_other(shard: Shard) -> None:
    waiter = shard.arrive(FIRST, SECOND)
    assert shard.says() == [("borrow", FIRST, 1, 17, 1, 1, False)]
    assert shard.hears(("grant", FIRST, 1, False, 1)) == [("borrow", SECOND, 1, 17, 2, 2, False)]
    assert shard.hears(("grant", SECOND, 1, False, 2)) == []
    assert waiter.decision is ADMITTED


def test_all_that_wait_are_served_before_the_first_goes_on(shard: Shard) -> None:
    """The first is refused by its next pool and gives its token back; the second's is not given back with it."""
    shard.rules[SECOND] = CapRule(0, NAME)
    first, second = shard.arrive(FIRST, SECOND), shard.arrive(FIRST)
    shard.says()
    assert shard.hears(("grant", FIRST, 2, False, 2)) == [("give", FIRST, 1)]
    assert first.decision == Refused(SECOND, CapRule(0, NAME), 0)
    assert second.decision is ADMITTED


def test_a_connection_that_came_after_the_question_is_not_refused_by_the_answer(shard: Shard) -> None:
    early = shard.arrive(FIRST)
    shard.says()
    late = shard.arrive(FIRST)
    assert shard.hears(("refuse", FIRST, 1, 50, NAME, 0, False, None)) == [("borrow", FIRST, 1, 17, 2, 2, False)]
    assert isinstance(early.decision, Refused) and late.decision is None


def test_where_connections_wait_only_one_that_asked_at_once_is_refused(shard: Shard) -> None:
    shard.rules[FIRST] = CapRule(50, NAME, True)
    first, late, last = shard.arrive(FIRST), shard.arrive(FIRST, at_once=True), shard.arrive(FIRST)
    assert shard.says() == [("borrow", FIRST, 1, 17, n, n, n == 2) for n in (1, 2, 3)]
    assert shard.hears(("refuse", FIRST, 2, 50, NAME, 0, True, None)) == []
    assert late.decision == Refused(FIRST, CapRule(50, NAME, True), 0)
    assert shard.hears(("grant", FIRST, 2, False, 3)) == []
    assert first.decision is ADMITTED and last.decision is ADMITTED


def test_a_connection_that_asked_at_once_is_not_refused_as_by_a_cap_while_its_home_says_nothing(shard: Shard) -> None:
    shard.rules[FIRST] = CapRule(50, NAME, True)
    waiting, late = shard.arrive(FIRST), shard.arrive(FIRST, at_once=True)
    shard.says()
    for now_s in (0.0, 0.9):
        shard.tokens.tick(now_s)
    assert shard.says() == [] and late.decision is None
    shard.tokens.tick(1.0)
    assert shard.says() == [("withdraw", FIRST, 2)]
    assert late.decision == Refused(FIRST, CapRule(50, NAME, True), 0, True) and waiting.decision is None


def test_a_connection_that_asked_at_once_says_so_of_each_of_its_pools(shard: Shard) -> None:
    shard.rules[SECOND] = CapRule(0, NAME, True)
    late = shard.arrive(FIRST, SECOND, at_once=True)
    assert shard.says() == [("borrow", FIRST, 1, 17, 1, 1, True)]
    assert shard.hears(("grant", FIRST, 1, False, 1)) == [("borrow", SECOND, 1, 17, 2, 2, True)]
    assert shard.hears(("refuse", SECOND, 2, 0, NAME, 0, True, None)) == [("give", FIRST, 1)]
    assert late.decision == Refused(SECOND, CapRule(0, NAME, True), 0)


def test_a_token_that_is_here_by_now_serves_before_a_refusal(shard: Shard) -> None:
    opened = shard.arrive(FIRST)
    shard.says()
    shard.hears(("grant", FIRST, 1, True, 1))
    assert opened.decision is ADMITTED
    waiting = shard.arrive(FIRST)
    shard.says()
    shard.tokens.release((FIRST,))
    assert shard.hears(("refuse", FIRST, 2, 50, NAME, 0, False, None)) == []
    assert waiting.decision is ADMITTED


def test_the_home_hears_of_a_ticket_that_a_token_for_another_served(shard: Shard) -> None:
    gone, served = shard.arrive(FIRST), shard.arrive(FIRST)
    shard.says()
    shard.tokens.cancel(gone)
    third = shard.arrive(FIRST)
    assert shard.says() == [("withdraw", FIRST, 1), ("borrow", FIRST, 1, 17, 3, 3, False)]
    assert shard.hears(("grant", FIRST, 2, False, 2)) == [
        ("withdraw", FIRST, 3)
    ]  # both were granted before it cancelled
    assert served.decision is ADMITTED and third.decision is ADMITTED


def test_a_revoked_token_is_given_back_by_a_connection_that_still_waits_for_another_pool(shard: Shard) -> None:
    waiter = shard.arrive(FIRST, SECOND)
    shard.says()
    shard.hears(("grant", FIRST, 1, False, 1))
    said = shard.hears(("reclaim", FIRST, True))
    assert said == [
        ("withdraw", SECOND, 2),
        ("give", FIRST, 1),
        ("reclaimed", FIRST, 0),
        ("borrow", FIRST, 1, 17, 3, 3, False),
    ]
    shard.hears(("refuse", FIRST, 3, 4, NAME, 1, False, None))
    assert waiter.decision == Refused(FIRST, CapRule(4, NAME), 1)


def test_an_ordinary_reclaim_leaves_it_what_it_has(shard: Shard) -> None:
    shard.arrive(FIRST, SECOND)
    shard.says()
    shard.hears(("grant", FIRST, 3, True, 1))
    assert shard.hears(("reclaim", FIRST, False)) == [("reclaimed", FIRST, 2)]


def test_a_home_that_comes_back_is_asked_for_everybody_anew(shard: Shard) -> None:
    shard.arrive(FIRST)
    shard.arrive(FIRST)
    shard.says()
    shard.tokens.peer_dead(1)
    assert shard.says() == []
    shard.tokens.peer_up(1, 9)
    assert shard.says() == [("sync", 0), ("borrow", FIRST, 2, 18, 1, 2, False)]


def test_a_home_that_comes_back_gets_no_answer_to_what_it_asked_before(shard: Shard) -> None:
    shard.arrive(FIRST, SECOND)
    shard.says()
    shard.hears(("grant", FIRST, 1, False, 1))
    shard.tokens.receive(1, (2, [("reclaim", FIRST, True)]))
    shard.tokens.peer_dead(1)
    shard.tokens.peer_up(1, 9)
    assert [item[0] for item in shard.says()] == ["report", "sync", "give", "borrow"]


def test_rules_that_change_together_decide_together(shard: Shard) -> None:
    """Who gets on because one cap is gone meets the next pool's new cap, not its old one."""
    shard.rules[SECOND] = CapRule(0, NAME)
    waiter = shard.arrive(FIRST, SECOND)
    shard.says()
    shard.tokens._cache.pool_of(SECOND)
    shard.rules.update({FIRST: UNLIMITED, SECOND: CapRule(7, NAME)})
    shard.tokens.apply(1, lambda: None)
    assert ("borrow", SECOND, 1, 17, 2, 2, False) in shard.says()
    assert waiter.decision is None
