"""Token buckets: KIP-599's, and the exact one for connection rates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.bucket import ConnectionBucket, TokenBucket
from shards.limits.rate import Window

TEN_OF_TWO_SECONDS = Window(10, 2000)


def test_a_new_bucket_is_full_and_holds_no_more_than_its_burst() -> None:
    bucket = TokenBucket(TEN_OF_TWO_SECONDS)
    assert bucket.tokens(5, now_ms=0) == 100
    bucket.record(-60, 5, now_ms=0)
    assert bucket.tokens(5, now_ms=1_000_000) == 100


def test_records_take_and_time_gives_back() -> None:
    bucket = TokenBucket(TEN_OF_TWO_SECONDS)
    bucket.record(60, 5, now_ms=0)
    bucket.record(5, 5, now_ms=2000)
    assert bucket.peek(5, now_ms=2000) == 45
    bucket.record(60, 5, now_ms=4000)
    assert bucket.tokens(5, now_ms=4000) == -5
    assert bucket.peek(5, now_ms=5000) == 0
    assert bucket.idle_since_ms() == 4000


def test_kip_599s_burst_of_560_costs_12_seconds() -> None:
    assert TokenBucket(Window(100, 1000)).charge(560, 5, now_ms=7) == 12_000


def test_a_change_of_quota_keeps_the_tokens_clipped_to_the_new_burst() -> None:
    bucket = TokenBucket(Window(10, 1000))
    bucket.record(30, 10, now_ms=0)
    assert bucket.tokens(20, now_ms=0) == 70
    assert bucket.tokens(2, now_ms=0) == 20
    assert bucket.tokens(20, now_ms=0) == 20


@given(st.floats(0.1, 100), st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 500)), max_size=50))
def test_what_was_taken_never_exceeds_the_burst_plus_the_refill(quota: float, takes: list[tuple[int, float]]) -> None:
    """Strict: nothing is taken below zero. So at most one take goes beyond what burst and time have given."""
    bucket, now_ms, taken, largest = TokenBucket(Window(10, 1000)), 0, 0.0, 0.0
    for gap, amount in takes:
        now_ms += gap
        if bucket.tokens(quota, now_ms=now_ms) >= 0:
            bucket.record(amount, quota, now_ms=now_ms)
            taken += amount
            largest = max(largest, amount)
        assert taken <= quota * (10 + now_ms / 1000) * 1.000001 + largest + 1e-6


def test_seven_hundred_a_second_are_seven_hundred() -> None:
    bucket = ConnectionBucket(700, now_ms=0)
    granted = sum(bucket.take(now_ms=now_ms, most_ms=0) == 0 for now_ms in range(10_000) for _ in range(3))
    assert granted == 700 + 700 * 9999 // 1000  # the first second's worth, and then each millisecond its 0.7


def test_a_wait_is_as_long_as_the_token_takes_and_beyond_the_most_nothing_is_taken() -> None:
    bucket = ConnectionBucket(10, now_ms=0)
    assert [bucket.take(now_ms=0) for _ in range(10)] == [0] * 10
    assert bucket.take(now_ms=0) == 100
    assert bucket.take(now_ms=0) is None
    assert bucket.take(now_ms=50) is None  # 150 ms, behind the one who waits
    assert bucket.take(now_ms=100) == 100
    assert not bucket.full(now_ms=1000)
    assert bucket.full(now_ms=1300)


def test_a_lower_rate_keeps_no_more_than_its_own_second() -> None:
    bucket = ConnectionBucket(100, now_ms=0)
    bucket.change(2, now_ms=0)
    assert [bucket.take(now_ms=0, most_ms=0) for _ in range(3)] == [0, 0, None]


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ConnectionBucket(0, now_ms=0)


@given(st.integers(1, 5000), st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_in_no_stretch_of_time_are_there_more_than_rate_and_burst(per_s: int, gaps: list[int]) -> None:
    bucket, now_ms, granted = ConnectionBucket(per_s, now_ms=0), 0, []
    for gap in gaps:
        now_ms += gap
        wait_ms = bucket.take(now_ms=now_ms)
        if wait_ms is not None:
            granted.append(now_ms + wait_ms)
    assert granted == sorted(granted)
    for index, first_ms in enumerate(granted):
        for count, last_ms in enumerate(granted[index:], 1):
            assert count <= per_s + (last_ms - first_ms) * per_s / 1000 + 1
