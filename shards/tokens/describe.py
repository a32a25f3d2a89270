"""What one shard knows about its tokens, as plain data for /v1/tokens and `turnstile top`."""

from heapq import nlargest
from typing import Any, cast

from shards.tokens.cache import HolderPool
from shards.tokens.home_pool import HomePool
from shards.tokens.ledger import Ledger
from shards.tokens.pool import Pool, PoolTable


def describe(table: PoolTable, ledger: Ledger, version: int, limit: int) -> dict[str, Any]:
    """The `limit` pools with most tokens out, at home here (`home`) and used here but at home elsewhere (`holds`).

    home   {"pool", "cap" (None: unlimited), "limit" (the setting's name), "in_use" and "granted" ({shard: tokens}),
            "free", "mode" (open, reclaiming, tight), "waiting" (connections)}
    holds  {"pool", "home", "in_use", "cached", "tight"}
    Merge over shards: in use is the home's `in_use` plus every holder's, and cached the sum of `cached`.
    """
    largest = nlargest(limit, table.pools.values(), key=_size)
    return {
        "version": version,
        "pools": len(table.pools),
        "truncated": len(table.pools) > len(largest),
        "home": [_at_home(pool, ledger) for pool in largest if isinstance(pool, HomePool)],
        "holds": [_held(pool) for pool in largest if isinstance(pool, HolderPool)],
    }


def _size(pool: Pool) -> int:
    return pool.out if isinstance(pool, HomePool) else max(pool.in_use, cast(HolderPool, pool).held)


def _at_home(pool: HomePool, ledger: Ledger) -> dict[str, Any]:
    rule = pool.rule
    return {
        "pool": pool.key,
        "cap": rule.cap,
        "limit": rule.name,
        "in_use": pool.in_use,
        "granted": ledger.granted(pool.key),
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
