"""Latencies in microseconds as a histogram: what several drivers measured adds up, in a size that does not grow with connections.

sums_are_exact   the histogram of some values is the sum of the histograms of any parts of them
width            below EXACT_US a bucket has one value; above, it is at most 1/1024 as wide as its values are large
percentiles      a percentile is not below the value of its rank, and at most 0.1 % above; the largest value is exact
"""

from __future__ import annotations

from typing import Any

EXACT_US = 2048
_HALF = EXACT_US // 2
_BITS = EXACT_US.bit_length() - 1


class Latencies:
    """The number of values in each bucket."""

    __slots__ = ("_counts", "largest_us")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.largest_us = 0

    def record(self, us: int) -> None:
        """Counts one value, of at least 0."""
        if us < EXACT_US:
            bucket = us
        else:
            shift = us.bit_length() - _BITS
            bucket = shift * _HALF + (us >> shift)
        counts = self._counts
        counts[bucket] = counts.get(bucket, 0) + 1
        if us > self.largest_us:
            self.largest_us = us

    def add(self, other: Latencies) -> None:
        """Takes another histogram's values in."""
        for bucket, count in other._counts.items():
            self._counts[bucket] = self._counts.get(bucket, 0) + count
        self.largest_us = max(self.largest_us, other.largest_us)

    def percentiles_ms(self) -> dict[str, float | None]:
        """p50, p99 and max in milliseconds, by nearest rank; None where nothing was measured."""
        if not self._counts:
            return {"p50": None, "p99": None, "max": None}
        return {"p50": self._at(0.50) / 1000, "p99": self._at(0.99) / 1000, "max": self.largest_us / 1000}

    def _at(self, share: float) -> int:
        size = len(self)
        left = min(size - 1, int(size * share))
        for bucket in sorted(self._counts):
            left -= self._counts[bucket]
            if left < 0:
                return min(_upper_us(bucket), self.largest_us)
        raise AssertionError("a rank beyond the last value")

    def dump(self) -> list[Any]:
        """Everything, as JSON has it."""
        return [self.largest_us, list(self._counts), list(self._counts.values())]

    @classmethod
    def load(cls, dumped: list[Any]) -> Latencies:
        """The reverse of dump()."""
        made = cls()
        made.largest_us = int(dumped[0])
        made._counts = dict(zip(dumped[1], dumped[2], strict=True))
        return made

    def __len__(self) -> int:
        return sum(self._counts.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Latencies) and self._counts == other._counts and self.largest_us == other.largest_us


def _upper_us(bucket: int) -> int:
    """The largest value of a bucket."""
    if bucket < EXACT_US:
        return bucket
    shift = bucket // _HALF - 1
    return ((bucket - shift * _HALF + 1) << shift) - 1
