"""Token buckets: KIP-599's for controller mutations, and an exact one for connection rates per core."""

import copy
import math
from collections.abc import Mapping
from typing import Any

from shards.limits.rate import DEFAULT_WINDOW, Window
from shards.limits.throttle_time import bucket_throttle_ms


class TokenBucket:
    """KIP-599's bucket: refilled at the quota, holding at most quota * all windows, and it may go below zero.

    A new one is full. The quota is told at every call, so a change of it takes effect at once: tokens are kept, and
    clipped to the new burst by the next refill. Source: TokenBucket (Apache Kafka).
    """

    __slots__ = ("_now_ms", "_tokens", "window")

    def __init__(self, window: Window = DEFAULT_WINDOW) -> None:
        self.window = window
        self._tokens = math.inf  # clipped to the burst by the first refill
        self._now_ms = 0

    def tokens(self, quota_per_s: float, *, now_ms: int) -> float:
        """Tokens there are after a refill; below zero: the quota is exhausted."""
        burst = self.burst(self.window, quota_per_s)
        self._tokens = min(burst, self._tokens + quota_per_s * ((now_ms - self._now_ms) / 1000.0))
        self._now_ms = now_ms
        return self._tokens

    def record(self, amount: float, quota_per_s: float, *, now_ms: int) -> None:
        """Take `amount` tokens, whether they are there or not; a negative amount gives back, up to the burst."""
        self._tokens = min(self.burst(self.window, quota_per_s), self.tokens(quota_per_s, now_ms=now_ms) - amount)

    def charge(self, amount: float, quota_per_s: float, *, now_ms: int) -> int:
        """Take `amount` and answer the milliseconds until the bucket is back at zero (KIP-599, permissive)."""
        self.record(amount, quota_per_s, now_ms=now_ms)
        return bucket_throttle_ms(self.tokens(quota_per_s, now_ms=now_ms), quota_per_s)

    def forgive(self, quota_per_s: float | None, *, now_ms: int) -> None:
        """Keeps no more of a debt than a full bucket holds: the quota pays it back in a window. None: there is no debt."""
        if quota_per_s is not None:
            owed = -self.burst(self.window, quota_per_s)
            self._tokens = max(self.tokens(quota_per_s, now_ms=now_ms), owed)

    def peek(self, quota_per_s: float, *, now_ms: int) -> float:
        """The answer that `tokens` would give, without refilling."""
        return min(
            self.burst(self.window, quota_per_s), self._tokens + quota_per_s * ((now_ms - self._now_ms) / 1000.0)
        )

    def idle_since_ms(self) -> int:
        """The time of the last refill."""
        return self._now_ms

    def is_spent(self, quota_per_s: float | None, *, now_ms: int) -> bool:
        """True if it is full again under its quota (None: it has none), and would be under any higher one."""
        window_ms = self.window.samples * self.window.size_ms
        if quota_per_s is None:
            return now_ms - self._now_ms >= window_ms
        return (
            self.peek(quota_per_s, now_ms=now_ms) >= self.burst(self.window, quota_per_s)
            and now_ms - self._now_ms >= window_ms
        )

    def state(self) -> dict[str, object] | None:
        """All that later answers depend on, as plain data; None for a bucket that was never used, and so is full."""
        return None if math.isinf(self._tokens) else {"tokens": self._tokens, "refilled_ms": self._now_ms}

    @classmethod
    def of_state(cls, window: Window, state: Mapping[str, Any]) -> "TokenBucket":
        """The bucket that told its state. ValueError, TypeError or KeyError for what is none."""
        bucket = cls(window)
        bucket._tokens, bucket._now_ms = float(state["tokens"]), int(state["refilled_ms"])
        return bucket

    def copy(self) -> "TokenBucket":
        """Another bucket with as many tokens."""
        return copy.copy(self)

    @staticmethod
    def burst(window: Window, quota_per_s: float) -> float:
        """The tokens of a full bucket."""
        return window.samples * (window.size_ms / 1000.0) * quota_per_s


class ConnectionBucket:
    """`kafka_connection_rate_limit` on one core: `per_s` tokens a second, and at most one second's worth of them.

    Redpanda keeps whole milliseconds per token (core_bucket.py) and so turns 700/s into 1,000/s. Here it counts thousandths of a
    token, of which `per_s` fall due each millisecond: integers, no remainder dropped.
    """

    BURST_S = 1.0
    """The seconds' worth of tokens that a full bucket has."""

    __slots__ = ("_milli", "_now_ms", "per_s")

    def __init__(self, per_s: int, *, now_ms: int) -> None:
        """Full. `per_s` is at least 1."""
        if per_s < 1:
            raise ValueError(f"a connection rate of {per_s} per second admits no connection; it must be at least 1")
        self.per_s = per_s
        self._milli = per_s * 1000
        self._now_ms = now_ms

    def take(self, *, now_ms: int, most_ms: int = 100) -> int | None:
        """Milliseconds until a token is there (0: now), which is then taken; None, and nothing taken, beyond `most_ms`.

        A connection that waits has its token set aside, so connections are served in the order of their arrival.
        """
        self._refill(now_ms)
        missing = 1000 - self._milli
        wait_ms = 0 if missing <= 0 else -(-missing // self.per_s)
        if wait_ms > most_ms:
            return None
        self._milli -= 1000
        return wait_ms

    def change(self, per_s: int, *, now_ms: int) -> None:
        """Another rate from now on; tokens are kept, up to one second's worth of the new rate."""
        self._refill(now_ms)
        self.per_s = per_s
        self._milli = min(self._milli, per_s * 1000)

    def full(self, *, now_ms: int) -> bool:
        """True if forgetting this bucket and making a new one would make no difference."""
        self._refill(now_ms)
        return self._milli == self.per_s * 1000

    def _refill(self, now_ms: int) -> None:
        self._milli = min(self.per_s * 1000, self._milli + (now_ms - self._now_ms) * self.per_s)
        self._now_ms = now_ms
