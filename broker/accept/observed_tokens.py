"""The tokens of the observed world: those of this broker's observed pools, and one of the cluster's while that is observed.

the_clusters_last  A connection asks for the token of the cluster's observed pool when it has all others, as for that of the
    enforced one (admission_steps.py, CLUSTER_TOKENS). While another shard has to be asked the others are suspended: a change
    may revoke them, and then the connection gives the cluster's token back, takes the others again and asks once more. So no
    set of tokens waits for the other.
a_member_holds_one  While the cluster's pool is observed, each connection of the observed world holds one token of it. Nothing but
    being in that world says so: it is no pool of a connection.
"""

from __future__ import annotations

from shards.tokens.cluster_pool import ClusterPool
from shards.tokens.tokens import ADMITTED, Admitted, Refused, Tokens, TokenWaiter


class ObservedTokens:
    """Both sets on one shard; connections ask `at_once`. `pools`: the observed pools of a connection that it asks for."""

    def __init__(self, tokens: Tokens, cluster: ClusterPool) -> None:
        self._tokens = tokens
        self._cluster = cluster
        self._asking: set[TokenWaiter] = set()  # wait for the pool of the cluster

    def take_at_hand(self, pools: tuple[str, ...]) -> int:
        """Takes tokens up to the first that is not at hand, that of the cluster last. Returns how many of `pools` were taken, one
        more if all were: else `take_rest` follows at once."""
        taken = self._tokens.observe_at_hand(pools)
        if taken < len(pools) or (self._cluster.is_observed and not self._cluster.observe_at_hand()):
            return taken
        return taken + 1

    def take_rest(self, pools: tuple[str, ...], taken: int, waiter: TokenWaiter) -> Admitted | Refused | None:
        """A connection takes all others. None: it takes another shard; `answered` is to be called with what the waiter is told.
        Refused it holds none."""
        if taken > len(pools):
            return ADMITTED
        if taken < len(pools):
            decision = self._tokens.observe_rest(pools, taken, waiter)
            if decision is not ADMITTED:
                return decision
        return self._take_of_cluster(pools, waiter)

    def take(self, pools: tuple[str, ...], waiter: TokenWaiter) -> Admitted | Refused | None:
        """As take_at_hand and take_rest, in one call."""
        return self.take_rest(pools, self.take_at_hand(pools), waiter)

    def answered(
        self, pools: tuple[str, ...], waiter: TokenWaiter, decision: Admitted | Refused
    ) -> Admitted | Refused | None:
        """The waiter was told a decision of either set. None: it waits for another."""
        if waiter not in self._asking:
            return self._take_of_cluster(pools, waiter) if decision is ADMITTED else decision
        self._asking.discard(waiter)
        if decision is not ADMITTED:
            self._tokens.cancel(waiter)
            return decision
        others = self._tokens.observe_resumed(waiter)
        if not (others is ADMITTED and self._cluster.is_observed):  # nothing may be observed of the cluster any more
            self._cluster.release_observed()
        return others

    def cancel(self, waiter: TokenWaiter) -> None:
        """The waiter is told nothing more, and holds nothing."""
        self._tokens.cancel(waiter)
        if waiter in self._asking:
            self._asking.discard(waiter)
            self._cluster.cancel(waiter)

    def release(self, pools: tuple[str, ...]) -> None:
        """A connection leaves the observed world, in which it has held a token of each of `pools` (a_member_holds_one)."""
        self._tokens.release(pools)
        if self._cluster.is_observed:
            self._cluster.release_observed()

    def _take_of_cluster(self, pools: tuple[str, ...], waiter: TokenWaiter) -> Admitted | Refused | None:
        if not self._cluster.is_observed or self._cluster.observe_at_hand():
            return ADMITTED
        decision = self._cluster.observe(waiter)
        if decision is None:
            self._asking.add(waiter)
            self._tokens.suspend(pools, waiter)
        elif decision is not ADMITTED:
            self._tokens.release(pools)
        return decision
