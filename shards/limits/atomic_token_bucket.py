"""Redpanda's token bucket: for throughput limits of a node, one for all connections, and for client quotas, one for each key.

grabs_succeed     tokens are taken whether they are there or not; what is missing is a deficit, which the rate pays back
one_second        a bucket holds at most `limit` tokens, by default one second's worth of its rate
whole_milliseconds  a delay is the deficit divided by the rate, truncated to milliseconds
counted_in_steps  tokens are added as whole ones, as many as are due since the last time that any were, once there are at least
                  `threshold` of them; a fraction is rounded then, half a token up, and the rest of the time is not kept. So at a
                  few tokens a second a bucket that is asked often pays up to twice its rate, as Redpanda's does

Source: seastar's shared_token_bucket with `capped_release::no`, and AtomicTokenBucket (Redpanda 24.3). Redpanda's clock moves in
steps of 10 ms; here it is the caller's.
"""

from __future__ import annotations

import math
from typing import Final

_MOST_S: Final = 3600.0
"""Tokens of no longer time than this are added at once."""


class AtomicTokenBucket:
    """`rate`: tokens a second; `limit`: how many there may be (None: those of a second). It begins full, or with none."""

    __slots__ = ("_limit", "_refilled_ms", "_threshold", "_tokens", "rate")

    def __init__(self, rate: int, *, now_ms: int, full: bool, limit: int | None = None, threshold: int = 1) -> None:
        self.rate = rate
        self._limit = rate if limit is None else limit
        self._threshold = min(max(threshold, 1), self._limit)
        self._tokens = self._limit if full else 0
        self._refilled_ms = now_ms

    def use(self, tokens: int, *, now_ms: int) -> int:
        """Takes `tokens`, and tells the delay after it, in milliseconds (grabs_succeed)."""
        self._replenish(now_ms)
        self._tokens -= tokens
        return self._delay_ms()

    def tokens(self, *, now_ms: int) -> int:
        """Tokens that are left; below zero: the deficit."""
        self._replenish(now_ms)
        return self._tokens

    def _replenish(self, now_ms: int) -> None:
        elapsed_s = min((now_ms - self._refilled_ms) / 1000, _MOST_S)
        due = math.floor(self.rate * elapsed_s + 0.5)
        if due >= self._threshold:
            self._tokens = min(self._limit, self._tokens + due)
            self._refilled_ms = now_ms

    def _delay_ms(self) -> int:
        return 0 if self._tokens >= 0 else int(-self._tokens / self.rate * 1000)
