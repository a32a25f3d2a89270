"""Which limits hold for an address or a client, which setting or quota each comes from, and how much is used now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shards.config.coordinator import Coordinator
from shards.config.image import ClusterImage
from shards.limits.errors import ConfigInvalid
from shards.limits.overrides import normalise_ip
from shards.limits.precedence import QuotaTable
from shards.limits.quota_entities import CLIENT_KEYS, entity_of_key


async def explain_address(coordinator: Coordinator, text: str) -> list[dict[str, Any]]:
    """For each broker: {"broker", "ip", "connections": the pools a connection of the address takes a token of, "rates"}.

    A pool: {"pool", "limit", "value" (None: unlimited), "waits", "in_use", "cached", "home", "holders"}; a holder:
    {"shard", "in_use", "cached"}. A rate: {"of", "limit", "value" per second}; only rates that are limited are listed.
    Raises ConfigInvalid for what is no address.
    """
    try:
        ip = normalise_ip(text)
    except ValueError:
        raise ConfigInvalid("ip", text, "it must be an IP address") from None
    state = coordinator.state
    answers = await coordinator.ask_all("describe_tokens")
    found = []
    for broker in range(state.brokers):
        image = ClusterImage(broker)
        image.apply(state.version, [change for change in state.dump() if change[0] != "topic"], whole=True)
        of_broker = {shard: answer for (at, shard), answer in answers.items() if at == broker}
        pools = [_pool(image, pool, of_broker) for pool in ("broker", f"ip:{ip}")]
        found.append({"broker": broker, "ip": ip, "connections": pools, "rates": _rates(image, ip)})
    return found


def _pool(image: ClusterImage, pool: str, answers: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    rule = image.rule_of(pool)
    holders = []
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
    totals = {name: sum(each[name] for each in holders) for name in ("in_use", "cached")}
    return {
        "pool": pool, "limit": rule.name, "value": rule.cap, "waits": rule.wait, "home": home, **totals, "holders": holders,
    }  # fmt: skip


def _rates(image: ClusterImage, ip: str) -> list[dict[str, Any]]:
    rules = {"broker": image.rate_of("broker"), "ip": image.rate_of(f"ip:{ip}"), "core": image.core_rate_of(ip)}
    return [{"of": of, "limit": rule.name, "value": rule.rate} for of, rule in rules.items() if rule.rate is not None]


async def explain_client(coordinator: Coordinator, user: str, client_id: str) -> dict[str, Any]:
    """Which quotas hold for a client, by Kafka's precedence, which level each comes from, and its present rates.

    `matched` is the level of the first quota that holds; quotas of different keys may come from different levels,
    which `levels` tells. A level names the default as "<default>", and as null what it does not tell apart.
    """
    levels: dict[str, Mapping[str, str | None]] = {}
    quotas: dict[str, float] = {}
    for key in CLIENT_KEYS:
        table = QuotaTable()
        for text, values in coordinator.state.quotas.items():
            entity = dict(entity_of_key(text))
            if "ip" not in entity and key in values:
                table.update(entity, values[key])
        match = table.match(user, client_id)
        if match.entity is not None and match.limit is not None:
            levels[key] = match.entity
            quotas[key] = match.limit
    rates: dict[str, float] = {}
    for answer in (await coordinator.ask_all("describe_quota", user, client_id)).values():
        for key, rate in answer.items():
            rates[key] = rates.get(key, 0.0) + rate
    named = {key: _level(entity) for key, entity in levels.items()}
    matched = next(iter(named.values()), {"user": None, "client-id": None})
    return {"matched": matched, "quotas": quotas, "rates": rates, "levels": named}


def _level(entity: Mapping[str, str | None]) -> dict[str, str | None]:
    return {
        kind: None if kind not in entity else "<default>" if entity[kind] is None else entity[kind]
        for kind in ("user", "client-id")
    }
