"""Refusing connections that wait for a pool at home here, once it is proven that all of its cap is in use.

refused_after_a_probe_only  A connection is refused only after a probe: every holder with tokens was tight before the probe
    was sent; each of them, and each shard whose connections wait, has answered it. Take the instant the probe was sent: a
    token not in use then was on its way home, has arrived before the answers, and went to a connection that had arrived
    before that instant and had not left when its shard answered; and still no token is free. So all of the cap was in use
    then, by open connections or by connections granted a token ahead. One of these that leaves after its shard has answered
    (its client goes away, or its deadline passes) used its token until it left. A connection that arrived later is not
    covered by the answers and needs the next probe. One probe serves all pools and all waiting connections, so a refusal is
    cheap in a storm.
refusals_end_a_pass  A refusal is decided at the end of a pass, once the home has read its grants to itself: it knows at once
    which of its own connections leave. A pool of which no other shard has tokens needs no probe.
at_once_refused_by_the_same_proof  Under a rule that lets connections wait (KIP-402) only those that asked at once
    (`PendingBorrow.at_once`) are refused, by the same proof. The others keep their places.
no_refusal_while_links_are_lost  Nothing is refused while a shard whose links were lost may have tokens of the pool: they
    may be idle.
"""

from collections.abc import Callable, Container, MutableMapping

from shards.tokens.full_pools import FullPools
from shards.tokens.home_pool import Contention, HomePool, PendingBorrow
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.peers import Peers
from shards.tokens.pool_terms import PoolMode
from shards.tokens.probes import Probes


class Refusals:
    """The refusals of one ledger: `contended` and `blocked` are the ledger's own, `pool_of(key)` its pool.

    `version`: configuration version of the rules in force. When a grant may come back unused, the ledger sets `covered`
    of the contention to 0: the probe under way then proves nothing. A report needs no such reset: reported tokens are
    in use, and fewer tokens came home meanwhile.
    """

    def __init__(
        self,
        peers: Peers,
        lent: LentTokens,
        contended: MutableMapping[str, Contention],
        blocked: Container[str],
        pool_of: Callable[[str], HomePool],
        *,
        full: FullPools,
        version: int,
    ) -> None:
        self.version = version
        self.probes = Probes(peers)
        self._alone: dict[str, None] = {}  # pools that need no probe (refusals_end_a_pass)
        self._peers = peers
        self._lent = lent
        self._contended = contended
        self._blocked = blocked
        self._pool_of = pool_of
        self._full = full

    def consider(self, pool: HomePool, contention: Contention) -> None:
        """Connections wait for this pool and no token is free: they are refused, or a probe is sent, at the end of the pass."""
        if self._may_refuse(pool, contention):
            if pool.lent:
                self.probes.want(pool.key)
            else:
                self._alone[pool.key] = None

    def end_pass(self) -> None:
        """Ends the pass: asks for the probe that refusals need, unless one is under way."""
        if self._alone:
            alone, self._alone = self._alone, {}
            for key in alone:
                if self._lent.holders(key):
                    self.probes.want(key)
                else:
                    self._cover(key)
        if self.probes.wanted:
            self.probes.begin(self._cover)

    def refuse_covered(self, pool: HomePool, contention: Contention) -> None:
        """All shards that the probe asked have answered: at the end of the pass, refuses the connections that it covers."""
        covered, contention.covered = contention.covered, 0
        if covered and self._may_refuse(pool, contention):
            self._refuse(pool, contention, covered, contention.returns)

    def _cover(self, key: str) -> list[int]:
        """Covers all waiting connections of a pool by the probe that begins now; returns the shards to be asked. Where
        there is no holder, the connections are refused at once (refusals_end_a_pass)."""
        contention = self._contended.get(key)
        if contention is None or not contention.borrows or not self._may_refuse(self._pool_of(key), contention):
            return []
        holders = self._lent.holders(key)
        last = contention.borrows[-1].arrival
        returns = self._full.returns(key)
        if not holders:
            self._refuse(self._pool_of(key), contention, last, returns)
            return []
        contention.covered, contention.returns = last, returns
        return [*holders, *(borrow.peer for borrow in contention.borrows if borrow.peer != self._peers.me)]

    def _may_refuse(self, pool: HomePool, contention: Contention) -> bool:
        if pool.mode is not PoolMode.TIGHT or not contention.refusable(pool.rule) or pool.key in self._blocked:
            return False
        return not self._lent.is_unsure(pool.key)

    def _refuse(self, pool: HomePool, contention: Contention, covered: int, returns: int | None) -> None:
        """Refuses the waiting connections that arrived no later than `covered`: no token is free. Their shards go on
        refusing while the number of the pool's returns is `returns` (full_until_a_return)."""
        last: dict[int, int] = {}
        staying: list[PendingBorrow] = []
        borrows, rule = contention.borrows, pool.rule
        while borrows and borrows[0].arrival <= covered:
            borrow = borrows.popleft()
            if rule.wait and not borrow.at_once:
                staying.append(borrow)
            else:
                last[borrow.peer] = borrow.last
        borrows.extendleft(reversed(staying))
        for peer, ticket in last.items():
            self._peers.outbox.post(
                peer, ("refuse", pool.key, ticket, rule.cap, rule.name, self.version, rule.wait, returns)
            )
        if not borrows and not contention.awaiting:
            self._contended.pop(pool.key, None)
