"""What one shard knows about its tokens, as plain data for /v1/tokens and `turnstile top`."""

from heapq import nlargest
from typing import Any, cast

from shards.account import Account
from shards.cache import Share
from shards.ledger import Ledger
from shards.pool import Pool, Table


def describe(table: Table, ledger: Ledger, version: int, limit: int) -> dict[str, Any]:
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
        "home": [_at_home(pool, ledger) for pool in largest if isinstance(pool, Account)],
        "holds": [_held(pool) for pool in largest if isinstance(pool, Share)],
    }


def _size(pool: Pool) -> int:
    return pool.out if isinstance(pool, Account) else max(pool.in_use, cast(Share, pool).held)


def _at_home(account: Account, ledger: Ledger) -> dict[str, Any]:
    rule = account.rule
    return {
        "pool": account.key,
        "cap": rule.cap,
        "limit": rule.name,
        "in_use": account.in_use,
        "granted": ledger.granted(account.key),
        "free": None if rule.cap is None else max(0, rule.cap - account.out),
        "mode": account.mode.value,
        "waiting": ledger.waiting(account.key),
    }


def _held(share: Share) -> dict[str, Any]:
    return {
        "pool": share.key,
        "home": share.home,
        "in_use": share.in_use,
        "cached": share.cached,
        "tight": share.tight,
    }
