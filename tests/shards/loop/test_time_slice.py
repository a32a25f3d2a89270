"""A time slice is over after its time, its steps or its bytes, and lets one step through in any case."""

import pytest

from shards.loop.time_slice import MOST_BYTES, MOST_STEPS, SLICE_NS, TimeSlice


class Clock:
    def __init__(self, step_ns=0):
        self.now_ns, self._step_ns = 0, step_ns

    def __call__(self):
        self.now_ns += self._step_ns
        return self.now_ns


@pytest.mark.parametrize(
    ("step_ns", "size", "times", "steps"),
    [
        (0, 0, 1, MOST_STEPS),
        (SLICE_NS // 10, 0, 1, 10),
        (0, MOST_BYTES // 4, 1, 4),
        (2 * SLICE_NS, 0, 1, 1),
        (0, 2 * MOST_BYTES, 1, 1),
        (0, 0, 4, 4 * MOST_STEPS),
        (SLICE_NS // 10, 0, 4, 40),
        (0, 2 * MOST_BYTES, 4, 2),
    ],
)
def test_whichever_bound_is_reached_first_ends_it(step_ns, size, times, steps):
    clock = Clock(step_ns)
    time_slice = TimeSlice(clock)
    for _ in range(2):  # the second begins anew
        time_slice.begin(clock.now_ns)
        if times > 1:
            time_slice.open(times)
        done = 1
        while not time_slice.spend(size):
            done += 1
        assert done == steps and time_slice.over
