"""The pools at home on this shard: the cap of each, the tokens that each shard was granted, and the connections that wait.

no_grant_beyond_cap  free = max(0, cap - in_use - sum(lent)) is derived, never stored. Tokens out rise only while they
    are below the cap, but for reports of use that was not limited; after a cut they only fall.
lent_is_held_or_on_the_way  lent[s] = held[s] + tokens on the way to or from s.
no_grant_before_reports  Nothing of a capped pool is granted before every older peer has reported what it uses, or is dead
    (`blocked`): it may use tokens that this home's predecessor granted. A cap that appears needs no such wait: its version
    is not done before every live peer has reported (tokens.py, done_when_all_peers_confirm), so until then the pool had no
    cap.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from shards.tokens.home_pool import Contention, HomePool
from shards.tokens.lent_tokens import LentTokens
from shards.tokens.peers import Peers
from shards.tokens.pool import PoolTable

OnGrant = Callable[[str, int, int, bool], None]
"""on_grant(pool, shard, tokens, whether that shard reported them: it has them already)."""


class HomePools:
    """The pools at home on one shard, and their tokens.

    `blocked` are the capped pools here while nothing of such is granted, because an older peer has not reported yet
    (no_grant_before_reports).
    """

    def __init__(self, me: int, shards: int, table: PoolTable, peers: Peers, on_grant: OnGrant | None) -> None:
        self._me: Final = me
        self._shards: Final = shards
        self._table = table
        self._peers = peers
        self._on_grant = on_grant
        self.blocked: dict[str, None] = {}
        table.terms.blocked = bool(peers.unheard)
        self.lent = LentTokens((shard for shard in range(shards) if shard != me), table.pools)
        self._contended: dict[str, Contention] = {}

    def pool_of(self, key: str) -> HomePool:
        """A pool that is at home here, known from now on."""
        known: Any = self._table.pools.get(key)
        if known is not None:
            pool: HomePool = known  # a cast() would be called for every token
            if self._table.changing is not None:
                self._table.changing(pool)
        else:
            pool = HomePool(key, self._table.terms_of(key))
            if pool.terms.rule.cap is not None and self._table.terms.blocked:
                self.blocked[key] = None
            self._table.add(pool)
        return pool

    def _known_pool(self, key: str) -> HomePool:
        """A known pool, though a change may not have come to it: what it was granted is put right before its rule is enforced."""
        return cast(HomePool, self._table.pools[key])

    def _grant(self, peer: int, pool: HomePool, n: int, last: int) -> None:
        key = pool.key
        if peer == self._me:
            self._table.occupy(pool, n)  # kept for its connections until it reads the grant
        else:
            self.lent.add(peer, pool, n)
        self._peers.outbox.post(peer, ("grant", key, n, pool.may_cache(self._shards), last))
        if self._on_grant is not None:
            self._on_grant(key, peer, n, False)

    def _pre_priming(self, pool: HomePool, peer: int, waiting: int, at_most: int) -> int:
        """Tokens to grant for later connections: what the RFC calls pre-priming on the first contact of a holder, and
        `at_most` of them later; only while the pool is under half used and has more tokens than there are shards, and
        no more than leaves the same for each shard."""
        if peer == self._me or not pool.may_cache(self._shards) or pool.terms.rule.cap is None:
            return 0
        fair = (pool.terms.rule.cap // 2 - pool.out - waiting) // self._shards
        return max(0, min(fair, at_most) if self.lent.holds(peer, pool) else fair)

    # For people and tests

    def lent_by_shard(self, key: str) -> dict[int, int]:
        """Tokens of a pool out to each other shard."""
        return self.lent.by_shard(key)

    @property
    def contended(self) -> frozenset[str]:
        """The pools here that connections wait for, or whose holders were asked and have not all answered."""
        return frozenset(self._contended)

    def waiting(self, key: str) -> int:
        """Connections of all shards that wait for a token of a pool here."""
        contention = self._contended.get(key)
        return sum(borrow.count for borrow in contention.borrows) if contention is not None else 0
