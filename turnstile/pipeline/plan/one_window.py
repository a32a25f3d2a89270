"""All arrivals of a log in one of Kafka's windows (shards/limits/rate.py), as the rate of a whole cluster has it: which of them a
rate refuses, and the smallest rate that refuses few enough.

A refused arrival is taken back. It begins a sample all the same, and so:

samples_do_not_depend_on_the_rate  Which arrivals a window counts at an instant, and the time that it divides by, follow from when
    they all came. So both are found once, and only what was admitted among them is asked for each rate.
half_a_millisecond_is_none  A throttle time is whole milliseconds: a window may hold a little more than the rate times its length.
counted_are_the_latest  A window counts the arrivals from a first one on, and that one never goes back: samples end in the order in
    which they began.
refused_fall_with_the_rate  Let N(i) be how many of the first i arrivals are admitted, s where the window of the i-th begins, and c
    how many the rate lets it hold: N(i) = max(N(i - 1), min(N(i - 1) + 1, N(s) + c)). That rises with N(i - 1), N(s) and c, and
    c with the rate. So no higher rate refuses more of any first arrivals, and the smallest rate is found by bisection.
"""

from bisect import bisect_left
from math import ceil

import numpy

from shards.limits.rate import DEFAULT_WINDOW, Window
from shards.limits.throttle_time import throttle_ms
from turnstile.pipeline.events.arrays import Array

_CHUNK = 100_000


class OneWindow:
    """`at_ms`: when each arrived, in order."""

    def __init__(self, at_ms: Array, window: Window = DEFAULT_WINDOW) -> None:
        samples = _samples(at_ms, window.size_ms)
        # The last arrival of each sample; a sample is obsolete when that is as old as all samples together.
        last_ms = at_ms[numpy.append(samples[1:], len(at_ms)) - 1] if len(at_ms) else at_ms
        oldest = numpy.searchsorted(last_ms, at_ms - window.samples * window.size_ms, side="right")
        self._first = samples[oldest]
        elapsed_ms = at_ms - at_ms[self._first]
        missing = numpy.maximum(window.samples - 1 - elapsed_ms // window.size_ms, 0)
        self._window_ms = numpy.maximum(elapsed_ms + missing * window.size_ms, 1)
        self._rates = (numpy.arange(len(at_ms)) + 1 - self._first) / (self._window_ms / 1000.0)

    def smallest(self, allowed: int) -> int:
        """The smallest whole rate, a second, that refuses at most so many of them; at least 1 (refused_fall_with_the_rate)."""
        rates = range(1, max(1, ceil(self._rates.max(initial=0))) + 1)
        return rates[bisect_left(rates, True, key=lambda rate: len(self.refused(rate, until=allowed + 1)) <= allowed)]

    def refused(self, per_s: int, *, until: int | None = None) -> list[int]:
        """The places of those that a rate refuses, in order; no more than the first `until`."""
        found: list[int] = []
        passed = 0  # of those found, how many the window does not count any more
        for rows in self._asked(per_s):
            first, windows_ms = self._first[rows].tolist(), self._window_ms[rows].tolist()
            for row, begin, window_ms in zip(rows.tolist(), first, windows_ms, strict=True):
                while passed < len(found) and found[passed] < begin:
                    passed += 1
                admitted = row - begin - (len(found) - passed)
                if throttle_ms((admitted + 1) / (window_ms / 1000.0), per_s, window_ms=window_ms):
                    found.append(row)
                    if len(found) == until:
                        return found
        return found

    def _asked(self, per_s: int) -> list[Array]:
        """The arrivals that a rate may refuse, in chunks: the others are within it even if none was refused."""
        places = numpy.flatnonzero(self._rates > per_s)
        return numpy.split(places, range(_CHUNK, len(places), _CHUNK))


def _samples(at_ms: Array, size_ms: int) -> Array:
    """The place of the arrival that each sample begins with."""
    found: list[int] = []
    begun_ms: int | None = None
    for start in range(0, len(at_ms), _CHUNK):
        for place, now_ms in enumerate(at_ms[start : start + _CHUNK].tolist(), start):
            if begun_ms is None or now_ms - begun_ms >= size_ms:
                begun_ms = now_ms
                found.append(place)
    return numpy.array(found, dtype="i8")
