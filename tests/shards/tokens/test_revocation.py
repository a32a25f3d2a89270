"""revocation.py: which tokens a home calls in, and when all of them are back. Longer stories: test_home_ledger.py."""

from typing import Any

from shards.limits.caps import CapRule
from shards.tokens.home_pool import Contention, HomePool
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable
from shards.tokens.pool_terms import PoolMode
from shards.tokens.revocation import Revocation

POOL = "ip:10.0.0.1"


class Home:
    """Shard 0 of three: a pool of which shard 1 has 3 tokens and shard 2 has 2."""

    def __init__(self, *, has_in_flight: bool = False, blocked: bool = False) -> None:
        self.table = PoolTable(lambda key: CapRule(10, "max.connections.per.ip"))
        self.peers = Peers(0, 3, epoch=1)
        for peer in (1, 2):
            self.peers.mark_up(peer, 1 + peer)
        self.pool = HomePool(POOL, self.table.terms_of(POOL))
        self.table.add(self.pool)
        lent = LentTokens((1, 2), self.table.pools)
        lent.add(1, self.pool, 3)
        lent.add(2, self.pool, 2)
        self.contended: dict[str, Contention] = {}
        self.revocation = Revocation(
            self.peers, lent, self.contended, {POOL} if blocked else set(), lambda: has_in_flight
        )

    def cut(self, cap: int) -> None:
        self.pool.rule = CapRule(cap, "max.connections.per.ip")
        self.revocation.revoke_excess(self.pool)

    def answered(self, peer: int) -> None:
        self.revocation.answered(self.pool, self.contended[POOL], peer, 1)

    def said(self) -> dict[int, list[Any]]:
        self.revocation.check([self.pool])
        said: dict[int, list[Any]] = {0: list(self.peers.outbox.local)} if self.peers.outbox.local else {}
        self.peers.outbox.flush(lambda peer, message: said.__setitem__(peer, message[1]))
        return said


def test_what_is_out_beyond_a_cap_is_revoked_of_every_holder() -> None:
    home = Home()
    home.cut(4)
    assert home.said() == {1: [("reclaim", POOL, True)], 2: [("reclaim", POOL, True)]}
    home.answered(1)
    assert POOL in home.revocation.revoking and home.pool.mode is PoolMode.RECLAIMING
    home.answered(2)
    assert not home.revocation.revoking and home.pool.mode is PoolMode.TIGHT


def test_connections_in_flight_at_home_give_theirs_up_too() -> None:
    home = Home(has_in_flight=True)
    home.cut(4)
    assert home.said()[0] == [("reclaim", POOL, True)]


def test_nothing_is_revoked_within_the_cap_or_before_all_have_reported() -> None:
    within, blocked = Home(), Home(blocked=True)
    within.cut(5)
    blocked.cut(4)
    assert within.said() == blocked.said() == {}
    assert not within.revocation.revoking and not blocked.revocation.revoking


def test_a_reclaim_leaves_connections_in_flight_what_they_have() -> None:
    home = Home(has_in_flight=True)
    contention = home.contended[POOL] = Contention()
    home.revocation.reclaim(home.pool, contention)
    assert home.said() == {1: [("reclaim", POOL, False)], 2: [("reclaim", POOL, False)]}
    assert not home.revocation.revoking and home.revocation.reclaims == 1


def test_a_shard_that_is_back_is_asked_once_for_all_that_it_owes() -> None:
    home = Home()
    home.cut(4)
    home.cut(3)
    home.said()
    home.revocation.ask_again(1)
    assert home.said() == {1: [("reclaim", POOL, True)]}
    home.answered(1)
    home.answered(2)
    home.answered(2)
    assert not home.revocation.revoking
