"""Tokens that a home calls in: it reclaims what holders cache of a pool that runs dry, and revokes what is out beyond a cap.

A third way is to recall all pools of a kind, without a look at what is out of each: rule_changes.py (cut_for_all_recalls).

excess_is_revoked  When more tokens are out than the cap allows, every holder is asked for the tokens that no open
    connection uses: cached ones, and those of connections still in flight. `revoking` are the pools for which not all have
    answered.
"""

from collections.abc import Callable, Container, Iterable, MutableMapping

from shards.tokens.home_pool import Contention, HomePool
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.peers import Peers
from shards.tokens.pool_terms import PoolMode


class Revocation:
    """The tokens that one ledger calls in; `reclaims`: how often it did. `contended` and `blocked` are the ledger's own.

    `has_in_flight()`: whether connections of this shard may hold tokens and wait.
    """

    def __init__(
        self,
        peers: Peers,
        lent: LentTokens,
        contended: MutableMapping[str, Contention],
        blocked: Container[str],
        has_in_flight: Callable[[], bool],
    ) -> None:
        self.revoking: dict[str, None] = {}
        self.reclaims = 0
        self._peers = peers
        self._lent = lent
        self._contended = contended
        self._blocked = blocked
        self._has_in_flight = has_in_flight

    def revoke_excess(self, pool: HomePool) -> None:
        """Calls in what no open connection uses, if more is out than the cap allows (excess_is_revoked)."""
        cap = pool.terms.rule.cap
        if cap is None or pool.out <= cap or pool.key in self._blocked:
            return
        contention = self._contended.get(pool.key) or Contention()
        self._call_in(pool, contention, revoke=True)
        if contention.awaiting:
            self._contended[pool.key] = contention
            self.revoking[pool.key] = None

    def reclaim(self, pool: HomePool, contention: Contention) -> None:
        """Calls in what holders cache: connections wait for the pool, and no token is free."""
        self._call_in(pool, contention, revoke=False)

    def answered(self, pool: HomePool, contention: Contention, peer: int, answers: int) -> None:
        """A shard has answered so many times: it caches nothing more of the pool. The pool is tight when all have."""
        if not answers:
            return
        contention.awaiting[peer] -= answers
        if not contention.awaiting[peer]:
            del contention.awaiting[peer]
        if not contention.awaiting:
            pool.enter(PoolMode.TIGHT)
            self.revoking.pop(pool.key, None)

    def ask_again(self, peer: int) -> None:
        """A shard whose links were lost is up again: a `reclaim` sent to it may have got lost."""
        for key, contention in self._contended.items():
            if peer in contention.awaiting:
                contention.awaiting[peer] = 1
                self._peers.outbox.post(peer, ("reclaim", key, key in self.revoking))

    def _call_in(self, pool: HomePool, contention: Contention, *, revoke: bool) -> None:
        """Asks holders for what they cache, with `revoke` also for what connections in flight hold (at home, too)."""
        holders = self._lent.holders(pool.key)
        if revoke and self._has_in_flight():
            holders.append(self._peers.me)
        for peer in holders:
            contention.awaiting[peer] = contention.awaiting.get(peer, 0) + 1
            self._peers.outbox.post(peer, ("reclaim", pool.key, revoke))
        pool.enter(PoolMode.RECLAIMING if contention.awaiting else PoolMode.TIGHT)
        self.reclaims += 1

    def check(self, pools: Iterable[HomePool]) -> None:
        """Raises AssertionError when an invariant does not hold; `pools` are those at home here."""
        assert self.revoking.keys() <= self._contended.keys()
        for pool in pools:
            contention = self._contended.get(pool.key)
            assert (pool.terms.mode is PoolMode.RECLAIMING) == bool(contention and contention.awaiting), pool.key
