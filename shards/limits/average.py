"""Kafka's sampled average: the mean of what was recorded over the last windows.

Samples are those of `rate.py`: one starts at a record, is complete a window later, and counts until its last record is
`samples` windows old. Source: Avg, SampledStat (Apache Kafka), which its throttle-time metrics are.
"""

from collections import deque

from shards.limits.rate import DEFAULT_WINDOW, Window


class Average:
    """The mean of some values, such as throttle times, in their own unit."""

    __slots__ = ("_samples", "window")

    def __init__(self, window: Window = DEFAULT_WINDOW) -> None:
        self.window = window
        self._samples: deque[list[float]] = deque(maxlen=window.samples + 1)  # start, last record, sum, count

    def record(self, value: float, *, now_ms: int) -> None:
        """Count `value` at `now_ms`."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self.window.size_ms:
            samples.append([now_ms, now_ms, 0.0, 0])
        sample = samples[-1]
        sample[1] = now_ms
        sample[2] += value
        sample[3] += 1

    def measure(self, *, now_ms: int) -> float | None:
        """The mean of what still counts; None when nothing does."""
        expiry_ms = self.window.samples * self.window.size_ms
        alive = [sample for sample in self._samples if now_ms - sample[1] < expiry_ms]
        count = sum(sample[3] for sample in alive)
        return sum(sample[2] for sample in alive) / count if count else None
