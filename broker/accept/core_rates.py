"""Redpanda's `kafka_connection_rate_limit`: a token bucket per core, that is per shard, and one per overridden address.

No other shard is asked: the limit is each core's own. A connection waits at most MOST_MS for a token, and without one it
is refused then, as `core_rate`.
"""

from __future__ import annotations

from typing import Any, Protocol

from shards.limits.caps import RateRule
from shards.limits.core_bucket import EXACT, CoreBucket, core_bucket

MOST_MS = 100


class CoreRateImage(Protocol):
    """The rates of cores in one version of the configuration. A ClusterImage has them."""

    def get(self, name: str) -> Any: ...
    def core_rate_of(self, ip: str) -> RateRule: ...


class CoreRates:
    """The buckets of one shard. `active`: whether any such limit is set."""

    def __init__(self, image: CoreRateImage) -> None:
        self.active = False
        self._exact = False
        self._image = image
        self._buckets: dict[str, CoreBucket] = {}

    def read_settings(self) -> None:
        """The image has another version."""
        image = self._image
        self._exact = image.get(EXACT)
        self.active = image.get("kafka_connection_rate_limit") is not None or bool(
            image.get("kafka_connection_rate_limit_overrides")
        )

    def take(self, ip: str, *, now_ms: int) -> int | None:
        """Milliseconds until an address has its token, which is set aside; None: not within MOST_MS."""
        rule = self._image.core_rate_of(ip)
        if rule.rate is None:
            return 0
        owner = "" if rule.name == "kafka_connection_rate_limit" else ip
        bucket = core_bucket(self._buckets.get(owner), int(rule.rate), exact=self._exact, now_ms=now_ms)
        self._buckets[owner] = bucket
        return bucket.take(now_ms=now_ms, most_ms=MOST_MS)

    def reset(self) -> None:
        """Every bucket is full again."""
        self._buckets.clear()

    def tick(self, *, now_ms: int) -> None:
        """Forgets full buckets: new ones are full, too. So what is kept is what was used within a second or so."""
        full = [owner for owner, bucket in self._buckets.items() if bucket.full(now_ms=now_ms)]
        for owner in full:
            del self._buckets[owner]
