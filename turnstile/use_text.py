"""The rows of /v1/live and /v1/explain in words: how displays name a limit, a client, and how much is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from turnstile.quantities import QUOTAS, count, per_second, use

if TYPE_CHECKING:
    from broker.admin.live_answers import LimitUse, QuotaClient
    from broker.admin.utilisation_answers import CloseRow


def pool_text(pool: str) -> str:
    """`10.0.0.1`, `the broker`, `listener EXTERNAL`, `clients over TLS`, `user alice`, `the cluster`; from `ip:10.0.0.1` etc."""
    kind, _, name = pool.partition(":")
    if kind == "ip":
        return name
    if kind == "user":
        return f"user {name}"
    if kind == "listener":
        return f"listener {name}"
    if kind == "ssl":
        return "clients over TLS"
    if kind == "cluster":
        return "the cluster"
    return "the broker, inter-broker listener included" if name == "all" else "the broker"


def broker_text(broker: int | None) -> str:
    """The number of a broker, or `all`."""
    return "all" if broker is None else str(broker)


def limit_text(row: LimitUse) -> str:
    """The name of a limit in /v1/live: `connections of 10.0.0.1`."""
    what = "connections" if row["what"] == "connections" else "new connections"
    return f"{what} of {pool_text(row['of'])}"


def use_text(row: LimitUse) -> str:
    """The use of a limit on connections, and the limit: `80 of 100 (80 %)`."""
    return use(row["used"], row["limit"], count if row["what"] == "connections" else per_second)


def quota_use_text(row: QuotaClient) -> str:
    """The use of a client's quota, and the quota: `111 kB/s of 100 kB/s (111 %)`."""
    return use(row["value"], row["limit"], QUOTAS[row["quota"]])


def close_text(close: Iterable[CloseRow]) -> str:
    """The number of limits that are close to being reached, by the rows of `close`: `2 reached, 3 from 90 %, 12 from 80 %`; "" if
    none is. Each limit on each broker counts once."""
    rows = list(close)
    high, near, full = (
        sum(row["high"] for row in rows),
        sum(row["near"] for row in rows),
        sum(row["full"] for row in rows),
    )
    parts = ((full, "reached"), (near - full, "from 90 %"), (high - near, "from 80 %"))
    return ", ".join(f"{count(number)} {share}" for number, share in parts if number)


def client_text(user: str, client_id: str) -> str:
    """A client as its quota tells it apart: by user, by client id, by both."""
    return " ".join(text for text in (user and f"user {user}", client_id and f"client {client_id}") if text) or "any"
