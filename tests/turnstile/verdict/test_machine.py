"""How late a machine was: what a stall takes of a time, and what no stall is."""

import pytest
from courses import ns
from harness import until

from turnstile.verdict.machine import Beat, Machine, watched

MACHINE = Machine([Beat(ns(1), 0), Beat(ns(2), ns(0.5)), Beat(ns(3), ns(0.005)), Beat(ns(4), ns(1))])


@pytest.mark.parametrize(
    ("began_s", "ended_s", "stalled_ms", "longest_ms"),
    [(0, 2, 0, 500), (0, 1.9, 0, 0), (1, 3, 500, 500), (2.25, 2.35, 100, 500), (2.6, 3.9, 0, 0), (0, 9, 1500, 1000)],
)
def test_stalls_within_a_span_are_summed(began_s, ended_s, stalled_ms, longest_ms):
    assert MACHINE.stalled_ms(ns(began_s), ns(ended_s)) == pytest.approx(stalled_ms)
    assert MACHINE.longest_ms(ns(began_s), ns(ended_s)) == longest_ms


def test_by_how_much_it_was_late_on_the_mean():
    assert MACHINE.late_ms(ns(0), ns(3.5)) == pytest.approx(505 / 3)
    assert MACHINE.late_ms(ns(5), ns(6)) == Machine().late_ms(0, 1) == 0


def test_a_machine_is_watched_until_the_end():
    with watched() as machine:
        until(lambda: len(machine.beats) > 1)
    assert machine.beats == sorted(machine.beats) and all(beat.late_ns >= 0 for beat in machine.beats)
