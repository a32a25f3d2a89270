"""Throttle times: KIP-124's example, rounding as Java does, the caps."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.limits.throttle_time import bucket_throttle_ms, java_round, throttle_ms
from shards.settings.ranges import INT_MAX, LONG_MAX


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.5, 1),
        (-0.5, 0),
        (1.4999999999999998, 1),
        (0.49999999999999994, 0),  # adding a half to it makes 1.0
        (4503599627370497.5, 4503599627370498),
        (9007199254740993.0, 9007199254740992),
        (1e30, LONG_MAX),
        (-1e30, -LONG_MAX - 1),
        (math.inf, LONG_MAX),
        (math.nan, 0),
    ],
)
def test_rounding_is_javas(value: float, rounded: int) -> None:
    assert java_round(value) == rounded


@given(st.floats(-1e15, 1e15))
def test_rounding_is_the_nearest_integer_and_halves_go_up(value: float) -> None:
    assert java_round(value) == math.floor(Fraction(value) + Fraction(1, 2))


def test_within_quota_there_is_no_throttle() -> None:
    assert throttle_ms(5.0, 5.0, window_ms=10_000) == 0
    assert throttle_ms(4.9, 5.0, window_ms=10_000) == 0


def test_600_per_second_over_500_in_a_window_of_ten_and_a_half_seconds_costs_2100_ms() -> None:
    assert throttle_ms(600.0, 500.0, window_ms=10_500) == 2100
    assert throttle_ms(600.0, 500.0, window_ms=10_500, max_ms=1000) == 1000


def test_after_the_throttle_the_rate_is_its_quota() -> None:
    wait_ms = throttle_ms(640.0, 500.0, window_ms=10_000)
    assert 640.0 * 10_000 / (10_000 + wait_ms) == pytest.approx(500.0)


def test_no_wait_is_enough_for_a_quota_of_zero() -> None:
    assert throttle_ms(0.1, 0, window_ms=1000, max_ms=1000) == 1000
    assert bucket_throttle_ms(-1, 0) == INT_MAX


def test_a_throttle_fits_the_field_it_is_sent_in() -> None:
    assert throttle_ms(1e12, 1, window_ms=10_000) == INT_MAX
    assert bucket_throttle_ms(-1e15, 1) == INT_MAX


def test_a_bucket_at_minus_60_refilled_at_5_is_back_in_12_seconds() -> None:
    assert bucket_throttle_ms(-60, 5) == 12_000
    assert bucket_throttle_ms(0, 5) == bucket_throttle_ms(3, 5) == 0
