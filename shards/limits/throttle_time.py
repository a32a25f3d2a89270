"""The throttle time of a client that is over its quota, in Kafka's milliseconds."""

import math

from shards.settings.ranges import INT_MAX, LONG_MAX


def java_round(value: float) -> int:
    """Java's `Math.round(double)`: to the nearest integer, halves up, saturating at 64 signed bits.

    Not `floor(value + 0.5)`: that sum is itself rounded, and is one too high just below a half and above 2**52.
    """
    if not -LONG_MAX < value < LONG_MAX:
        return 0 if value != value else LONG_MAX if value > 0 else -LONG_MAX - 1
    low = math.floor(value)
    return low + 1 if value - low >= 0.5 else low


def throttle_ms(observed_per_s: float, quota_per_s: float, *, window_ms: int, max_ms: int = INT_MAX) -> int:
    """Milliseconds to wait so that a rate falls back to its quota: 0 at or under it, at most `max_ms`.

    For quota 0 no wait is enough, so it is `max_ms`. Kafka keeps the result in 32 signed bits and lets it wrap;
    here it stops at the largest one, 24 days.
    Source: KIP-124, O * W / (W + X) = T solved for X; QuotaUtils.throttleTime and boundedThrottleTime.
    """
    if observed_per_s <= quota_per_s:
        return 0
    if quota_per_s == 0:
        return max_ms
    return min(java_round((observed_per_s - quota_per_s) / quota_per_s * window_ms), max_ms)


def bucket_throttle_ms(tokens: float, quota_per_s: float) -> int:
    """Milliseconds until a bucket below zero is back at zero; 0 for one that is not below.

    Source: KIP-599, -K / R; ControllerMutationQuotaManager.throttleTimeMs. Stops at 32 signed bits, as `throttle_ms`.
    """
    if tokens >= 0:
        return 0
    if quota_per_s == 0:
        return INT_MAX
    return min(java_round(-tokens / quota_per_s * 1000), INT_MAX)
