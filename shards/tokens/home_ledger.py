"""The pools at home on this shard: messages of their holders and changes of their rules, and what the home does about each.

Messages in, messages out (`post`, also to this shard: the home is a holder, too); no sockets, no clock.

no_free_token_while_one_waits  While a connection waits, no token is free (or none may be granted yet, see
    no_grant_before_reports).
refused_only_by_proof  A connection is refused only when it is proven that all of the cap is in use: refusals.py. What is out
    beyond a cap is called in by revocation.py.
lost_links_free_nothing  Tokens of a shard whose links broke stay out until the shard has reported again, or is dead.
"""

from collections import deque
from collections.abc import Callable, Mapping

from shards.limits.caps import CapRule
from shards.tokens.full_pools import FullPools
from shards.tokens.home_pool import Contention, HomePool, PendingBorrow
from shards.tokens.home_pools import HomePools, OnGrant
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable
from shards.tokens.pool_terms import PoolMode
from shards.tokens.refusals import Refusals
from shards.tokens.revocation import Revocation

Returned = Callable[[str, int, int, bool], None]
"""on_return(pool, shard, tokens, whether they were asked for)."""
Lost = Callable[[int, Mapping[str, int]], None]
"""on_loss(shard that died, what it had of each pool)."""


class HomeLedger(HomePools):
    """The pools at home on one shard. `has_in_flight()`: whether connections of this shard may hold tokens and wait."""

    def __init__(
        self,
        me: int,
        shards: int,
        table: PoolTable,
        peers: Peers,
        full: FullPools,
        *,
        has_in_flight: Callable[[], bool],
        version: int = 0,
        on_grant: OnGrant | None = None,
        on_return: Returned | None = None,
        on_loss: Lost | None = None,
    ) -> None:
        super().__init__(me, shards, table, peers, on_grant)
        self._full = full
        self._on_return = on_return
        self._on_loss = on_loss
        self.revocation = Revocation(peers, self.lent, self._contended, self.blocked, has_in_flight)
        self.refusals = Refusals(
            peers, self.lent, self._contended, self.blocked, self.pool_of, full=full, version=version
        )
        self._arrivals = 0
        self._probed: list[str] = []  # pools of which a probe was answered in this pass

    # From holders

    def borrow(self, peer: int, key: str, waiting: int, welcome: int, first: int, last: int, at_once: bool) -> None:
        """`waiting` connections of a shard, with tickets from `first` to `last`, need a token each; `welcome` is the most
        tokens that the shard takes. `at_once`: they are refused by a full pool also under a rule that lets others wait."""
        pool = self.pool_of(key)
        contention = self._contended.get(key)
        cap = pool.terms.rule.cap
        if contention is None and key not in self.blocked and (cap is None or cap - pool.out >= waiting):
            spare = self._pre_priming(pool, peer, waiting, welcome - waiting)
            self._grant(peer, pool, waiting + spare, last)
            return
        if contention is None:
            contention = self._contended[key] = Contention()
        self._arrivals += 1
        contention.borrows.append(PendingBorrow(peer, waiting, first, last, self._arrivals, at_once))
        self._settle(pool)

    def withdraw(self, peer: int, key: str, ticket: int) -> None:
        """A shard's connection with `ticket` does not wait for a grant any more. If its token was granted already, the shard
        gives it back or serves another connection with it; until then the token is idle, so the probe under way proves
        nothing (covered = 0).
        """
        contention = self._contended.get(key)
        if contention is None:
            return
        for borrow in contention.borrows:
            if borrow.peer == peer and borrow.first <= ticket <= borrow.last:
                borrow.count -= 1
                if not borrow.count:
                    contention.borrows.remove(borrow)
                break
        else:
            contention.covered = 0
        self._settle(self.pool_of(key))

    def give(self, peer: int, key: str, n: int) -> None:
        """A shard gives n tokens back."""
        pool = self.pool_of(key)
        self.lent.take_back(peer, pool, n)
        if self._on_return is not None:
            self._on_return(key, peer, n, False)
        self._settle(pool)

    def freed(self, pool: HomePool) -> None:
        """Connections of this shard gave tokens of a tight pool back."""
        self._settle(pool)

    def report(self, peer: int, key: str, n: int) -> None:
        """A shard uses n tokens that it was not granted in this session: by connections that are older than the
        cap, than this home, or than the link to it."""
        pool = self.pool_of(key)
        more = self.lent.reported(peer, pool, n)
        if more and self._on_grant is not None:
            self._on_grant(key, peer, more, True)
        if more or key not in self.revocation.revoking:  # else it was asked when it came back (peer_back)
            self.revocation.revoke_excess(pool)
        self._settle(pool)

    def reclaimed(self, peer: int, key: str, n: int) -> None:
        """A shard's answer to `reclaim`: it gives n tokens back and is tight."""
        pool = self.pool_of(key)
        if n:
            self.lent.take_back(peer, pool, n)
            if self._on_return is not None:
                self._on_return(key, peer, n, True)
        self.revocation.answered(pool, self._contended[key], peer, 1)
        self._settle(pool)

    def exceeded(self, pool: HomePool) -> None:
        """A connection of this shard took a token beyond the cap (Tokens.force)."""
        self.revocation.revoke_excess(pool)

    def probed(self, peer: int, number: int) -> None:
        """A shard's answer to `probe`: all that it had sent before has arrived."""
        self._probed += self.refusals.probes.answered(peer, number)

    def peer_lost(self, peer: int) -> None:
        """The links to a shard broke: what it was granted stays out, its borrows are void, its answers are waited for."""
        self.lent.mark_unsure(peer)
        self._forget_borrows(peer)
        self._probed += self.refusals.probes.lost(peer)
        for key in list(self._contended):
            self._settle(self.pool_of(key))

    def peer_back(self, peer: int) -> None:
        """A lost shard is up again, in the same incarnation: it is asked once more for the tokens that it was to give back."""
        self.revocation.ask_again(peer)

    def peer_reported(self, peer: int) -> None:
        """A shard has reported all that it uses: the other tokens granted to it before its links were lost are free."""
        for key, n in self.lent.pop_unsure(peer).items():
            self._known_pool(key).lend(-n)
            pool = self.pool_of(key)
            if n and self._on_return is not None:
                self._on_return(key, peer, n, False)
            self._settle(pool)

    def peer_dead(self, peer: int) -> None:
        """A shard died: its tokens are free, its connections wait no more, its answers are not waited for."""
        lost = self.lent.pop_shard(peer)
        for key, n in lost.items():
            self._known_pool(key).lend(-n)
        if lost and self._on_loss is not None:
            self._on_loss(peer, lost)
        self._forget_borrows(peer)
        for key, contention in self._contended.items():
            self.revocation.answered(self.pool_of(key), contention, peer, contention.awaiting.get(peer, 0))
        for key in dict.fromkeys((*lost, *self._contended)):
            self._settle(self.pool_of(key))
        self._probed += self.refusals.probes.lost(peer)

    def _forget_borrows(self, peer: int) -> None:
        for contention in self._contended.values():
            contention.borrows = deque(borrow for borrow in contention.borrows if borrow.peer != peer)

    # From the configuration and the clock

    def change_rule(self, pool: HomePool, rule: CapRule) -> None:
        """The pool has another rule; enforce() follows, when all pools have theirs."""
        pool.rule = rule
        if rule.cap is None:
            self.blocked.pop(pool.key, None)
        elif self._table.terms.blocked:
            self.blocked[pool.key] = None

    def enforce(self, pool: HomePool) -> None:
        """Applies the pool's new rule: revokes tokens beyond the cap, serves waiting connections, reclaims."""
        self.revocation.revoke_excess(pool)
        self._settle(pool)

    def unblock(self) -> None:
        """Every older peer has reported or is dead: connections that waited for that are served."""
        blocked = list(self.blocked)
        self.blocked.clear()
        self._table.terms.unblock()
        for key in blocked:
            pool = self.pool_of(key)
            self.revocation.revoke_excess(pool)
            self._settle(pool)

    def sweep(self, pool: HomePool) -> bool:
        """False when the pool can be forgotten: no token is out and no connection waits."""
        if pool.level or pool.key in self._contended:
            if pool.terms.tight:
                self._loosen(pool)  # a cap that was raised for all may have left it half empty
            return True
        self.blocked.pop(pool.key, None)
        return False

    def end_pass(self) -> None:
        """Ends the pass, after this shard has read what it sent to itself: refuses the connections that an answered probe
        covers, and asks for the probe that refusals need, unless one is under way."""
        if not self._contended:
            return  # no connection waits here, so there is nothing to refuse or to ask for
        if self._probed:
            self._refuse_probed()
        self.refusals.end_pass()

    # What follows from a change

    def _settle(self, pool: HomePool) -> None:
        """Serves waiting connections with free tokens. If some still wait, has cached tokens reclaimed; else lets holders
        cache again if the pool is half empty."""
        key = pool.key
        contention = self._contended.get(key)
        if contention is not None:
            if key not in self.blocked:
                self._serve(pool, contention)
            if contention.borrows:
                if key not in self.blocked:
                    self._reclaim_or_refuse(pool, contention)
                return
            if not contention.awaiting:
                del self._contended[key]
        self._loosen(pool)

    def _loosen(self, pool: HomePool) -> None:
        """Lets holders cache a pool again that is half empty."""
        if pool.terms.mode is PoolMode.TIGHT and pool.is_roomy(self._shards):
            self._full.returned(pool.key)  # opening_is_a_return
            pool.enter(PoolMode.OPEN)

    def _serve(self, pool: HomePool, contention: Contention) -> None:
        borrows, cap = contention.borrows, pool.terms.rule.cap
        while borrows:
            borrow = borrows[0]
            n = borrow.count if cap is None else min(borrow.count, cap - pool.out)
            if n <= 0:
                break
            borrow.count -= n
            if not borrow.count:
                borrows.popleft()
            contention.returns = None  # the probe under way may be answered before this grant is read
            self._grant(borrow.peer, pool, n, borrow.last)

    def _reclaim_or_refuse(self, pool: HomePool, contention: Contention) -> None:
        """Connections wait and no token is free: reclaims cached tokens; where there are none, considers refusals."""
        if pool.terms.mode is PoolMode.OPEN:
            self.revocation.reclaim(pool, contention)
        self.refusals.consider(pool, contention)

    def _refuse_probed(self) -> None:
        """Refuses the connections that an answered probe covers; later ones need the next probe."""
        probed, self._probed = self._probed, []
        for key in probed:
            contention = self._contended.get(key)
            if contention is not None:
                pool = self.pool_of(key)
                self.refusals.refuse_covered(pool, contention)
                self._settle(pool)

    # For people and tests

    def excess(self, key: str, allowed: int = 0) -> int | None:
        """Tokens of a pool here that connections use beyond its cap, and beyond `allowed`; None while cached tokens are being
        reclaimed."""
        pool = self.pool_of(key)
        if pool.terms.rule.cap is None:
            return 0
        return None if key in self.revocation.revoking else max(0, pool.out - max(pool.terms.rule.cap, allowed))

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        pools = {pool.key: pool for pool in self._table.pools.values() if isinstance(pool, HomePool)}
        self.lent.check()
        self.revocation.check(pools.values())
        assert self._contended.keys() <= pools.keys()
        assert self.blocked.keys() <= pools.keys()
        for key, pool in pools.items():
            contention = self._contended.get(key)
            assert not (self._table.terms.blocked and pool.terms.rule.cap is not None) or key in self.blocked, key
            if contention is not None and contention.borrows and key not in self.blocked:
                cap = pool.terms.rule.cap
                assert cap is not None and pool.out >= cap and pool.terms.mode is not PoolMode.OPEN, key
