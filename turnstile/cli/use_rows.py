"""The rows of `explain` and `quota explain`: one for each limit on each broker, with how much of it is used there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnstile.quantities import QUOTAS, count, per_second, use
from turnstile.use_text import broker_text, pool_text

if TYPE_CHECKING:
    from broker.admin.answers import ClientQuotas
    from broker.admin.cluster_answers import (
        AddressLimits,
        AddressPool,
        AddressRate,
        Explanation,
        ObservedUse,
        PoolUse,
        UserConnections,
    )

UseRow = tuple[str, ...]


def cluster_rows(found: Explanation, *, internals: bool) -> list[UseRow]:
    """The rows of the cluster's cap and rate, enforced and observed."""
    rows = [*_of_cluster(found["cluster"], internals)] if "cluster" in found else []
    if (rate := found.get("cluster_rate")) is not None:
        rows.append(_rate(pool_text(rate["of"]), None, rate, internals))
    if (rate := found.get("observed_cluster_rate")) is not None:
        rows.append(_observed_rate(rate, internals))
    return rows


def address_rows(brokers: Sequence[AddressLimits], of_cluster: Sequence[UseRow], *, internals: bool) -> list[UseRow]:
    """The limits of an address's connections, as rows, behind those of the whole cluster. With `internals`, the tokens of each pool
    by shard."""
    rows = [_heading(internals), *of_cluster]
    for broker in brokers:
        for pool in broker["connections"]:
            rows += _pool(broker["broker"], pool, internals)
        rows += [_rate(_whose(broker, rate), broker["broker"], rate, internals) for rate in broker["rates"]]
    return _by_broker(rows, len(brokers))


def user_rows(brokers: Sequence[UserConnections], of_cluster: Sequence[UseRow], *, internals: bool) -> list[UseRow]:
    """The rows of limits on the connections of a user, behind those of the whole cluster; none where nothing limits them."""
    limited = [
        pool for pool in brokers if any(each is not None for each in (pool["value"], pool["rate"], pool["observed"]))
    ]
    if not limited and not of_cluster:
        return []
    rows = [_heading(internals), *of_cluster]
    for pool in brokers if limited else ():
        rows += _pool(pool["broker"], pool, internals)
        if pool["rate"] is not None:
            rows.append(_rate(pool_text(pool["pool"]), pool["broker"], pool["rate"], internals))
    return _by_broker(rows, len(brokers))


def client_rows(client: ClientQuotas) -> list[UseRow]:
    """The quotas that hold for a client; none when there is none."""
    rows: list[UseRow] = [("QUOTA", "BROKER", "USED", "BECAUSE OF")]
    for name, value in client["quotas"].items():
        level = " ".join(f"{kind}={each}" for kind, each in client["levels"][name].items() if each is not None)
        for broker in client["brokers"]:
            rate = broker["rates"].get(name)
            used = f"limit {QUOTAS[name](value)}, use not known" if rate is None else use(rate, value, QUOTAS[name])
            rows.append((name, str(broker["broker"]), used, level))
    return _by_broker(rows, len(client["brokers"])) if client["quotas"] else []


def _heading(internals: bool) -> UseRow:
    return ("LIMIT", "BROKER", "USED", "SET BY", *(["BY SHARD"] if internals else []))


def _pool(broker: int, pool: AddressPool | UserConnections, internals: bool) -> Iterator[UseRow]:
    """The enforced cap, and the observed one if there is one."""
    waits = "; over it a connection waits" if pool["waits"] else ""
    row = (f"connections of {pool_text(pool['pool'])}", str(broker), use(pool["in_use"], pool["value"]))
    yield (*row, f"{pool['limit'] or '-'}{waits}", *(_by_shard(pool) if internals else ()))
    if (cap := pool["observed"]) is not None:
        yield _observed(broker, pool["pool"], cap, internals)


def _of_cluster(pool: AddressPool, internals: bool) -> Iterator[UseRow]:
    """The rows of the whole cluster; that of the enforced cap only if there is one."""
    if pool["value"] is not None:
        row = (f"connections of {pool_text(pool['pool'])}", broker_text(None), use(pool["in_use"], pool["value"]))
        yield (*row, pool["limit"], *(["-"] if internals else []))
    if (cap := pool["observed"]) is not None:
        yield _observed(None, pool["pool"], cap, internals)


def _observed(broker: int | None, pool: str, cap: ObservedUse, internals: bool) -> UseRow:
    """The cap that is observed beside the enforced one, in a row of its own."""
    would = "a connection would wait" if cap["waits"] else "a connection would be refused"
    row = (f"observed: {pool_text(pool)}", broker_text(broker), use(cap["in_use"], cap["value"]))
    return (*row, f"{cap['limit']}; over it {would}", *(["-"] if internals else ()))


def _by_shard(pool: PoolUse) -> Iterator[str]:
    """Home and holders of a pool, as docs/internals/tokens.md names them."""
    home = [] if pool["home"] is None else [f"home: shard {pool['home']}"]
    holders = [f"shard {each['shard']}: {each['in_use']} in use, {each['cached']} cached" for each in pool["holders"]]
    yield "; ".join([*home, *holders]) or "-"


def _whose(broker: AddressLimits, rate: AddressRate) -> str:
    if rate["of"] == "core":
        return f"{broker['ip']}, on each shard"
    return broker["ip"] if rate["of"] == "ip" else pool_text(rate["of"])


def _rate(whose: str, broker: int | None, rate: AddressRate, internals: bool) -> UseRow:
    used = f"at most {per_second(rate['value'])}"
    if rate["used"] is not None:
        used = use(rate["used"], rate["value"], per_second)
    if rate["burst"] > rate["value"]:
        used += f"; {count(rate['burst'])} at once after a pause"
    return (f"new connections of {whose}", broker_text(broker), used, rate["limit"], *(["-"] if internals else []))


def _observed_rate(rate: AddressRate, internals: bool) -> UseRow:
    """The rate of the whole cluster that is observed beside the enforced one."""
    what, broker, used, limit, *more = _rate(pool_text(rate["of"]), None, rate, internals)
    return (f"observed: {what}", broker, used, f"{limit}; over it a connection would be refused", *more)


def _by_broker(rows: list[UseRow], brokers: int) -> list[UseRow]:
    """One broker: drops the broker column. Several: puts rows of the same limit together."""
    if brokers == 1:
        return [(row[0], *row[2:]) for row in rows]
    places = {name: place for place, (name, *_) in reversed([*enumerate(rows)])}
    return sorted(rows, key=lambda row: places[row[0]])
