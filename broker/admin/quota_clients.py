"""Clients with a quota, for displays: how much of it they use, and which of them it slows down. From the gauges of
/metrics, and from the shards' own lists of the clients closest to their quotas."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.admin.images import Images
from broker.admin.live_answers import QuotaClient
from broker.admin.utilisation import ClientUse
from shards.ownership import BrokerShard

_PREFIX = "kafka_server_quota_"
_RATES = ("byte_rate", "request_time", "mutation_rate")
_QUOTA_OF = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    "Request": "request_percentage",
    "ControllerMutation": "controller_mutation_rate",
}
_BEAN_OF = {quota: bean for bean, quota in _QUOTA_OF.items()}
_Key = tuple[int, str, str, str]
"""Broker, bean, user, client-id."""


class QuotaClients(NamedTuple):
    """Clients with a quota: those that it slows down, the longest average throttle time within the quota window first, and
    others that use it, the fullest first. A row for each broker, as a quota holds on each broker by itself: `broker`, `user` and
    `client_id` ("" where the quota does not tell them apart), `quota` (its key), `throttle_ms`, `value` (bytes a second,
    percent, or mutations a second), and `limit`, the quota in the same unit (None: it is not set any more)."""

    throttled: list[QuotaClient]
    others: list[QuotaClient]


def quota_clients(
    gauges: Mapping[BrokerShard, Iterable[Sequence[Any]]], closest: Iterable[ClientUse], images: Images, most: int
) -> QuotaClients:
    """At most `most` rows in all. `gauges`: what each shard answers to describe_gauges, of some clients; `closest`: of all clients
    those that are closest to their quotas."""
    values: dict[_Key, float] = {}
    throttles: dict[_Key, float] = {}
    for (broker, _), reported in gauges.items():
        for name, labels, value in reported:
            if not str(name).startswith(_PREFIX):
                continue
            attribute = str(name).removeprefix(_PREFIX)
            key = (broker, labels["resource"], labels.get("user", ""), labels.get("clientId", ""))
            if attribute == "throttle_time" and value > 0 and math.isfinite(value):
                throttles[key] = max(value, throttles.get(key, 0.0))
            elif attribute in _RATES:
                values[key] = values.get(key, 0.0) + value
    for broker, use in closest:
        key = (broker, _BEAN_OF[use.kind], use.user, use.client_id)
        values[key] = use.used
        if use.throttle_ms:
            throttles[key] = use.throttle_ms
    longest = sorted(throttles.items(), key=lambda item: (-item[1], item[0]))[:most]
    throttled = [_row(key, throttle_ms, values.get(key, 0.0), images) for key, throttle_ms in longest]
    rows = [_row(key, 0.0, value, images) for key, value in values.items() if value > 0 and key not in throttles]
    others = sorted(
        (row for row in rows if row["limit"]), key=lambda row: (-row["value"] / (row["limit"] or 1.0), row["broker"])
    )
    return QuotaClients(throttled, others[: most - len(throttled)])


def _row(key: _Key, throttle_ms: float, value: float, images: Images) -> QuotaClient:
    broker, bean, user, client_id = key
    quota = _QUOTA_OF[bean]
    return {
        "broker": broker,
        "user": user,
        "client_id": client_id,
        "quota": quota,
        "throttle_ms": round(throttle_ms, 1),
        "value": round(value, 3),
        "limit": images.quotas(quota).limit((user, client_id)),
    }
