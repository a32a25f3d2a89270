"""Refusing those who wait for a pool at home here, once it is proven that all of its cap is in use.

R1  Somebody is refused only after a probe: every holder with tokens was tight before the question was sent, and has
    answered since. Take the instant the question was sent: what was not in use then was on its way home, has arrived
    before the answers, and went to connections that had arrived before that instant; and still nothing is free. So
    all of the cap was in use then, by open connections or by those admitted ahead. Who came later is not covered by
    the answers: there is a next probe. One probe serves all pools and all who wait, so a refusal is cheap in a storm.
R2  A home of which no other shard has tokens needs none, once it has read what it granted itself.
R3  Nothing is refused while a shard whose links were lost may have tokens of the pool: they may be idle.
"""

from collections.abc import Callable, Container, MutableMapping

from shards.tokens.home_pool import Contention, Grants, HomePool, HomePoolMode
from shards.tokens.peers import Peers
from shards.tokens.probes import Probes


class Refusals:
    """One ledger's: `contended` and `blocked` are its own, `pool_of(key)` its pool. `version`: of the rules in force.

    When a grant may come back unused, the ledger sets `covered` of the contention to 0: the probe under way then proves
    nothing. A report needs no such care: what it reports is in use, and what came home meanwhile is less than that.
    """

    def __init__(
        self,
        peers: Peers,
        grants: Grants,
        contended: MutableMapping[str, Contention],
        blocked: Container[str],
        pool_of: Callable[[str], HomePool],
    ) -> None:
        self.version = 0
        self.probes = Probes(peers)
        self._alone: dict[str, None] = {}  # pools that need no probe (R2)
        self._peers = peers
        self._grants = grants
        self._contended = contended
        self._blocked = blocked
        self._pool_of = pool_of

    def consider(self, pool: HomePool, contention: Contention) -> None:
        """Somebody waits, and nothing is free."""
        if self._may_refuse(pool):
            if pool.granted:
                self.probes.want(pool.key)
            else:
                self._alone[pool.key] = None

    def confirm(self) -> None:
        """Ends the pass: asks for the probe that refusals need, unless one is under way."""
        alone, self._alone = self._alone, {}
        for key in alone:
            if self._grants.holders(key):
                self.probes.want(key)
            else:
                self._cover(key)
        if self.probes.wanted:
            self.probes.begin(self._cover)

    def confirmed(self, pool: HomePool, contention: Contention) -> None:
        """All holders have answered: refuses who was covered and is not served."""
        covered, contention.covered = contention.covered, 0
        if covered and self._may_refuse(pool):
            self._refuse(pool, contention, covered)

    def _cover(self, key: str) -> list[int]:
        """Notes for whom the probe speaks that begins now; returns who has to be asked. If nobody, that is an answer."""
        contention = self._contended.get(key)
        if contention is None or not contention.borrows or not self._may_refuse(self._pool_of(key)):
            return []
        holders = self._grants.holders(key)
        last = contention.borrows[-1].arrival
        if holders:
            contention.covered = last
        else:
            self._refuse(self._pool_of(key), contention, last)
        return holders

    def _may_refuse(self, pool: HomePool) -> bool:
        if pool.mode is not HomePoolMode.TIGHT or pool.rule.wait or pool.key in self._blocked:
            return False
        return not self._grants.is_unsure(pool.key)

    def _refuse(self, pool: HomePool, contention: Contention, covered: int) -> None:
        """Refuses everybody who waits and arrived no later than `covered`: nothing is free (L3)."""
        last: dict[int, int] = {}
        borrows = contention.borrows
        while borrows and borrows[0].arrival <= covered:
            borrow = borrows.popleft()
            last[borrow.peer] = borrow.last
        rule = pool.rule
        for peer, ticket in last.items():
            self._peers.post(peer, ("refuse", pool.key, ticket, rule.cap, rule.name, self.version))
        if not borrows and not contention.awaiting:
            self._contended.pop(pool.key, None)
