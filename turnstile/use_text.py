"""How displays name a limit, a client, and how much is used: the rows of /v1/live and /v1/explain in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from turnstile.quantities import QUOTAS, count, per_second, use


def pool_text(pool: str) -> str:
    """`10.0.0.1`, `the broker`, `listener EXTERNAL`, from `ip:10.0.0.1` and so on."""
    kind, _, name = pool.partition(":")
    if kind == "ip":
        return name
    if kind == "listener":
        return f"listener {name}"
    return "the broker, inter-broker listener included" if name == "all" else "the broker"


def limit_text(row: Mapping[str, Any]) -> str:
    """A limit that /v1/live tells the use of: `connections of 10.0.0.1`."""
    what = "connections" if row["what"] == "connections" else "new connections"
    return f"{what} of {pool_text(row['of'])}"


def use_text(row: Mapping[str, Any]) -> str:
    """The use of a limit (`used`), or of a client's quota (`value`), beside it."""
    if "quota" in row:
        return use(row["value"], row["limit"], QUOTAS[row["quota"]])
    return use(row["used"], row["limit"], count if row["what"] == "connections" else per_second)


def close_text(close: Iterable[Mapping[str, Any]]) -> str:
    """How many limits are close to being reached, by the rows of `close`: `2 reached, 3 from 90 %, 12 from 80 %`; "" if none is.
    Each limit on each broker counts once."""
    rows = list(close)
    high, near, full = (sum(row[name] for row in rows) for name in ("high", "near", "full"))
    told = ((full, "reached"), (near - full, "from 90 %"), (high - near, "from 80 %"))
    return ", ".join(f"{count(number)} {share}" for number, share in told if number)


def client_text(user: str, client_id: str) -> str:
    """A client as its quota tells it apart: by user, by client id, by both."""
    return " ".join(text for text in (user and f"user {user}", client_id and f"client {client_id}") if text) or "any"
