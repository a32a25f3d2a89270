"""tokens.py: what the accept path sees of one shard; how shards work together is in tests/simulation."""

from __future__ import annotations

from typing import Any

import pytest

from shards.limits.caps import UNLIMITED, CapRule
from shards.ownership import home_of
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens

NAME = "kafka_connections_max_per_ip"
CAP = CapRule(2, NAME)
HERE = next(f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == 0)
AWAY = next(f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == 1)


class RecordingTokenWaiter:
    """Notes its decision."""

    def __init__(self) -> None:
        self.decision: Admitted | Refused | None = None

    def decided(self, decision: Admitted | Refused) -> None:
        assert self.decision is None
        self.decision = decision


class Shard:
    """Shard 0 of two; shard 1 is the test."""

    def __init__(self, **rules: CapRule) -> None:
        self.rules = {HERE: CAP, AWAY: CAP, **rules}
        self.sent: list[Any] = []
        self.waits: list[Any] = []
        self.tokens = Tokens(
            0,
            2,
            epoch=1,
            send=lambda peer, message: self.sent.extend(message[1]),
            rule_of=lambda pool: self.rules.get(pool, UNLIMITED),
            on_wait=lambda *what: self.waits.append(what),
        )

    def hears(self, *items: tuple[Any, ...]) -> None:
        self.tokens.receive(1, (2, list(items)))

    def said(self) -> list[Any]:
        self.tokens.flush()
        self.tokens.check()
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def shard() -> Shard:
    shard = Shard()
    shard.tokens.peer_up(1, 2)
    shard.hears(("sync", 0))
    assert shard.said() == [("sync", 0), ("synced", 0)]
    return shard


def test_a_lone_shard_decides_everything_at_once() -> None:
    tokens = Tokens(
        0, 1, epoch=1, send=lambda peer, message: pytest.fail("there is no other shard"), rule_of=lambda pool: CAP
    )
    assert [tokens.take(("broker", HERE), RecordingTokenWaiter()) for _ in range(2)] == [ADMITTED, ADMITTED]
    assert tokens.take(("broker", HERE), RecordingTokenWaiter()) == Refused("broker", CAP, 0)
    tokens.release(("broker", HERE))
    assert tokens.take((HERE,), RecordingTokenWaiter()) is ADMITTED
    tokens.flush()
    assert tokens.totals() == (3, 0, 2)
    assert (tokens.decided_home, tokens.refused) == (4, 1)


def test_at_home_who_waits_for_nobody_is_refused_by_the_end_of_the_pass() -> None:
    rule = CapRule(1, "max.connections", True)
    shard = Shard(**{HERE: rule})
    waiting, late = RecordingTokenWaiter(), RecordingTokenWaiter()
    shard.tokens.peer_dead(1)
    assert shard.said() == []
    assert shard.tokens.take((HERE,), RecordingTokenWaiter()) is ADMITTED
    assert shard.tokens.take((HERE,), waiting) is None
    assert shard.tokens.take((HERE,), late, at_once=True) is None
    shard.said()
    assert waiting.decision is None and late.decision == Refused(HERE, rule, 0)
    shard.tokens.release((HERE,))
    shard.said()
    assert waiting.decision is ADMITTED


def test_a_pool_that_is_at_home_elsewhere_is_borrowed_from(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    assert shard.tokens.take(("broker", AWAY), waiter) is None
    assert shard.said() == [("borrow", AWAY, 1, 17, 1, 1, False)]
    shard.hears(["grant", AWAY, 2, True, 1])
    assert waiter.decision is None  # decisions are told at the end of a pass
    shard.said()
    assert waiter.decision is ADMITTED
    assert shard.tokens.take(("broker", AWAY), RecordingTokenWaiter()) is ADMITTED
    assert (shard.tokens.decided_rpc, shard.tokens.decided_cached, shard.tokens.borrows) == (1, 1, 1)
    assert shard.tokens.totals() == (4, 0, 2)


def test_a_refusal_by_the_home_gives_back_what_was_taken(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    shard.tokens.take((HERE, AWAY), waiter)
    shard.said()
    shard.hears(("refuse", AWAY, 1, 2, NAME, 7, False, None))
    shard.said()
    assert waiter.decision == Refused(AWAY, CAP, 7)
    assert shard.tokens.totals().in_use == 0


def test_a_refused_waiter_may_try_again_from_its_callback(shard: Shard) -> None:
    class Stubborn(RecordingTokenWaiter):
        def decided(self, decision: Admitted | Refused) -> None:
            super().decided(decision)
            assert shard.tokens.take((AWAY,), again) is None

    again = RecordingTokenWaiter()
    shard.tokens.take((AWAY,), Stubborn())
    shard.said()
    shard.hears(("refuse", AWAY, 1, 2, NAME, 0, False, None))
    assert shard.said() == [("borrow", AWAY, 1, 17, 2, 2, False)]


def test_a_connection_that_cancels_is_not_told_and_the_token_goes_home(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    shard.tokens.take((HERE, AWAY), waiter)
    shard.said()
    shard.tokens.cancel(waiter)
    assert shard.said() == [("withdraw", AWAY, 1)]
    shard.hears(("grant", AWAY, 1, False, 1))
    assert shard.said() == [("give", AWAY, 1)]
    assert waiter.decision is None
    shard.tokens.cancel(waiter)  # twice does no harm


def test_a_connection_that_cancels_between_decision_and_callback_gives_everything_back(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    shard.tokens.take((AWAY,), waiter)
    shard.said()
    shard.hears(("grant", AWAY, 1, False, 1))
    shard.tokens.cancel(waiter)
    assert shard.said() == [("give", AWAY, 1)]
    assert waiter.decision is None
    assert shard.tokens.totals().in_use == 0


def test_a_message_of_another_session_is_dropped(shard: Shard) -> None:
    shard.tokens.receive(1, (1, [("borrow", HERE, 1, 1, 1, 1, False)]))
    assert shard.said() == []


def test_a_version_is_done_when_the_peer_has_it_and_knows_of_all_use(shard: Shard) -> None:
    done: list[int] = []
    assert shard.tokens.take(("broker",), RecordingTokenWaiter()) is ADMITTED
    shard.rules[AWAY] = CapRule(5, NAME)
    shard.tokens.apply(1, lambda: done.append(1), {"ip"})
    assert shard.said() == [("sync", 1)]
    shard.hears(("synced", 1))
    shard.said()
    assert done == []
    shard.hears(("sync", 1))
    assert shard.said() == [("synced", 1)]
    assert done == [1]


def test_a_peer_that_dies_is_not_waited_for(shard: Shard) -> None:
    done: list[int] = []
    shard.tokens.apply(1, lambda: done.append(1))
    shard.tokens.peer_dead(1)
    shard.said()
    assert done == [1]


def test_a_change_visits_the_kinds_and_pools_it_names(shard: Shard) -> None:
    asked: list[str] = []
    for pool in ("broker", HERE, "listener:A"):
        shard.tokens.take((pool,), RecordingTokenWaiter())
    shard.tokens._table.rule_of = lambda pool: asked.append(pool) or UNLIMITED  # type: ignore[func-returns-value]
    shard.tokens.apply(1, lambda: None, {"ip", "broker"})
    assert [pool for pool in sorted(asked) if not pool.endswith(":")] == ["broker", HERE]


def test_take_is_refused_at_its_deadline_and_not_before(shard: Shard) -> None:
    shard.tokens.peer_dead(1)
    waiter = RecordingTokenWaiter()
    assert shard.tokens.take((AWAY,), waiter) is None
    for now_s in (500.0, 500.75):
        shard.tokens.tick(now_s)
        shard.said()
    assert waiter.decision is None
    shard.tokens.tick(501.0)
    shard.said()
    assert waiter.decision == Refused(AWAY, CAP, 0, unavailable=True)


def test_a_connection_that_may_wait_has_no_deadline_while_the_home_is_up() -> None:
    shard = Shard(**{AWAY: CapRule(2, "max.connections", wait=True)})
    shard.tokens.peer_up(1, 2)
    waiter = RecordingTokenWaiter()
    shard.tokens.take((AWAY,), waiter)
    for now_s in (0.0, 60.0, 120.0):
        shard.tokens.tick(now_s)
    shard.said()
    assert waiter.decision is None
    shard.tokens.peer_dead(1)
    for now_s in (120.0, 121.5):
        shard.tokens.tick(now_s)
    shard.said()
    assert isinstance(waiter.decision, Refused) and waiter.decision.unavailable


def test_a_waiter_is_told_each_pool_it_comes_to_wait_for_and_its_rule() -> None:
    queue = CapRule(2, "max.connections", wait=True)
    shard = Shard(**{AWAY: queue})
    shard.tokens.peer_up(1, 2)
    waiter = RecordingTokenWaiter()
    told = shard.waits
    other = next(f"ip:10.0.1.{n}" for n in range(100) if home_of(f"ip:10.0.1.{n}", 2) == 1)
    shard.rules[other] = CAP
    assert shard.tokens.take((AWAY, other), waiter) is None
    assert told == [(waiter, AWAY, queue)]
    shard.said()
    shard.hears(("grant", AWAY, 1, False, 1))
    shard.said()
    assert told[1:] == [(waiter, other, CAP)]


def test_what_is_not_used_any_more_is_forgotten(shard: Shard) -> None:
    for pools in ((HERE,), ("broker", "listener:A")):
        assert shard.tokens.take(pools, RecordingTokenWaiter()) is ADMITTED
        shard.tokens.release(pools)
    for now_s in (0.0, 6.0, 12.0):
        shard.tokens.tick(now_s)
        shard.said()
    assert shard.tokens.totals() == (0, 0, 0)


def test_the_fast_path_leaves_nothing_behind(shard: Shard) -> None:
    """A million decisions need no more memory than one: no object survives a take and its release."""
    import gc

    pools = ("broker", "listener:A", HERE)
    waiter = RecordingTokenWaiter()
    shard.tokens.take(pools, waiter)
    shard.tokens.release(pools)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        assert shard.tokens.take(pools, waiter) is ADMITTED
        shard.tokens.release(pools)
    gc.collect()
    assert len(gc.get_objects()) <= before + 5


def test_hooks_hear_what_a_home_grants_and_reclaims() -> None:
    heard: list[tuple[Any, ...]] = []
    tokens = Tokens(
        0,
        2,
        epoch=1,
        send=lambda peer, message: None,
        rule_of=lambda pool: CAP,
        on_grant=lambda *words: heard.append(words),
    )
    tokens.peer_up(1, 2)
    tokens.receive(1, (2, [["sync", 0], ["borrow", HERE, 1, 9, 1, 1, False]]))
    tokens.flush()
    assert heard == [(HERE, 1, 1, False)]


def test_each_home_has_the_whole_deadline_to_answer() -> None:
    other = next(f"ip:10.0.1.{n}" for n in range(100) if home_of(f"ip:10.0.1.{n}", 2) == 1)
    shard = Shard(**{AWAY: CapRule(2, "max.connections", wait=True), other: CAP})
    shard.tokens.peer_up(1, 2)
    waiter = RecordingTokenWaiter()
    shard.tokens.take((AWAY, other), waiter)
    for now_s in (0.0, 60.0):
        shard.tokens.tick(now_s)
    shard.said()
    shard.hears(("grant", AWAY, 1, False, 1))
    shard.said()
    for now_s in (60.25, 61.0):
        shard.tokens.tick(now_s)
        shard.said()
    assert waiter.decision is None
    shard.tokens.tick(61.25)
    shard.said()
    assert waiter.decision == Refused(other, CAP, 0, unavailable=True)


def test_a_suspended_connection_goes_on_with_what_it_holds(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    assert shard.tokens.take((HERE,), waiter) is ADMITTED
    shard.tokens.suspend((HERE,), waiter)
    assert shard.tokens.resume(("broker",), waiter) is ADMITTED
    assert shard.tokens.totals().in_use == 2
    shard.tokens.release((HERE, "broker"))
    assert shard.tokens.totals().in_use == 0


def test_a_suspended_connection_that_is_refused_or_cancelled_holds_nothing(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    shard.rules["broker"] = CapRule(0, NAME)
    for end in (lambda: shard.tokens.resume(("broker",), waiter), lambda: shard.tokens.cancel(waiter)):
        assert shard.tokens.take((HERE,), waiter) is ADMITTED
        shard.tokens.suspend((HERE,), waiter)
        end()
        assert shard.tokens.totals().in_use == 0
        shard.said()


def test_taking_at_hand_stops_at_the_first_pool_that_has_nothing(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    assert shard.tokens.take((HERE, "broker"), waiter) is ADMITTED
    assert shard.tokens.take_at_hand((HERE, "broker")) == 2
    assert shard.tokens.totals().in_use == 4
    assert shard.tokens.take_at_hand(("broker", HERE)) == 1
    assert shard.tokens.totals().in_use == 5
    assert isinstance(shard.tokens.take_rest(("broker", HERE), 1, waiter), Refused)
    assert shard.tokens.totals().in_use == 4
    assert shard.tokens.take_at_hand((AWAY,)) == 0
    assert shard.said() == []


def test_a_connection_that_takes_more_holds_all_of_its_tokens_or_none(shard: Shard) -> None:
    waiter = RecordingTokenWaiter()
    assert shard.tokens.take((HERE,), waiter) is ADMITTED
    assert shard.tokens.take_rest((HERE, "broker"), 1, waiter) is ADMITTED
    shard.tokens.release((HERE, "broker"))
    shard.said()
    shard.rules["broker"] = CapRule(0, "kafka_connections_max")
    shard.tokens.apply(1, lambda: None)
    assert shard.tokens.take((HERE,), waiter) is ADMITTED
    assert isinstance(shard.tokens.take_rest((HERE, "broker"), 1, waiter), Refused)
    assert shard.tokens.totals().in_use == 0
    assert shard.tokens.take((HERE,), waiter) is ADMITTED
    assert shard.tokens.take_rest((HERE, AWAY), 1, waiter) is None
    assert shard.tokens.totals().in_use == 1
    shard.tokens.cancel(waiter)
    assert shard.tokens.totals().in_use == 0


def test_a_cut_revokes_the_tokens_of_a_suspended_connection_before_it_is_done(shard: Shard) -> None:
    """Two open, one suspended, and the cap is cut to two: once that is done, the third is not admitted."""
    shard.rules[HERE] = CapRule(3, NAME)
    shard.tokens.apply(1, lambda: None)
    shard.hears(("sync", 1), ("synced", 1))
    shard.said()
    waiter = RecordingTokenWaiter()
    for each in (RecordingTokenWaiter(), RecordingTokenWaiter(), waiter):
        assert shard.tokens.take((HERE,), each) is ADMITTED
    shard.tokens.suspend((HERE,), waiter)
    shard.rules[HERE] = CAP
    done: list[int] = []
    shard.tokens.apply(2, lambda: done.append(2))
    shard.hears(("sync", 2), ("synced", 2))
    shard.said()
    assert done == [2] and shard.tokens.totals().in_use == 2
    assert shard.tokens.resume(("broker",), waiter) == Refused(HERE, CAP, 2)


def test_a_change_of_something_else_makes_no_new_pool_wait(shard: Shard) -> None:
    """The slowest shard has not applied it: a pool that is new is granted all the same."""
    shard.rules[next_home()] = CAP
    shard.tokens.apply(1, lambda: None, ())
    shard.said()
    assert shard.tokens.take((HERE,), RecordingTokenWaiter()) is ADMITTED
    shard.hears(("borrow", next_home(), 1, 1, 1, 1, False))
    assert ("grant", next_home(), 1, False, 1) in shard.said()


def next_home() -> str:
    """A pool at home on shard 0 that is not known yet."""
    return next(f"ip:10.0.9.{n}" for n in range(100) if home_of(f"ip:10.0.9.{n}", 2) == 0)


def test_tokens_of_a_home_that_is_lost_stay_good_and_are_reported_when_it_is_back() -> None:
    shard = Shard()
    shard.rules[AWAY] = CapRule(100, NAME)
    shard.tokens.peer_up(1, 2)
    waiter = RecordingTokenWaiter()
    shard.tokens.take((AWAY,), waiter)
    shard.hears(("sync", 0), ("grant", AWAY, 5, True, 1))
    shard.said()
    shard.tokens.peer_lost(1)
    assert shard.tokens.take((AWAY,), RecordingTokenWaiter()) is ADMITTED
    shard.said()
    shard.tokens.peer_up(1, 2)
    assert shard.said()[:2] == [("report", AWAY, 2), ("sync", 0)]
    assert shard.tokens.snapshot().held == {1: {AWAY: 2}}


def test_a_version_waits_for_a_shard_that_is_lost_and_not_for_one_that_is_dead(shard: Shard) -> None:
    done: list[int] = []
    shard.tokens.apply(1, lambda: done.append(1), ())
    shard.tokens.peer_lost(1)
    shard.said()
    assert not done
    shard.tokens.peer_dead(1)
    shard.said()
    assert done == [1]


def test_a_connection_that_is_suspended_in_the_pass_of_a_revocation_is_revoked_too() -> None:
    """It was admitted by a grant, and suspended, in the very pass in which the home wanted back what is in flight."""

    class Suspended(RecordingTokenWaiter):
        def decided(self, decision: Admitted | Refused) -> None:
            super().decided(decision)
            shard.tokens.suspend((AWAY,), self)

    shard = Shard()
    shard.tokens.peer_up(1, 2)
    waiter = Suspended()
    shard.tokens.take((AWAY,), waiter)
    shard.said()
    shard.hears(("sync", 0), ("grant", AWAY, 1, True, 1), ("reclaim", AWAY, True))
    assert ("give", AWAY, 1) in shard.said()
    assert waiter.decision is ADMITTED and shard.tokens.totals().in_use == 0
    assert shard.tokens.restarted == 1


def test_a_home_hears_of_waiting_connections_that_got_more_than_it_granted() -> None:
    """Two wait, one token is granted and one is cached here: the home must not go on granting for the second."""
    shard = Shard()
    shard.rules[AWAY] = CapRule(100, NAME)
    shard.tokens.peer_up(1, 2)
    first, second, third = RecordingTokenWaiter(), RecordingTokenWaiter(), RecordingTokenWaiter()
    shard.tokens.take((AWAY,), first)
    shard.hears(("sync", 0), ("grant", AWAY, 1, True, 1))
    shard.said()
    shard.tokens.take((AWAY,), second)
    shard.tokens.take((AWAY,), third)
    shard.said()
    shard.tokens.release((AWAY,))
    shard.hears(("grant", AWAY, 1, True, 3))
    assert shard.said() == [("withdraw", AWAY, 3)]
    assert second.decision is third.decision is ADMITTED
