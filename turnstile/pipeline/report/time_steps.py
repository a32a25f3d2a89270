"""The steps of time that a report's pictures have."""

from typing import NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import Array

BUCKETS = 240


class TimeSteps(NamedTuple):
    """Steps of `bucket_s` seconds of the wall clock; `offset_ns`: what mono_ns lacks to it."""

    bucket_s: float
    offset_ns: int

    @classmethod
    def over(cls, first_s: float, last_s: float, offset_ns: int) -> "TimeSteps":
        """At most BUCKETS steps, of whole seconds."""
        return cls(max(1.0, round((last_s - first_s) / BUCKETS)), offset_ns)

    def of_wall(self, table: pyarrow.Table) -> Array:
        """The start of the step that each event's `ts_us` is in, epoch seconds."""
        return self._start(arrays.numbers(table, "ts_us") / 1e6)

    def of_mono(self, at_ns: Array) -> Array:
        """The start of the step that each instant is in, epoch seconds."""
        return self._start((at_ns + self.offset_ns) / 1e9)

    def _start(self, seconds: Array) -> Array:
        start: Array = numpy.floor(seconds / self.bucket_s) * self.bucket_s
        return start
