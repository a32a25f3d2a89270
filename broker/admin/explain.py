"""The limits that hold for an address or a client, the setting or quota that each comes from, and its present use.

Limits and quotas hold on each broker by itself, so each use is that of one broker. Two are sums over brokers: the use of the
whole cluster's limit, and the `rates` of a client, whose `brokers` has those of each broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from broker.admin.answers import BrokerQuotaRates, ClientLevel, ClientQuotas
from broker.admin.cluster_answers import (
    AddressLimits,
    AddressPool,
    AddressRate,
    HeldTokens,
    ObservedUse,
    PoolUse,
    UserConnections,
)
from broker.admin.images import Images
from broker.admin.uses import Use, has_own_row, in_use
from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.config.setting_changes import listeners_of
from shards.limits.bursts import burst_of
from shards.limits.caps import CLUSTER, OBSERVED
from shards.limits.quota_entities import PREFIX
from shards.settings.broker_config import EVERY_BROKER
from shards.settings.errors import ConfigInvalid


async def explain_address(
    coordinator: Coordinator, images: Images, text: str, rate_uses: Callable[[], Awaitable[list[Use]]]
) -> list[AddressLimits]:
    """The limits of an address on each broker: the pools that its connections take a token of, of listeners only those with a cap
    of their own, and the rates that are limited. Raises ConfigInvalid for what is no address."""
    ip = checked_address(images.of(0), text)
    listeners = [f"listener:{name}" for name in listeners_of(coordinator.state.static)]
    pools = ["broker", "ssl", f"ip:{ip}", *listeners]
    answers = await coordinator.ask_all("describe_tokens", [*pools, *(OBSERVED + pool for pool in pools)])
    used = {(use.broker, use.of): use.used for use in await rate_uses()}
    found: list[AddressLimits] = []
    for broker in range(coordinator.state.brokers):
        image = images.of(broker)
        of_broker = {shard: answer for (at, shard), answer in answers.items() if at == broker}
        shown = [pool for pool in pools if has_own_row(pool, image.rule_of(pool).name) or is_observed(image, pool)]
        connections: list[AddressPool] = [
            {**_pool(image, pool, of_broker), "observed": _observed(image, pool, of_broker)} for pool in shown
        ]
        found.append({
            "broker": broker, "ip": ip, "connections": connections, "rates": _rates(image, ip, listeners, used, broker),
        })  # fmt: skip
    return found


async def explain_cluster(coordinator: Coordinator, images: Images) -> AddressPool | None:
    """The pool of all connections to all brokers; None: it has no cap, and none is observed."""
    image = images.of(0)
    observed = _observed(image, CLUSTER, {})
    if observed is None and image.rule_of(CLUSTER).cap is None:
        return None
    used = in_use(await coordinator.ask_all("describe_tokens", [CLUSTER, OBSERVED + CLUSTER]))
    if observed is not None:
        observed["in_use"] = used[EVERY_BROKER, OBSERVED + CLUSTER]
    return {**_pool(image, CLUSTER, {}), "in_use": used[EVERY_BROKER, CLUSTER], "observed": observed}


async def explain_cluster_rate(images: Images, rate_uses: Callable[[], Awaitable[list[Use]]]) -> AddressRate | None:
    """The rate of new connections to all brokers; None: there is none."""
    image = images.of(0)
    rule = image.rate_of(CLUSTER)
    if rule.rate is None:
        return None
    used = {use.of: use.used for use in await rate_uses()}
    return _rate(CLUSTER, rule.name, rule.rate, image, used.get(CLUSTER))


def explain_observed_cluster_rate(images: Images, use: Use | None) -> AddressRate | None:
    """As explain_cluster_rate, of the observed rate; `use`: its use."""
    return None if use is None else _rate(CLUSTER, use.by, use.limit, images.of(0), use.used)


def checked_address(image: ClusterImage, text: str) -> str:
    """The address by which a client at this one is counted: the first of its network, with turnstile.ipv6.prefix.length. Raises
    ConfigInvalid."""
    try:
        return image.limits.counted(text)
    except ValueError:
        raise ConfigInvalid("ip", text, "it must be an IP address") from None


def is_observed(image: ClusterImage, pool: str) -> bool:
    """True if a cap of the pool is observed that is not the one in force; for a listener only a cap of its own counts."""
    rule = image.rule_of(OBSERVED + pool)
    return rule.cap is not None and has_own_row(pool, rule.name)


def _observed(image: ClusterImage, pool: str, answers: Mapping[int, Mapping[str, object]]) -> ObservedUse | None:
    if not is_observed(image, pool):
        return None
    found = _pool(image, OBSERVED + pool, answers)
    return {"limit": found["limit"], "value": found["value"], "waits": found["waits"], "in_use": found["in_use"]}


def _pool(image: ClusterImage, pool: str, answers: Mapping[int, Mapping[str, Any]]) -> PoolUse:
    rule = image.rule_of(pool)
    holders: list[HeldTokens] = []
    home = None
    for shard, answer in answers.items():
        used = cached = 0
        for row in answer["home"]:
            if row["pool"] == pool:
                home, used = shard, used + row["in_use"]
        for row in answer["holds"]:
            if row["pool"] == pool:
                used, cached = used + row["in_use"], cached + row["cached"]
        if used or cached:
            holders.append({"shard": shard, "in_use": used, "cached": cached})
    return {
        "pool": pool, "limit": rule.name, "value": rule.cap, "waits": rule.wait, "home": home,
        "in_use": sum(each["in_use"] for each in holders), "cached": sum(each["cached"] for each in holders), "holders": holders,
    }  # fmt: skip


def _rates(
    image: ClusterImage, ip: str, listeners: list[str], used: Mapping[tuple[int, str], float], broker: int
) -> list[AddressRate]:
    rules = {"broker": image.rate_of("broker"), "ip": image.rate_of(f"ip:{ip}"), "core": image.core_rate_of(ip)}
    rules |= {listener: image.rate_of(listener) for listener in listeners}
    used_of = {of: used.get((broker, f"ip:{ip}"), 0.0) if of == "ip" else used.get((broker, of)) for of in rules}
    return [
        _rate(of, rule.name, rule.rate, image, used_of[of])
        for of, rule in rules.items()
        if rule.rate is not None and has_own_row(of, rule.name)
    ]


def _rate(of: str, limit: str, per_s: float, image: ClusterImage, used: float | None) -> AddressRate:
    burst = burst_of(limit, per_s, image.limits).amount
    return {"of": of, "limit": limit, "value": per_s, "burst": burst, "used": used}


async def explain_user(
    coordinator: Coordinator, images: Images, user: str, rate_uses: Callable[[], Awaitable[list[Use]]]
) -> list[UserConnections]:
    """The pool of a user's connections on each broker, and the rate of new ones."""
    pool = f"user:{user}"
    answers = await coordinator.ask_all("describe_tokens", [pool, OBSERVED + pool])
    used = {(use.broker, use.of): use.used for use in await rate_uses()}
    found: list[UserConnections] = []
    for broker in range(coordinator.state.brokers):
        image = images.of(broker)
        of_broker = {shard: answer for (at, shard), answer in answers.items() if at == broker}
        rule = image.rate_of(pool)
        rate = None if rule.rate is None else _rate("user", rule.name, rule.rate, image, used.get((broker, pool), 0.0))
        observed = _observed(image, pool, of_broker)
        found.append({"broker": broker, **_pool(image, pool, of_broker), "observed": observed, "rate": rate})
    return found


async def explain_client(coordinator: Coordinator, images: Images, user: str, client_id: str) -> ClientQuotas:
    """The quotas that hold for a client, by the precedence in force: the level that each comes from, and its present rates.

    `matched` is the level of the first quota that holds; quotas of different keys may come from different levels,
    which `levels` tells. A level names the default as "<default>", and as null what it does not tell apart. `brokers`:
    [{"broker", "rates": {key: rate there}}], without the rates that no shard of the broker answers; `rates` are their sums.
    """
    levels: dict[str, Mapping[str, str | None]] = {}
    quotas: dict[str, float] = {}
    for key, match in images.matches(user, client_id).items():
        if match.entity is not None and match.limit is not None:
            levels[key] = match.entity
            quotas[key] = match.limit
    by_broker: list[dict[str, float]] = [{} for _ in range(coordinator.state.brokers)]
    for (broker, _), answer in (await coordinator.ask_all("describe_quota", user, client_id)).items():
        for key, rate in answer.items():
            by_broker[broker][key] = by_broker[broker].get(key, 0.0) + rate
    sums = {key: sum(rates.get(key, 0.0) for rates in by_broker) for key in {key for each in by_broker for key in each}}
    named = {key: _level(entity) for key, entity in levels.items()}
    matched = next(iter(named.values()), _level({}))
    brokers: list[BrokerQuotaRates] = [{"broker": broker, "rates": rates} for broker, rates in enumerate(by_broker)]
    return {"matched": matched, "quotas": quotas, "rates": sums, "brokers": brokers, "levels": named}


def _level(entity: Mapping[str, str | None]) -> ClientLevel:
    def told(kind: str) -> str | None:
        return None if kind not in entity else "<default>" if entity[kind] is None else entity[kind]

    level: ClientLevel = {"user": told("user"), "client-id": told("client-id")}
    return {**level, PREFIX: entity[PREFIX]} if PREFIX in entity else level
