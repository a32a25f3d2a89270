"""A description of the tokens of one shard: for /v1/tokens and `turnstile top`, and for simulations and tests."""

from collections.abc import Sequence
from heapq import nlargest
from typing import Any, NamedTuple, cast

from shards.tokens.connections_in_flight import ConnectionsInFlight
from shards.tokens.holder_cache import HolderPool
from shards.tokens.home_ledger import HomeLedger
from shards.tokens.home_pool import HomePool
from shards.tokens.pool import Pool, PoolTable, TokenWaiter


def describe(
    table: PoolTable, ledger: HomeLedger, version: int, limit: int, named: Sequence[str] | None = None
) -> dict[str, Any]:
    """The `limit` pools with most tokens out, or those `named`, at home here (`home`) and used here but at home elsewhere
    (`holds`).

    home   {"pool", "cap" (None: unlimited), "limit" (the setting's name), "in_use" and "granted" ({shard: tokens}),
            "free", "mode" (open, reclaiming, tight), "waiting" (connections)}
    holds  {"pool", "home", "in_use", "cached", "tight"}
    Merge over shards: in use is the home's `in_use` plus every holder's, and cached the sum of `cached`.
    """
    largest: list[Pool]
    if named is None:
        largest = nlargest(limit, table.pools.values(), key=_size)
    else:
        largest = [table.pools[key] for key in named if key in table.pools]
    return {
        "version": version,
        "pools": len(table.pools),
        "truncated": len(table.pools) > len(largest),
        "home": [_at_home(pool, ledger) for pool in largest if isinstance(pool, HomePool)],
        "holds": [_held(pool) for pool in largest if isinstance(pool, HolderPool)],
    }


class TokensSnapshot(NamedTuple):
    """The tokens of one shard at the end of a pass; copies of plain data.

    in_use     {pool: tokens that connections of this shard hold}, of every pool that this shard knows
    held       {home: {pool: tokens granted to this shard}}, of pools with other homes
    granted    {shard: {pool: tokens}}, of pools at home here; without `unsure`
    unsure     {shard: {pool: tokens}}: the most that shards have whose links were lost
    in_flight  {waiter: (pools of which it holds a token, the pool it waits for or None)}
    modes      {pool: "open", "reclaiming" or "tight"}, of pools at home here
    waited_for pools at home here for which connections of any shard wait, or whose holders have not all answered
    tight      pools with other homes of which nothing may be cached here
    unsettled  pools at home here that wait for answers of other shards before a version can be done
    """

    in_use: dict[str, int]
    held: dict[int, dict[str, int]]
    granted: dict[int, dict[str, int]]
    unsure: dict[int, dict[str, int]]
    in_flight: dict[TokenWaiter, tuple[tuple[str, ...], str | None]]
    modes: dict[str, str]
    waited_for: frozenset[str]
    tight: frozenset[str]
    unsettled: frozenset[str]

    def cached(self, pool: str) -> int:
        """Idle tokens of a pool with another home that lie here."""
        return sum(max(0, held.get(pool, 0) - self.in_use[pool]) for held in self.held.values() if pool in held)


def snapshot(table: PoolTable, ledger: HomeLedger, in_flight: ConnectionsInFlight) -> TokensSnapshot:
    """See TokensSnapshot."""
    held: dict[int, dict[str, int]] = {}
    for pool in table.pools.values():
        if isinstance(pool, HolderPool):
            held.setdefault(pool.home, {})[pool.key] = pool.held
    return TokensSnapshot(
        in_use={key: pool.in_use for key, pool in table.pools.items()},
        held=held,
        granted=ledger.lent.sure(),
        unsure=ledger.lent.unsure(),
        in_flight=in_flight.snapshot(),
        modes={key: pool.mode.value for key, pool in table.pools.items() if isinstance(pool, HomePool)},
        waited_for=ledger.contended,
        tight=frozenset(key for key, pool in table.pools.items() if isinstance(pool, HolderPool) and pool.tight),
        unsettled=frozenset((*ledger.revocation.revoking, *ledger.blocked)),
    )


def _size(pool: Pool) -> int:
    return pool.out if isinstance(pool, HomePool) else max(pool.in_use, cast(HolderPool, pool).held)


def _at_home(pool: HomePool, ledger: HomeLedger) -> dict[str, Any]:
    rule = pool.rule
    return {
        "pool": pool.key,
        "cap": rule.cap,
        "limit": rule.name,
        "in_use": pool.in_use,
        "granted": ledger.lent_by_shard(pool.key),
        "free": None if rule.cap is None else max(0, rule.cap - pool.out),
        "mode": pool.mode.value,
        "waiting": ledger.waiting(pool.key),
    }


def _held(pool: HolderPool) -> dict[str, Any]:
    return {
        "pool": pool.key,
        "home": pool.home,
        "in_use": pool.in_use,
        "cached": pool.cached,
        "tight": pool.tight,
    }
