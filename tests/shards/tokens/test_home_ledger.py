"""home_ledger.py: what a home grants, takes back, asks for and refuses."""

from typing import Any

import pytest

from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.full_pools import FullPools, NoReturnCounts
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import HomePool
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable
from shards.tokens.pool_terms import PoolMode

POOL = "ip:10.0.0.1"
NAME = "kafka_connections_max_per_ip"


class Home:
    """The ledger of shard 0 of four, and what it says to each holder."""

    def __init__(self, cap: int | None = 10, *, wait: bool = False, epoch: int = 1) -> None:
        self.rule = CapRule(cap, NAME if cap is not None else "", wait)
        self.table = PoolTable(lambda key: self.rule)
        self.peers = Peers(0, 4, epoch=epoch)
        self.ticket = 0
        self.heard: list[tuple[Any, ...]] = []
        self.moves: list[tuple[str, int, int, bool]] = []
        self.ledger = HomeLedger(
            0, 4, self.table, self.peers, FullPools(NoReturnCounts(), 0),
            has_in_flight=lambda: False,
            on_grant=self._granted,
            on_return=self._reclaimed,
            on_loss=lambda *words: self.heard.append(("lost", *words)),
        )  # fmt: skip
        for peer in (1, 2, 3):
            self.peers.mark_up(peer, 1 + peer)
            if epoch == 1:
                self.peers.note_applied(peer, 0)
        if not self.peers.unheard:
            self.ledger.unblock()

    def _granted(self, key: str, peer: int, n: int, told: bool) -> None:
        self.heard.append(("grant", key, peer, n, told))
        self.moves.append(("grant", peer, n, told))

    def _reclaimed(self, key: str, peer: int, n: int, asked: bool) -> None:
        self.heard.append(("reclaim", key, peer, n, asked))
        self.moves.append(("reclaim", peer, n, asked))

    def lose(self, peer: int) -> None:
        """The links to a shard break."""
        self.peers.mark_lost(peer)
        self.ledger.peer_lost(peer)

    def come_back(self, peer: int) -> None:
        """The same incarnation is linked again."""
        self.peers.mark_up(peer, 1 + peer)
        self.ledger.peer_back(peer)

    def hear(self, peer: int) -> None:
        """The shard has reported all."""
        self.peers.note_applied(peer, 0)
        self.ledger.peer_reported(peer)

    @property
    def pool(self) -> HomePool:
        return self.ledger.pool_of(POOL)

    def borrow(self, peer: int, waiting: int = 1, welcome: int = 0, *, at_once: bool = False) -> None:
        first = self.ticket + 1
        self.ticket += waiting
        self.ledger.borrow(peer, POOL, waiting, max(welcome, waiting), first, self.ticket, at_once)

    def probed(self, number: int, *peers: int) -> None:
        for peer in peers:
            self.ledger.probed(peer, number)

    def open(self, n: int = 1) -> None:
        self.table.occupy(self.pool, n)

    def close(self, n: int = 1) -> None:
        self.table.vacate(self.pool, n)
        if self.pool.terms.tight:
            self.ledger.freed(self.pool)

    def change(self, rule: CapRule) -> None:
        self.rule = rule
        self.ledger.change_rule(self.pool, rule)
        self.ledger.enforce(self.pool)

    def said(self) -> dict[int, list[Any]]:
        self.ledger.end_pass()
        self.ledger.check()
        said: dict[int, list[Any]] = {0: list(self.peers.outbox.local)} if self.peers.outbox.local else {}
        self.peers.outbox.local.clear()
        self.peers.outbox.flush(lambda peer, message: said.__setitem__(peer, message[1]))
        return said


def test_a_borrow_is_granted_what_it_needs() -> None:
    home = Home(cap=4)  # no more than shards: nothing to cache
    home.borrow(1, 3)
    assert home.said() == {1: [("grant", POOL, 3, False, 3)]}
    assert home.ledger.lent_by_shard(POOL) == {1: 3}
    assert home.pool.terms.limit - home.pool.level == 1


def test_the_first_contact_is_primed_with_a_fair_part_of_the_free_half() -> None:
    home = Home(cap=100)
    home.borrow(1)
    assert home.said() == {1: [("grant", POOL, 1 + (50 - 1) // 4, True, 1)]}
    home.borrow(1, 1, welcome=3)
    assert home.said() == {1: [("grant", POOL, 3, True, 2)]}


def test_a_pool_that_is_half_used_grants_nothing_to_spare() -> None:
    home = Home(cap=100)
    home.open(50)
    home.borrow(1, 2, welcome=20)
    assert home.said() == {1: [("grant", POOL, 2, True, 2)]}


def test_without_a_cap_everybody_gets_what_he_asks_for() -> None:
    home = Home(cap=None)
    home.borrow(1, 1000)
    assert home.said() == {1: [("grant", POOL, 1000, True, 1000)]}


def test_what_only_the_home_uses_needs_no_question() -> None:
    home = Home(cap=2)
    home.open(2)
    home.borrow(1, 3)
    assert home.said() == {1: [("refuse", POOL, 3, 2, NAME, 0, False, None)]}
    assert home.ledger.waiting(POOL) == 0


def test_a_dry_pool_asks_every_holder_for_what_it_caches() -> None:
    home = Home(cap=40)
    home.borrow(1)
    home.borrow(2)
    home.said()
    home.open(home.pool.terms.limit - home.pool.level)
    home.borrow(3)
    assert home.said() == {1: [("reclaim", POOL, False)], 2: [("reclaim", POOL, False)]}
    assert home.pool.mode is PoolMode.RECLAIMING
    home.borrow(2)  # waits for the same answers
    assert home.said() == {}
    home.ledger.reclaimed(1, POOL, 1)
    assert home.said() == {3: [("grant", POOL, 1, False, 3)]}
    home.ledger.reclaimed(2, POOL, 3)
    assert home.said() == {2: [("grant", POOL, 1, False, 4)]}
    assert home.pool.mode is PoolMode.TIGHT


def test_a_refusal_takes_an_answer_from_every_shard_that_has_tokens_or_waits() -> None:
    home = Home(cap=2)
    home.borrow(1)
    home.borrow(2)
    home.said()
    home.borrow(3, 2)
    assert home.said() == {1: [("reclaim", POOL, False)], 2: [("reclaim", POOL, False)]}
    home.ledger.reclaimed(1, POOL, 0)
    home.ledger.reclaimed(2, POOL, 0)
    assert home.said() == {peer: [("probe", 1)] for peer in (1, 2, 3)}
    home.probed(1, 1)
    assert home.said() == {}
    home.probed(1, 2, 3)
    assert home.said() == {3: [("refuse", POOL, 4, 2, NAME, 0, False, None)]}


def make_full(home: Home) -> None:
    """Shard 1 has the only token, and the pool is tight."""
    home.borrow(1)
    home.borrow(2)
    home.said()
    home.ledger.reclaimed(1, POOL, 0)
    home.said()
    home.probed(1, 1, 2)
    assert home.said() == {2: [("refuse", POOL, 2, 1, NAME, 0, False, None)]}


def test_where_connections_wait_only_one_that_asked_at_once_is_refused_and_by_the_same_proof() -> None:
    home = Home(cap=1, wait=True)
    home.borrow(1)
    home.said()
    home.borrow(2)
    home.borrow(2, at_once=True)
    home.borrow(3)
    assert home.said() == {1: [("reclaim", POOL, False)]}
    home.ledger.reclaimed(1, POOL, 0)
    assert home.said() == {peer: [("probe", 1)] for peer in (1, 2, 3)}
    home.probed(1, 1, 2, 3)
    assert home.said() == {2: [("refuse", POOL, 3, 1, NAME, 0, True, None)]}
    home.ledger.give(1, POOL, 1)
    assert home.said() == {2: [("grant", POOL, 1, False, 2)]}
    assert home.ledger.waiting(POOL) == 1


def test_no_probe_is_sent_while_all_wait() -> None:
    home = Home(cap=1, wait=True)
    home.borrow(1)
    home.borrow(2)
    home.said()
    home.ledger.reclaimed(1, POOL, 0)
    assert home.said() == {}


def test_a_token_that_arrives_before_the_answer_serves_a_connection_that_waits() -> None:
    home = Home(cap=1)
    make_full(home)
    home.borrow(2)
    assert home.said() == {1: [("probe", 2)], 2: [("probe", 2)]}
    home.ledger.give(1, POOL, 1)
    home.probed(2, 1, 2)
    assert home.said() == {2: [("grant", POOL, 1, False, 3)]}


def test_a_borrow_that_came_after_the_question_gets_the_next() -> None:
    home = Home(cap=1)
    make_full(home)
    home.borrow(2)
    home.said()
    home.borrow(3)
    home.probed(2, 1, 2)
    assert home.said() == {2: [("refuse", POOL, 3, 1, NAME, 0, False, None)], 1: [("probe", 3)], 3: [("probe", 3)]}


def test_a_report_during_a_fence_makes_it_worthless() -> None:
    home = Home(cap=1)
    make_full(home)
    home.borrow(2)
    home.said()
    home.ledger.report(3, POOL, 1)
    home.said()
    home.probed(2, 1, 2)
    assert not any(item[0] == "refuse" for items in home.said().values() for item in items)


def test_who_went_away_with_a_token_under_way_makes_it_worthless_too() -> None:
    home = Home(cap=1)
    make_full(home)
    home.borrow(2)
    home.borrow(3)
    home.said()
    home.ledger.give(1, POOL, 1)
    assert home.said() == {2: [("grant", POOL, 1, False, 3)]}
    home.ledger.withdraw(2, POOL, 3)
    home.probed(2, 1, 2, 3)
    assert home.said() == {2: [("probe", 3)], 3: [("probe", 3)]}  # the token is there now, and unused
    home.ledger.give(2, POOL, 1)
    assert home.said() == {3: [("grant", POOL, 1, False, 4)]}


def test_a_connection_that_waits_no_more_is_not_served() -> None:
    home = Home(cap=1, wait=True)
    home.open()
    home.borrow(1, 2)
    home.borrow(2)
    home.ledger.withdraw(1, POOL, 1)
    home.ledger.withdraw(1, POOL, 2)
    home.ledger.withdraw(1, POOL, 2)  # once too often does no harm
    home.close()
    assert home.said() == {2: [("grant", POOL, 1, False, 3)]}


def test_a_rule_that_lets_wait_refuses_nobody() -> None:
    home = Home(cap=1, wait=True)
    home.open()
    home.borrow(1)
    home.borrow(0)
    assert home.said() == {}
    home.close()
    assert home.said() == {1: [("grant", POOL, 1, False, 1)]}
    home.ledger.give(1, POOL, 1)
    assert home.said() == {0: [("grant", POOL, 1, False, 2)]}


def test_a_rule_that_does_not_let_wait_any_more_refuses_the_connections_that_waited() -> None:
    home = Home(cap=1, wait=True)
    home.open()
    home.borrow(1)
    home.change(CapRule(1, NAME))
    assert home.said() == {1: [("refuse", POOL, 1, 1, NAME, 0, False, None)]}


@pytest.mark.parametrize("rule", [UNLIMITED, CapRule(3, NAME)])
def test_more_room_serves_connections_that_wait(rule: CapRule) -> None:
    home = Home(cap=1, wait=True)
    home.open()
    home.borrow(1, 2)
    home.change(rule)
    [grant] = home.said()[1]
    assert grant[:3] == ("grant", POOL, 2)


def test_a_cut_takes_back_what_is_not_needed_and_is_settled_when_that_is_done() -> None:
    home = Home(cap=100)
    home.borrow(1)
    home.said()
    home.change(CapRule(5, NAME))
    assert home.said() == {1: [("reclaim", POOL, True)]}
    assert POOL in home.ledger.revocation.revoking
    home.ledger.reclaimed(1, POOL, 12)
    assert not home.ledger.revocation.revoking
    assert home.ledger.lent_by_shard(POOL) == {1: 1}


def test_a_cut_that_leaves_room_takes_nothing_back() -> None:
    home = Home(cap=100)
    home.borrow(1)
    home.said()
    home.change(CapRule(50, NAME))
    assert home.said() == {} and not home.ledger.revocation.revoking


def test_a_new_home_grants_nothing_before_every_older_shard_has_reported() -> None:
    home = Home(cap=4, epoch=9)
    home.open(3)
    assert home.pool.level >= home.pool.terms.limit
    home.peers.note_applied(1, 1)
    home.borrow(1)
    home.ledger.report(2, POOL, 2)
    assert home.said() == {}
    home.peers.note_applied(2, 1)
    home.peers.mark_dead(3)
    assert not home.peers.unheard
    home.ledger.unblock()
    assert home.pool.out == 5
    assert home.said() == {2: [("reclaim", POOL, True)]}


def test_a_younger_shard_has_nothing_that_this_home_did_not_grant() -> None:
    home = Home(cap=4)
    home.peers.mark_dead(1)
    home.peers.mark_up(1, 20)  # it has not told anything yet
    home.borrow(2)
    assert home.said() == {2: [("grant", POOL, 1, False, 1)]}


def test_a_cap_that_appears_is_enforced_at_once_on_what_is_known() -> None:
    home = Home(cap=None)
    home.open(3)
    home.change(CapRule(4, NAME))
    home.borrow(1)
    assert home.said() == {1: [("grant", POOL, 1, False, 1)]}
    home.ledger.report(2, POOL, 2)
    assert home.pool.out == 6 and home.ledger.revocation.revoking
    assert home.said() == {1: [("reclaim", POOL, True)], 2: [("reclaim", POOL, True)]}


def test_tokens_of_a_lost_shard_stay_out_until_it_has_reported() -> None:
    home = Home(cap=8)
    home.borrow(1, 3)
    home.said()
    home.lose(1)
    assert home.pool.out == 3 and home.ledger.lent_by_shard(POOL) == {1: 3}
    home.come_back(1)
    home.ledger.report(1, POOL, 2)
    assert home.pool.out == 3
    home.hear(1)
    assert home.pool.out == 2 and home.ledger.lent_by_shard(POOL) == {1: 2}
    assert home.moves == [("grant", 1, 3, False), ("reclaim", 1, 1, False)]


def test_a_lost_shard_that_reports_more_than_it_was_granted_has_more() -> None:
    home = Home(cap=8)
    home.borrow(1, 3)
    home.lose(1)
    home.come_back(1)
    home.ledger.report(1, POOL, 5)
    home.hear(1)
    assert home.pool.out == 5
    assert home.moves == [("grant", 1, 3, False), ("grant", 1, 2, True)]


def test_nothing_is_refused_while_a_lost_shard_may_have_tokens() -> None:
    home = Home(cap=2)
    home.borrow(1, 2)
    home.borrow(2)
    home.ledger.reclaimed(1, POOL, 0)
    assert ("probe", 1) in home.said()[1]
    home.lose(1)
    home.probed(1, 1, 2)
    assert home.said() == {}
    home.come_back(1)
    home.ledger.report(1, POOL, 1)
    assert home.said() == {}
    home.hear(1)
    assert home.said() == {2: [("grant", POOL, 1, False, 3)]}


def test_a_lost_shard_is_asked_again_for_what_it_has_to_give_back() -> None:
    home = Home(cap=8)
    home.borrow(1, 4)
    home.said()
    home.change(CapRule(2, NAME))
    home.change(CapRule(1, NAME))
    assert home.said() == {1: [("reclaim", POOL, True), ("reclaim", POOL, True)]}
    home.lose(1)
    assert home.ledger.revocation.revoking
    home.come_back(1)
    assert home.said() == {1: [("reclaim", POOL, True)]}
    home.ledger.report(1, POOL, 2)
    home.ledger.reclaimed(1, POOL, 0)
    home.hear(1)
    assert not home.ledger.revocation.revoking


def test_tokens_of_a_lost_shard_that_died_are_free() -> None:
    home = Home(cap=2)
    home.borrow(1, 2)
    home.said()
    home.lose(1)
    home.borrow(2)
    assert home.said() == {}
    home.peers.mark_dead(1)
    home.ledger.peer_dead(1)
    assert home.said() == {2: [("grant", POOL, 1, False, 3)]}


def test_the_dead_leave_their_tokens_and_their_place() -> None:
    home = Home(cap=2, wait=True)
    home.borrow(1, 2)
    home.borrow(2)
    home.borrow(3)
    home.said()
    home.peers.mark_dead(2)
    home.ledger.peer_dead(2)
    home.peers.mark_dead(1)
    home.ledger.peer_dead(1)
    assert home.said() == {3: [("grant", POOL, 1, False, 4)]}


def test_the_dead_are_not_waited_for() -> None:
    home = Home(cap=2)
    home.borrow(1)
    home.borrow(2)
    home.borrow(3)
    home.said()
    home.ledger.reclaimed(2, POOL, 0)
    home.peers.mark_dead(1)
    home.ledger.peer_dead(1)
    assert home.said() == {3: [("grant", POOL, 1, False, 3)]}


def test_a_tight_pool_opens_when_it_is_half_empty() -> None:
    home = Home(cap=10)
    home.open(10)
    home.borrow(1)
    assert home.pool.mode is PoolMode.TIGHT
    home.said()  # the end of the pass: it is refused
    home.close(4)
    assert home.pool.mode is PoolMode.TIGHT
    home.close(1)
    assert home.pool.mode is PoolMode.OPEN


def test_a_small_pool_stays_tight() -> None:
    home = Home(cap=4)
    home.open(4)
    home.borrow(1)
    home.close(4)
    assert home.pool.mode is PoolMode.TIGHT


def test_a_give_of_what_was_never_granted_is_a_bug() -> None:
    with pytest.raises(RuntimeError, match="more than it was granted"):
        Home().ledger.give(1, POOL, 1)


def test_hooks_hear_of_every_token_that_goes_out_or_comes_back() -> None:
    home = Home(cap=40)
    heard = home.heard
    home.borrow(1)
    home.open(home.pool.terms.limit - home.pool.level)
    home.borrow(2)
    home.ledger.reclaimed(1, POOL, 2)
    assert heard == [("grant", POOL, 1, 5, False), ("reclaim", POOL, 1, 2, True), ("grant", POOL, 2, 1, False)]
    assert home.ledger.revocation.reclaims == 1
    heard.clear()
    home.ledger.report(3, POOL, 4)
    home.ledger.reclaimed(2, POOL, 0)
    home.ledger.give(1, POOL, 1)
    home.ledger.peer_dead(1)
    home.ledger.peer_dead(1)
    assert heard == [("grant", POOL, 3, 4, True), ("reclaim", POOL, 1, 1, False), ("lost", 1, {POOL: 2})]


def test_a_pool_with_nothing_out_is_not_worth_remembering() -> None:
    home = Home()
    assert not home.ledger.sweep(home.pool)
    home.open()
    assert home.ledger.sweep(home.pool)
    home.close()
    home.borrow(1)
    assert home.ledger.sweep(home.pool)
