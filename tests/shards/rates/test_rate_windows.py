"""Rates of addresses at their home."""

from shards.limits.rate import Window
from shards.rates.rate_windows import SHOWN_MOST, RateWindows

IP = "10.0.0.1"


def windows():
    return RateWindows(Window())


def test_a_batch_is_within_as_far_as_the_quota_goes_and_the_rest_is_taken_back():
    tested = windows()
    assert tested.admit(IP, 300, 20, now_ms=1000) == (200, 50)
    assert tested.describe(10, now_ms=1000) == [(IP, 20.0)]


def test_unused_units_leave_the_sample_that_they_are_in():
    tested = windows()
    tested.admit(IP, 50, 20, now_ms=1000)
    tested.admit(IP, 1, 20, now_ms=2050)
    tested.undo(IP, 49, at_ms=1000)
    assert tested.describe(1, now_ms=2050) == [(IP, 2 / 10.05)]


def test_an_address_is_forgotten_when_its_window_says_nothing_any_more():
    tested = windows()
    for number in range(10_000):
        tested.admit(f"10.1.{number // 256}.{number % 256}", 1, 20, now_ms=1000 + number)
    for now_ms in (30_000, 60_000):
        tested.admit(IP, 1, 20, now_ms=now_ms)
    assert len(tested) <= 2


def test_what_counts_survives_a_turn():
    tested = windows()
    tested.admit(IP, 200, 20, now_ms=11_900)
    tested.admit("10.0.0.2", 1, 20, now_ms=13_000)
    assert tested.admit(IP, 200, 20, now_ms=13_100)[0] < 30


def test_what_is_shown_is_bounded_and_an_hour_old_at_most():
    tested = windows()
    for number in range(2 * SHOWN_MOST):
        tested.admit(f"10.1.{number // 256}.{number % 256}", 1, 20, now_ms=1000 + number)
    shown = tested.describe(10**6, now_ms=10_000)
    assert len(shown) == SHOWN_MOST
    assert shown[0][0] == f"10.1.{1999 // 256}.{1999 % 256}"
    assert tested.describe(10**6, now_ms=3_700_000) == []
