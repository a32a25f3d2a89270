"""All arrivals of a log in one window: what it refuses, and the smallest rates, beside Kafka's arithmetic arrival by arrival."""

from __future__ import annotations

import random

import numpy
import pytest

from shards.limits.rate import DEFAULT_WINDOW, Rate, Window
from turnstile.pipeline.plan.one_window import OneWindow

WINDOWS = (DEFAULT_WINDOW, Window(2, 1000), Window(1, 1000), Window(3, 2000))


def refused(at_ms: list[int], per_s: int, window: Window) -> list[int]:
    """As the emulator's gate decides, one after the other."""
    rate = Rate(window)
    found = []
    for place, now_ms in enumerate(at_ms):
        if rate.charge(1, per_s, now_ms=now_ms):
            rate.record(-1, now_ms=now_ms)
            found.append(place)
    return found


def arrivals(chance: random.Random) -> list[int]:
    """Dense and sparse ones, and many at one instant."""
    span = chance.choice([50, 3000, 20_000, 60_000, 400_000])
    step = chance.choice([1, 1, 1, 1000])
    return sorted(chance.randrange(span) // step * step for _ in range(chance.randrange(1, 300)))


@pytest.mark.parametrize("seed", range(150))
def test_every_rate_refuses_what_the_gate_refuses_and_the_smallest_are_the_smallest(seed: int) -> None:
    chance = random.Random(seed)
    at_ms, window = arrivals(chance), chance.choice(WINDOWS)
    found = OneWindow(numpy.array(at_ms), window)
    least = found.smallest(0)
    before = None
    for per_s in sorted({1, 2, 3, 5, 8, 13, max(1, least - 1), least, least + 1}):
        expected = refused(at_ms, per_s, window)
        assert found.refused(per_s) == expected
        assert found.refused(per_s, until=3) == expected[:3]
        assert before is None or len(expected) <= before, "a higher rate refuses no more"
        before = len(expected)
    for allowed in {0, 1, len(at_ms) // 10, len(at_ms)}:
        per_s = found.smallest(allowed)
        assert len(refused(at_ms, per_s, window)) <= allowed
        assert per_s == 1 or len(refused(at_ms, per_s - 1, window)) > allowed


def test_half_a_millisecond_is_no_throttle_time() -> None:
    at_ms, window = [0] * 3001, Window(2, 1000)
    assert OneWindow(numpy.array(at_ms), window).smallest(0) == 3000, (
        "one too many within a second is a third of a millisecond"
    )
    assert not refused(at_ms, 3000, window) and refused(at_ms, 2999, window)


def test_nothing_needs_no_more_than_the_least_rate_there_is() -> None:
    assert OneWindow(numpy.zeros(0, "i8")).smallest(0) == 1
