"""The clients that client quotas slow down, for displays: from the gauges that shards report for /metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

_RATE_OF = {"produce": "byte_rate", "fetch": "byte_rate", "request": "request_time", "controllermutation": "tokens"}
_QUOTA_OF = {
    "produce": "producer_byte_rate",
    "fetch": "consumer_byte_rate",
    "request": "request_percentage",
    "controllermutation": "controller_mutation_rate",
}


def throttled_clients(gauges: Iterable[Iterable[Sequence[Any]]], most: int) -> list[dict[str, Any]]:
    """The clients with the longest average throttle time within the quota window, the longest first.

    `gauges`: what each shard answers to describe_gauges. Each row: `user` and `client_id` ("" where the quota does not
    tell them apart), `quota` (its key), `throttle_ms`, and `value`: bytes a second, percent, or tokens left.
    """
    values: dict[tuple[str, str, str], float] = {}
    throttles: dict[tuple[str, str, str], float] = {}
    for reported in gauges:
        for name, labels, value in reported:
            bean, _, attribute = str(name).removeprefix("kafka_server_").partition("_")
            if bean not in _QUOTA_OF or "client_id" not in labels:
                continue
            key = (bean, labels["user"], labels["client_id"])
            if attribute == "throttle_time" and value > 0 and math.isfinite(value):
                throttles[key] = max(value, throttles.get(key, 0.0))
            elif attribute == _RATE_OF[bean]:
                values[key] = values.get(key, 0.0) + value
    ranked = sorted(throttles.items(), key=lambda item: (-item[1], item[0]))[:most]
    return [
        {
            "user": user,
            "client_id": client_id,
            "quota": _QUOTA_OF[bean],
            "throttle_ms": round(throttle_ms, 1),
            "value": round(values.get((bean, user, client_id), 0.0), 1),
        }
        for (bean, user, client_id), throttle_ms in ranked
    ]
