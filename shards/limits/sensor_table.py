"""The sensors of one type of client quota: bounded, however many names clients choose.

A quota of a default entity gives a sensor to every name that a client thinks of. When all places are taken, sensors go that
were idle for so long that their history counts no more. While every history counts, further clients of a default quota are
metered together, by SHARED sensors, until a place is free.

bounded            at most `most` sensors of keys that no quota names; a key that a quota names always has its own. SHARED more
                   for each default quota, and for the clients without a quota, which have at most half of the places
forgets_nothing    a sensor is dropped only when a new one would throttle its client just the same
never_generous     a client is throttled at least as long as by a sensor that is never dropped: a shared one counts all that its
                   clients record, and a client that leaves it for a sensor of its own takes a copy of its history along.
                   Two exceptions. A change of quotas that brings a client without a sensor of its own under another
                   quota begins its history anew: it may move one more burst then. What others owe in a shared sensor costs a
                   client a window at most: else one flood would lock out every new client for hours

A long name is a digest here (short_names.py), so `most` bounds bytes, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, Generic, TypeVar
from zlib import crc32

from shards.limits.bucket import TokenBucket
from shards.limits.precedence import EntityPlace, Key, Quota, QuotaTable
from shards.limits.rate import Rate, Window

MOST_SENSORS: Final = 10_000
"""The sensors of one type of quota at home in one shard: about 15 MB when each has a full window."""
SHARED: Final = 64
SWEPT_AT_ONCE: Final = 500
SWEPT_EVERY_MS: Final = 10

Sensor = TypeVar("Sensor", Rate, TokenBucket)


class SensorTable(Generic[Sensor]):
    """Sensors of the class `make`; `dropped(key)` is called for each that is dropped."""

    def __init__(
        self,
        make: type[Sensor],
        window: Window,
        quotas: QuotaTable,
        dropped: Callable[[Key], None],
        *,
        most: int = MOST_SENSORS,
    ) -> None:
        self._make: type[Sensor] = make
        self._window = window
        self._quotas = quotas
        self._dropped = dropped
        self._most = most
        self._swept_ms: int | None = None
        self._shared: dict[tuple[EntityPlace | None, int], Sensor] = {}
        self.own: dict[Key, Sensor] = {}
        """Sensors by key; a sweep moves those that stay to the end."""
        self.evicted = 0
        """Sensors that made room for others."""

    def take(self, key: Key, *, now_ms: int) -> Sensor:
        """The sensor of a key: its own, a new one, or a shared one, which may be another at the next call."""
        sensor = self.own.get(key)
        if sensor is not None:
            return sensor
        quota = self._quotas.quota(key)
        slot = None if quota is None else quota.place, crc32("\0".join(key).encode("utf-8", "surrogatepass")) % SHARED
        shared = self._shared.get(slot)
        if shared is not None:
            shared.forgive(None if quota is None else quota.limit, now_ms=now_ms)
        if self._has_room(quota, now_ms):
            sensor = self._make(self._window) if shared is None else shared.copy()
            self.own[key] = sensor
            return sensor
        if shared is None:
            shared = self._shared[slot] = self._make(self._window)
        return shared

    def expire(self, key: Key, *, now_ms: int, idle_ms: int) -> bool:
        """Drops the sensor of a key if nothing was recorded in it for `idle_ms`; True if it did."""
        sensor = self.own.get(key)
        if sensor is None or now_ms - (sensor.idle_since_ms() or 0) < idle_ms:
            return False
        self._drop(key)
        return True

    def drop_shared(self, *, now_ms: int) -> None:
        """Drops the shared sensors whose history counts no more."""
        for slot, sensor in list(self._shared.items()):
            place, _ = slot
            if sensor.is_spent(self._quotas.limit_at(place), now_ms=now_ms):
                del self._shared[slot]

    @property
    def is_sharing(self) -> bool:
        """True if clients are metered together, or were within the last window."""
        return bool(self._shared)

    def _has_room(self, quota: Quota | None, now_ms: int) -> bool:
        if quota is not None and quota.is_named:
            return True
        most = self._most // 2 if quota is None else self._most
        if len(self.own) >= most and (self._swept_ms is None or now_ms - self._swept_ms >= SWEPT_EVERY_MS):
            self._swept_ms = now_ms
            self._sweep(now_ms)
        return len(self.own) < most

    def _sweep(self, now_ms: int) -> None:
        """Looks at the SWEPT_AT_ONCE sensors that were looked at longest ago, and drops those that are spent."""
        for key in list(itertools.islice(self.own, SWEPT_AT_ONCE)):
            sensor = self.own[key]
            if sensor.is_spent(self._quotas.limit(key), now_ms=now_ms):
                self.evicted += 1
                self._drop(key)
            else:
                del self.own[key]
                self.own[key] = sensor

    def _drop(self, key: Key) -> None:
        del self.own[key]
        self._dropped(key)
