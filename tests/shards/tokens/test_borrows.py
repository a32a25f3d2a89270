"""borrows.py: what a shard asks the homes of pools for, and what it asks for no more."""

from typing import Any

from shards.limits.caps import CapRule
from shards.ownership import home_of
from shards.tokens.attempt_queues import Attempt, AttemptQueues
from shards.tokens.borrows import Borrows
from shards.tokens.full_pools import FullPools, NoReturnCounts
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.peers import Peers
from shards.tokens.pool import Admitted, PoolTable, Refused

HERE, THERE = (next(f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == home) for home in (0, 1))


class IgnoringTokenWaiter:
    def decided(self, decision: Admitted | Refused) -> None:
        pass


class Shard:
    """Shard 0 of two."""

    def __init__(self, *, is_up: bool = True) -> None:
        self.peers = Peers(0, 2, epoch=1)
        table = PoolTable(lambda key: CapRule(1, "max.connections.per.ip"))
        self.ledger = HomeLedger(
            0, 2, table, self.peers, FullPools(NoReturnCounts(), 0), has_in_flight=lambda: bool(list(self.queues))
        )
        self.queues = AttemptQueues()
        self.borrows = Borrows(0, 2, self.peers, self.ledger, self.queues, lump=16)
        if is_up:
            self.come_up()

    def come_up(self) -> None:
        self.peers.mark_up(1, 2)
        self.ledger.unblock()

    def arrive(self, pool: str) -> Attempt:
        attempt = Attempt((pool,), IgnoringTokenWaiter())
        self.queues.join(attempt, 0)
        return attempt

    def said(self) -> list[Any]:
        said: list[Any] = []
        self.peers.outbox.flush(lambda peer, message: said.extend(message[1]))
        return said


def test_all_that_wait_for_a_pool_are_asked_for_by_one_borrow_and_a_lump_is_welcome() -> None:
    shard = Shard()
    for _ in range(3):
        shard.arrive(THERE)
    shard.borrows.send(THERE)
    assert shard.said() == [("borrow", THERE, 3, 3 + 16, 1, 3, False)]
    shard.borrows.send(THERE)
    assert shard.said() == [] and shard.borrows.sent == 1, "its home knows of them"


def test_a_home_that_is_not_up_is_asked_when_it_is() -> None:
    shard = Shard(is_up=False)
    shard.arrive(THERE)
    shard.borrows.send(THERE)
    assert shard.borrows.sent == 0
    shard.come_up()
    shard.borrows.send(THERE)
    assert shard.said() == [("borrow", THERE, 1, 17, 1, 1, False)]


def test_a_pool_at_home_here_is_borrowed_from_without_a_message() -> None:
    shard = Shard()
    shard.arrive(HERE)
    shard.arrive(HERE)
    shard.borrows.send(HERE)
    assert shard.said() == [] and shard.ledger.waiting(HERE) == 1


def test_only_what_was_asked_for_is_withdrawn() -> None:
    shard = Shard()
    asked = shard.arrive(THERE)
    shard.borrows.send(THERE)
    unasked = shard.arrive(THERE)
    shard.said()
    shard.borrows.withdraw(unasked)
    shard.borrows.withdraw(asked)
    assert shard.said() == [("withdraw", THERE, 1)]
