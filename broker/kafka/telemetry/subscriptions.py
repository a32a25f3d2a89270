"""Client metrics resources as subscriptions, and what they ask of one client together. Pure.

Source: ClientMetricsManager, ClientMetricsInstanceMetadata of Kafka 4.1.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from broker.runtime.crc32c import crc32c
from shards.settings.resource_settings import ALL_METRICS, CLIENT_METRICS, DEFAULT_PUSH_INTERVAL_MS, patterns_of


class Subscription(NamedTuple):
    """A client metrics resource. `match`: patterns by what they are for; a client is of it when all match as a whole."""

    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, re.Pattern[str]]

    def is_for(self, client: Mapping[str, str]) -> bool:
        return all(name in client and pattern.fullmatch(client[name]) for name, pattern in self.match.items())


class RequestedMetrics(NamedTuple):
    """The metrics that a client is asked for: prefixes ("*" alone: all; none: it pushes nothing), and how often."""

    metrics: tuple[str, ...]
    push_interval_ms: int


def subscription_of(configs: Mapping[str, str]) -> Subscription:
    """The subscription of a client metrics resource's configs, which were checked."""
    values = {
        name: row.kind.parse(configs[name]) if name in configs else row.default for name, row in CLIENT_METRICS.items()
    }
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple) and isinstance(interval_ms, int) and isinstance(match, tuple)
    return Subscription(frozenset(map(str, metrics)), interval_ms, patterns_of(tuple(map(str, match))))


def asked_of(client: Mapping[str, str], subscriptions: Iterable[Subscription]) -> RequestedMetrics:
    """The metrics of all subscriptions that the client is of, as often as the most frequent, if not less than by default."""
    metrics: set[str] = set()
    interval_ms = DEFAULT_PUSH_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.is_for(client):
            metrics |= subscription.metrics
            interval_ms = min(interval_ms, subscription.interval_ms)
    return RequestedMetrics((ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval_ms)


def subscription_id(asked: RequestedMetrics, instance_id: UUID) -> int:
    """The id of what is asked of a client instance: another one when that changes. The same on every shard and broker."""
    content = f"[{', '.join(asked.metrics)}]{asked.push_interval_ms}".encode()
    folded = (instance_id.int >> 64) ^ (instance_id.int & (1 << 64) - 1)
    number = (int(crc32c(content)) ^ (folded >> 32) ^ folded) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number
