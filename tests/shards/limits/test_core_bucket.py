"""Redpanda's rate of connections of a core, in its whole milliseconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.bucket import ConnectionBucket
from shards.limits.core_bucket import WholeMsBucket, core_bucket, sustained_per_s, token_ms


@pytest.mark.parametrize(
    ("per_s", "passing"),
    [(1, 1), (7, 7), (300, 333), (333, 333), (334, 500), (500, 500), (501, 1000), (999, 1000), (5000, 1000)],
)
def test_in_the_long_run_whole_milliseconds_pass(per_s: int, passing: int) -> None:
    """LIMITS.md, B1.5: 300 let 333 a second pass, 501 and all above 1,000."""
    bucket = WholeMsBucket(per_s, now_ms=0)
    granted = sum(bucket.take(now_ms=now_ms, most_ms=0) == 0 for now_ms in range(20_000) for _ in range(2))
    burst = min(per_s, 40_000)
    assert granted - burst == pytest.approx(19.999 * passing, rel=0.01, abs=1)
    assert round(sustained_per_s(per_s, exact=False)) == pytest.approx(passing, abs=1)
    assert sustained_per_s(per_s, exact=True) == per_s


def test_a_wait_ends_with_the_timer_of_its_token_and_beyond_the_most_nothing_is_taken() -> None:
    bucket = WholeMsBucket(30, now_ms=0)  # a token each 33 ms
    assert [bucket.take(now_ms=0) for _ in range(30)] == [0] * 30
    assert [bucket.take(now_ms=5) for _ in range(4)] == [28, 61, 94, None]
    assert bucket.take(now_ms=99) == 33, "behind the three"
    assert not bucket.full(now_ms=1000)
    assert bucket.full(now_ms=5000)


def test_time_that_makes_no_whole_token_is_forgotten_at_an_arrival() -> None:
    bucket = WholeMsBucket(10, now_ms=0)
    for _ in range(5):
        bucket.take(now_ms=0)
    bucket.take(now_ms=199)  # counts one, and forgets 99 ms
    assert [bucket.take(now_ms=298, most_ms=0) for _ in range(6)] == [0, 0, 0, 0, 0, None]
    exact = ConnectionBucket(10, now_ms=0)
    assert sum(exact.take(now_ms=now_ms, most_ms=0) == 0 for now_ms in [0] * 5 + [199] + [298] * 7) == 12


def test_of_a_full_bucket_no_time_is_kept() -> None:
    bucket = WholeMsBucket(10, now_ms=0)
    assert [bucket.take(now_ms=now_ms) for now_ms in (950, 999)] == [0, 0]
    bucket.take(now_ms=1049)
    assert not bucket.full(now_ms=1148)


def test_a_raised_rate_fills_the_bucket_and_a_lowered_one_keeps_its_second() -> None:
    bucket = WholeMsBucket(5, now_ms=0)
    for _ in range(5):
        bucket.take(now_ms=0)
    assert core_bucket(bucket, 8, exact=False, now_ms=0) is bucket
    assert [bucket.take(now_ms=0, most_ms=0) for _ in range(9)] == [0] * 8 + [None]
    bucket.change(20, now_ms=0)
    bucket.change(2, now_ms=0)
    assert [bucket.take(now_ms=0, most_ms=0) for _ in range(3)] == [0, 0, None]


def test_another_kind_of_bucket_begins_full() -> None:
    bucket = core_bucket(None, 5, exact=True, now_ms=0)
    assert isinstance(bucket, ConnectionBucket)
    assert isinstance(core_bucket(bucket, 5, exact=False, now_ms=0), WholeMsBucket)
    assert core_bucket(bucket, 6, exact=True, now_ms=0) is bucket and bucket.per_s == 6


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        token_ms(0)


@given(st.integers(1, 5000), st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_in_no_stretch_of_time_are_there_more_than_the_burst_and_a_token_each_so_many_milliseconds(
    per_s: int, gaps: list[int]
) -> None:
    bucket, now_ms, granted = WholeMsBucket(per_s, now_ms=0), 0, []
    for gap in gaps:
        now_ms += gap
        wait_ms = bucket.take(now_ms=now_ms)
        if wait_ms is not None:
            assert 0 <= wait_ms <= 100
            granted.append(now_ms + wait_ms)
    assert granted == sorted(granted)
    for index, first_ms in enumerate(granted):
        for count, last_ms in enumerate(granted[index:], 1):
            assert count <= per_s + (last_ms - first_ms) / token_ms(per_s) + 1
