"""The ledger alone, against holders made of ten plain lines: any order of borrow, give, reclaim, cut, raise and death."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shards.limits.caps import CapRule
from shards.tokens.full_pools import FullPools, NoReturnCounts
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable
from shards.tokens.pool_terms import PoolMode

POOL = "ip:10.0.0.1"
HOLDERS = (1, 2, 3)
holders = st.sampled_from(HOLDERS)


class LedgerMachine(RuleBasedStateMachine):
    """The home is shard 0. What it posts stays in its outbox until a holder reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.rule = CapRule(4, "cap")
        self.peers = Peers(0, 4, epoch=1)
        self.table = PoolTable(lambda pool: self.rule)
        self.ledger = HomeLedger(
            0, 4, self.table, self.peers, FullPools(NoReturnCounts(), 0), has_in_flight=lambda: False
        )
        self.epoch = 1
        self.highest = 4  # out may not rise above this: the cap, or what was out when it was cut
        self.inboxes: dict[int, deque[tuple[Any, ...]]] = {}
        self.in_use: dict[int, int] = {}
        self.spare: dict[int, int] = {}
        self.waiting: dict[int, list[int]] = {}
        self.at_once: set[int] = set()  # tickets
        self.tight: dict[int, bool] = {}
        self.ticket = 0
        for holder in HOLDERS:
            self.live(holder)
        self.ledger.unblock()

    def live(self, holder: int) -> None:
        self.epoch += 1
        self.peers.mark_up(holder, self.epoch)
        self.peers.note_applied(holder, 0)
        self.inboxes[holder] = deque()
        self.in_use[holder] = self.spare[holder] = 0
        self.waiting[holder] = []
        self.tight[holder] = False

    @rule(holder=holders, count=st.integers(1, 5), at_once=st.booleans())
    def borrow(self, holder: int, count: int, at_once: bool) -> None:
        first = self.ticket + 1
        self.ticket += count
        tickets = range(first, self.ticket + 1)
        self.waiting[holder] += tickets
        self.at_once.update(tickets if at_once else ())
        self.ledger.borrow(holder, POOL, count, count + 8, first, self.ticket, at_once)

    @rule(holder=holders)
    def read(self, holder: int) -> None:
        """A holder reads one item, and answers at once."""
        self.flush()
        if not self.inboxes[holder]:
            return
        kind, *rest = self.inboxes[holder].popleft()
        if kind == "grant":
            _, n, may_cache, last = rest
            self.tight[holder] = not may_cache
            for _ in range(n):
                if self.waiting[holder]:
                    self.in_use[holder] += 1
                    ticket = self.waiting[holder].pop(0)
                    if ticket > last:
                        self.ledger.withdraw(holder, POOL, ticket)
                elif may_cache:
                    self.spare[holder] += 1
                else:
                    self.ledger.give(holder, POOL, 1)
        elif kind == "refuse":
            last, wait = rest[1], rest[-1]
            self.waiting[holder] = [
                ticket for ticket in self.waiting[holder] if ticket > last or (wait and ticket not in self.at_once)
            ]
        elif kind == "reclaim":
            n, self.spare[holder] = self.spare[holder], 0
            self.tight[holder] = True
            self.ledger.reclaimed(holder, POOL, n)
        elif kind == "probe":
            self.ledger.probed(holder, rest[0])

    @rule(holder=holders)
    @precondition(lambda self: any(self.in_use.values()))
    def close(self, holder: int) -> None:
        if self.in_use[holder]:
            self.in_use[holder] -= 1
            if self.tight[holder]:
                self.ledger.give(holder, POOL, 1)
            else:
                self.spare[holder] += 1

    @rule(holder=holders)
    def cancel(self, holder: int) -> None:
        if self.waiting[holder]:
            self.ledger.withdraw(holder, POOL, self.waiting[holder].pop(0))

    @rule()
    def open_at_home(self) -> None:
        pool = self.ledger.pool_of(POOL)
        if pool.level < pool.terms.limit:
            self.table.occupy(pool)

    @rule()
    def close_at_home(self) -> None:
        pool = self.ledger.pool_of(POOL)
        if pool.in_use:
            self.table.vacate(pool)
            if pool.terms.tight:
                self.ledger.freed(pool)

    @rule(cap=st.one_of(st.integers(0, 12)), wait=st.booleans())
    def change_cap(self, cap: int, wait: bool) -> None:
        pool = self.ledger.pool_of(POOL)
        self.rule = CapRule(cap, "cap", wait)
        self.highest = max(cap, pool.out)
        self.ledger.change_rule(pool, self.rule)
        self.ledger.enforce(pool)

    @rule(holder=holders)
    def die_and_come_back(self, holder: int) -> None:
        self.peers.mark_dead(holder)
        self.ledger.peer_dead(holder)
        self.live(holder)

    @rule()
    def flush(self) -> None:
        self.ledger.end_pass()
        self.peers.outbox.flush(lambda holder, message: self.inboxes[holder].extend(message[1]))

    @invariant()
    def parts_agree(self) -> None:
        self.ledger.check()
        self.table.check()

    @invariant()
    def out_never_rises_above_the_cap(self) -> None:
        pool = self.ledger.pool_of(POOL)
        assert pool.out <= self.highest
        self.highest = max(self.rule.cap or 0, pool.out)

    @invariant()
    def lent_is_held_plus_on_the_way(self) -> None:
        for holder in HOLDERS:
            on_the_way = [
                item for item in (*self.inboxes[holder], *self.peers.outbox.queued(holder)) if item[0] == "grant"
            ]
            held = self.in_use[holder] + self.spare[holder] + sum(item[2] for item in on_the_way)
            assert self.ledger.lent_by_shard(POOL).get(holder, 0) == held

    @invariant()
    def a_tight_pool_is_cached_nowhere(self) -> None:
        if self.ledger.pool_of(POOL).mode is PoolMode.TIGHT:
            assert not any(self.spare.values())

    def teardown(self) -> None:
        """Everything is read and closed: then no connection waits, and every token is free."""
        for _ in range(200):
            self.flush()
            for holder in HOLDERS:
                while self.inboxes[holder]:
                    self.read(holder)
                while self.in_use[holder]:
                    self.close(holder)
                while self.rule.wait and self.rule.cap == 0 and self.waiting[holder]:
                    self.cancel(holder)
            self.close_at_home()
        assert not any(self.waiting.values())
        pool = self.ledger.pool_of(POOL)
        assert pool.out == sum(self.spare.values())


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
