"""`kafka_connection_rate_limit` on one core: Redpanda's bucket, which counts in whole milliseconds, and one that is exact. Pure.

whole_milliseconds_a_token  A token falls due every max(1000 / rate, 1) milliseconds, the rest of the division dropped. So 300 a
    second let 333 pass in the long run, 501 and all above 1,000.
rest_is_dropped    What falls due is counted at a connection's arrival, and time that makes no whole token is forgotten then, as is
    all of it while the bucket is full.
one_after_the_other  After the last token is taken a timer brings the next one, and one for each connection that waits; a connection
    waits for its own timer, where Redpanda's may get a token earlier that an arrival behind it counted.
raised_is_full     A raised rate fills the bucket; a lowered one keeps no more than its own second's worth.

Source: connection_rate, connection_rate_counter (Redpanda 24.3).
"""

from __future__ import annotations

from shards.limits.bucket import ConnectionBucket

EXACT = "turnstile.core.rate.exact"


class WholeMsBucket:
    """`per_s` tokens at most, and at first. The interface is that of ConnectionBucket."""

    __slots__ = ("_counted_ms", "_next_ms", "_token_ms", "_tokens", "per_s")

    def __init__(self, per_s: int, *, now_ms: int) -> None:
        """Full. `per_s` is at least 1."""
        self.per_s = per_s
        self._token_ms = token_ms(per_s)
        self._tokens = per_s
        self._counted_ms = now_ms  # while connections wait, when the last of them has its token
        self._next_ms = now_ms  # when the timer of an empty bucket brings a token that no connection waits for

    def take(self, *, now_ms: int, most_ms: int = 100) -> int | None:
        """Milliseconds until a token is there (0: now), which is then taken; None, and nothing taken, beyond `most_ms`."""
        self._refill(now_ms)
        if self._tokens:
            self._tokens -= 1
            self._next_ms = now_ms + self._token_ms
            return 0
        wait_ms = self._next_ms - now_ms
        if wait_ms > most_ms:
            return None
        self._counted_ms = self._next_ms
        self._next_ms += self._token_ms
        return wait_ms

    def change(self, per_s: int, *, now_ms: int) -> None:
        """Another rate from now on (raised_is_full)."""
        self._refill(now_ms)
        self._tokens = per_s if per_s > self.per_s else min(self._tokens, per_s)
        self.per_s = per_s
        self._token_ms = token_ms(per_s)

    def full(self, *, now_ms: int) -> bool:
        """True if forgetting this bucket and making a new one would make no difference."""
        self._refill(now_ms)
        return self._tokens == self.per_s

    def _refill(self, now_ms: int) -> None:
        if not self._tokens and now_ms >= self._next_ms:
            self._tokens, self._counted_ms = 1, self._next_ms
        if self._tokens == self.per_s:
            self._counted_ms = now_ms
            return
        due = (now_ms - self._counted_ms) // self._token_ms
        if due > 0:
            self._tokens = min(self.per_s, self._tokens + due)
            self._counted_ms = now_ms


CoreBucket = ConnectionBucket | WholeMsBucket


def token_ms(per_s: int) -> int:
    """The milliseconds of a token (whole_milliseconds_a_token). ValueError for a rate that admits no connection."""
    if per_s < 1:
        raise ValueError(f"a connection rate of {per_s} per second admits no connection; it must be at least 1")
    return max(1000 // per_s, 1)


def sustained_per_s(per_s: float, *, exact: bool) -> float:
    """The connections a second that pass in the long run, after a burst of `per_s`."""
    return per_s if exact else 1000 / token_ms(int(per_s))


def core_bucket(before: CoreBucket | None, per_s: int, *, exact: bool, now_ms: int) -> CoreBucket:
    """The bucket of a rate: the one before with its tokens, or a full one where there was none, or one of the other kind."""
    kind = ConnectionBucket if exact else WholeMsBucket
    if not isinstance(before, kind):
        return kind(per_s, now_ms=now_ms)
    if before.per_s != per_s:
        before.change(per_s, now_ms=now_ms)
    return before
