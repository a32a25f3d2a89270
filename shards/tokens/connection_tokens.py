"""The tokens that connections take of the pools of one shard, and give back.

a_token_of_each_pool  A connection holds a token of each of its pools, taken in the order given, and gives back exactly
    those.
decided_here_only_when_certain  Decided at once, on this shard: a token that is cached, free at home, or of a pool without a
    cap; a refusal by a cap of 0, of a pool at home here of which no other shard has a token, or of a pool that is known to
    be full (full_pools.py). Every other decision takes an answer of another shard (refusals.py says why).
"""

from shards.tokens.connections_in_flight import ConnectionsInFlight
from shards.tokens.holder_cache import HolderCache, HolderPool
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import HomePool
from shards.tokens.pool import ADMITTED, Admitted, PoolTable, Refused, TokenWaiter


class ConnectionTokens:
    """The tokens of the connections of one shard.

    Counted since the start: `decided_home`, `decided_cached`, `decided_rpc` (connections decided without asking, from
    tokens granted earlier, by asking), `refused`.
    """

    def __init__(
        self, table: PoolTable, cache: HolderCache, ledger: HomeLedger, in_flight: ConnectionsInFlight
    ) -> None:
        self.decided_home = self.decided_cached = self.decided_rpc = 0
        self.refused = 0
        self._table = table
        self._cache = cache
        self._ledger = ledger
        self._in_flight = in_flight

    def take_at_hand(self, pools: tuple[str, ...]) -> int:
        """A token of each pool, in this order, up to the first that has none at hand. Returns how many were taken: all, and
        the connection is admitted, or fewer, and take_rest() follows at once."""
        table = self._table
        known = table.pools
        taken = len(pools)
        away = 0
        for key in pools:
            try:
                pool = known[key]
            except KeyError:  # rare; to look first, by get(), would cost each decision 5 %
                taken = pools.index(key)
                break
            level = pool.level
            terms = pool.terms
            if level >= terms.limit:
                taken = pools.index(key)
                break
            pool.level = level = level + 1
            if level > pool.peak:
                pool.peak = level  # type: ignore[misc]  # a HolderPool has the slot, a HomePool never gets here
            away += terms.away
        else:
            if away:
                self.decided_cached += 1
            else:
                self.decided_home += 1
        table.in_use += taken
        if away:
            table.away_in_use += away
        return taken

    def take(self, pools: tuple[str, ...], waiter: TokenWaiter, *, at_once: bool = False) -> Admitted | Refused | None:
        """A token of each pool, in this order. None: it takes another shard; `waiter.decided` follows, from flush().
        `at_once`: a full pool refuses it, also under a rule that lets others wait."""
        taken = self.take_at_hand(pools)
        return ADMITTED if taken == len(pools) else self.take_rest(pools, taken, waiter, at_once)

    def take_rest(
        self, pools: tuple[str, ...], taken: int, waiter: TokenWaiter, at_once: bool = False
    ) -> Admitted | Refused | None:
        """A connection that has just taken a token of each of pools[:taken], and has not waited since, takes the others. As
        take(); admitted it holds a token of each of its pools, refused it holds none."""
        index, refused = self._in_flight.take_in_order(pools, taken)
        if refused is not None:
            self._in_flight.give_back(pools[:index])
            self.refused += 1
        elif index < len(pools):
            self._in_flight.wait(pools, index, waiter, at_once)
            return None
        self.decided_home += 1
        return refused or ADMITTED

    def release(self, pools: tuple[str, ...]) -> None:
        """Gives back what an admitted connection took: the same pools."""
        known = self._table.pools
        away = 0
        tight = False
        for key in pools:
            pool = known[key]
            pool.level -= 1
            terms = pool.terms
            away += terms.away
            if terms.tight:
                tight = True
        table = self._table
        table.in_use -= len(pools)
        if away:
            table.away_in_use -= away
        if tight:
            for key in pools:
                self._in_flight.returned(known[key])

    def suspend(self, pools: tuple[str, ...], waiter: TokenWaiter) -> None:
        """The connection that just took a token of each of `pools` waits for something other than tokens before it is
        open: for the rate of its address. A change may revoke its tokens meanwhile; resume() or cancel() follows.

        Without this, a change would count it as open, and be done before it is (done_when_all_peers_confirm).
        """
        self._in_flight.suspend(pools, waiter)

    def resume(self, more: tuple[str, ...], waiter: TokenWaiter) -> Admitted | Refused | None:
        """A suspended connection goes on and takes a token of each of `more`, too, and first of its earlier pools again
        if a change revoked them. As take(); admitted it holds a token of each of its pools, refused it holds none."""
        pools, held = self._in_flight.resume(waiter)
        return self.take_rest(pools + more, len(pools) if held else 0, waiter)

    def observe_at_hand(self, pools: tuple[str, ...]) -> int:
        """As take_at_hand(), of observed pools and for a connection that was admitted: so it is not counted as a decision. Fewer
        than all, and observe_rest() follows at once."""
        counted = self.decided_home, self.decided_cached
        taken = self.take_at_hand(pools)
        self.decided_home, self.decided_cached = counted
        return taken

    def observe_rest(self, pools: tuple[str, ...], taken: int, waiter: TokenWaiter) -> Admitted | Refused | None:
        """As take_rest(), `at_once` and not counted."""
        index, refused = self._in_flight.take_in_order(pools, taken)
        if refused is not None:
            self._in_flight.give_back(pools[:index])
            return refused
        if index < len(pools):
            self._in_flight.wait(pools, index, waiter, at_once=True, observed=True)
            return None
        return ADMITTED

    def observe_resumed(self, waiter: TokenWaiter) -> Admitted | Refused | None:
        """As resume() without further pools, `at_once` and not counted."""
        pools, held = self._in_flight.resume(waiter)
        return self.observe_rest(pools, len(pools) if held else 0, waiter)

    def force(self, key: str, n: int = 1) -> None:
        """n tokens of a pool for connections that its cap must not stop: those of the inter-broker listener (KIP-402), or
        those that were open when a cap began to be observed. What is used beyond the cap is known at the home by the end of
        the pass."""
        pool = self._in_flight.pool_of(key)
        beyond = min(n, pool.level + n - pool.terms.limit)
        self._table.occupy(pool, n)
        if beyond <= 0:
            return
        if isinstance(pool, HomePool):
            self._ledger.exceeded(pool)
        elif isinstance(pool, HolderPool):
            self._cache.report_forced(pool, beyond)

    def cancel(self, waiter: TokenWaiter) -> None:
        """The connection went away while it waited or was suspended: it is not decided any more, and gives back what it
        holds. Nothing happens if it does neither."""
        admitted = self._in_flight.cancel(waiter)
        if admitted is not None:
            self.release(admitted.pools)
