"""Client quotas done again from what a meter noted: which of its charges would Kafka have throttled otherwise, and by how much?

A meter's shard notes each charge, what other shards told it, and what its sensor holds where that does not follow from these
(docs/internals/journal.md). Fed with them in order, the sensor here goes through the same states, by Kafka's arithmetic
(rate.py, bucket.py), and `charge` answers what each charge should have been answered.

Amounts are bytes, partitions, or nanoseconds of handler time, as they are noted; times are whole milliseconds that never go back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shards.limits.bucket import TokenBucket
from shards.limits.client_quota_managers import FETCH, MUTATION, PERCENT_PER_NANO, REQUEST, Charged, refill_per_s
from shards.limits.rate import Rate, Window
from shards.limits.throttle_time import bucket_throttle_ms
from shards.settings.ranges import INT_MAX

UNTOLD_SHARE: Final = 50
"""A home tells other shards what it recorded once that reaches a fiftieth of what the quota lets pass at once: with Kafka's
windows, 200 ms worth of the quota."""
LEAST_SHARE: Final = 1e-9
"""Sums of fractions differ by less, by the order in which they are added."""


class MeterReplay:
    """The sensor of one key of a kind of quota at one shard, from its first note on."""

    __slots__ = ("_kind", "_sensor", "_window", "at_ms")

    def __init__(self, kind: str, window: Window) -> None:
        self.at_ms = 0
        self._kind = kind
        self._window = window
        self._sensor: Rate | TokenBucket = self._new()

    def _new(self) -> Rate | TokenBucket:
        return TokenBucket(self._window) if self._kind == MUTATION else Rate(self._window)

    def begin(self, state: Mapping[str, object]) -> None:
        """The sensor holds this, as a note says; empty: nothing. Raises ValueError, TypeError or KeyError for what is no state."""
        if not state:
            self._sensor = self._new()
        else:
            self._sensor = type(self._sensor).of_state(self._window, state)

    def units(self, amount: int) -> float:
        """A noted amount in the sensor's own unit."""
        return amount * PERCENT_PER_NANO if self._kind == REQUEST else amount

    def used(self, quota_per_s: float | None, *, now_ms: int) -> float:
        """The count of the sensor at an instant: the sum of its samples, or the tokens that are missing of a full bucket."""
        if isinstance(self._sensor, Rate):
            return self._sensor.units(now_ms=now_ms)
        refill = refill_per_s(quota_per_s)
        return TokenBucket.burst(self._window, refill) - self._sensor.peek(refill, now_ms=now_ms)

    def insert(self, amount: float, quota_per_s: float | None, *, recorded_ms: int, now_ms: int) -> None:
        """Records what another shard had recorded, in the sensor's own unit."""
        if isinstance(self._sensor, Rate):
            self._sensor.insert(amount, at_ms=recorded_ms, now_ms=now_ms)
        else:
            at_ms = max(recorded_ms, self._sensor.idle_since_ms())
            self._sensor.record(amount, refill_per_s(quota_per_s), now_ms=at_ms)

    def charge(self, amount: int, quota_per_s: float, *, strict: bool, now_ms: int) -> Charged:
        """The answer that Kafka gives to a charge. The caller says with `settle` what the broker did."""
        if isinstance(self._sensor, TokenBucket):
            return self._mutate(self._sensor, amount, quota_per_s, strict=strict, now_ms=now_ms)
        units = self.units(amount)
        if self._kind == FETCH and amount < 0:
            self._sensor.record(units, now_ms=now_ms)
            return Charged(True, 0)
        most_ms = self._window.size_ms if self._kind == REQUEST else INT_MAX
        return Charged(True, self._sensor.charge(units, quota_per_s, now_ms=now_ms, max_ms=most_ms))

    def settle(self, amount: int, *, throttled: bool, now_ms: int) -> None:
        """A Fetch that was throttled is answered empty, and its bytes are taken back."""
        if self._kind == FETCH and throttled and amount > 0 and isinstance(self._sensor, Rate):
            self._sensor.record(-amount, now_ms=now_ms)

    @staticmethod
    def _mutate(bucket: TokenBucket, amount: int, quota_per_s: float, *, strict: bool, now_ms: int) -> Charged:
        if not strict:
            return Charged(True, bucket.charge(amount, quota_per_s, now_ms=now_ms))
        tokens = bucket.tokens(quota_per_s, now_ms=now_ms)
        if tokens < 0:
            return Charged(False, bucket_throttle_ms(tokens, quota_per_s))
        bucket.record(amount, quota_per_s, now_ms=now_ms)
        return Charged(True, 0)
