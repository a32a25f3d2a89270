"""Kafka's sampled rate: what was recorded over the last windows, per second.

The last `window.samples` windows count. Kafka keeps one sample more than that, for the window that overlaps the far
end. What follows from its rules and is easy to get wrong:

samples_start_at_records  A sample starts at a record, not on a grid. It is complete, and the next one starts, at the first
    record that is `window.size_ms` or more after its start.
obsolete_by_last_record  A sample is obsolete when its *last* record is `samples * size_ms` old. Measuring clears obsolete
    samples and starts them anew at that instant, with nothing in them. So a measurement without a record changes later ones
    (`peek` is for callers that only look).
missing_windows_are_added  The time divided by reaches back to the oldest start. Whole windows missing to `samples - 1` are
    added to it, and it is at least 1 ms. So a burst of quota * (samples - 1) windows passes at once.

Source: Rate, SampledStat, Sensor (Apache Kafka). Time is a whole number of milliseconds that never goes back.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shards.limits.throttle_time import throttle_ms
from shards.settings.ranges import INT_MAX

_NEVER = 2**62


class Window(NamedTuple):
    """`quota.window.num` samples of `quota.window.size.seconds` each; both at least 1."""

    samples: int = 11
    size_ms: int = 1000

    def stretched_ms(self, elapsed_ms: int) -> int:
        """The time that a rate divides by, `elapsed_ms` after the oldest start (missing_windows_are_added)."""
        missing = self.samples - 1 - elapsed_ms // self.size_ms
        if missing > 0:
            elapsed_ms += missing * self.size_ms
        return elapsed_ms if elapsed_ms > 0 else 1

    @property
    def burst_s(self) -> float:
        """The seconds' worth of a quota that pass in one instant after a pause (missing_windows_are_added)."""
        return self.stretched_ms(0) / 1000


DEFAULT_WINDOW = Window()


class PartlyAdmitted(NamedTuple):
    """Units that came at one instant, and are not all within a quota: how many are, and the delay in ms of each other one."""

    units: int
    delay_ms: int


class Rate:
    """A sampled rate of whole or fractional amounts."""

    __slots__ = ("_at", "_clear_at", "_last", "_oldest", "_rest", "_start", "_starts", "_values", "_whole", "window")

    def __init__(self, window: Window = DEFAULT_WINDOW) -> None:
        self.window = window
        self._values: list[float] = []  # one entry per sample, in the order Kafka adds them up
        self._starts: list[int] = []
        self._last: list[int] = []  # the time of each sample's last record
        self._whole = True  # until a fraction is recorded, and the order of adding matters
        self._at = 0  # the sample being recorded into
        self._start = -_NEVER  # the start of the current sample
        self._oldest = _NEVER  # the least of all starts
        self._clear_at = _NEVER  # when the first of the *other* samples is obsolete
        self._rest: float = 0  # the sum of the other samples, while all numbers are whole

    def record(self, amount: float, *, now_ms: int) -> None:
        """Count `amount` at `now_ms`; a negative amount takes back. Nothing is measured, so nothing is cleared."""
        if now_ms - self._start >= self.window.size_ms:
            self._advance(now_ms)
            self._derive()
        self._values[self._at] = value = self._values[self._at] + amount
        self._last[self._at] = now_ms
        if value.__class__ is float:
            self._whole = False

    def charge(self, amount: float, quota_per_s: float | None, *, now_ms: int, max_ms: int = INT_MAX) -> int:
        """Count `amount`, then measure: the milliseconds to throttle for, 0 within quota (None: no quota), capped."""
        samples, size_ms = self.window
        if now_ms - self._start >= size_ms:
            self._advance(now_ms)
            self._clear(now_ms)
        elif now_ms >= self._clear_at:
            self._last[self._at] = now_ms
            self._clear(now_ms)
        at = self._at
        self._last[at] = now_ms
        self._values[at] = value = self._values[at] + amount
        if value.__class__ is float:
            self._whole = False
        if quota_per_s is None:
            return 0
        window_ms = now_ms - self._oldest
        missing = samples - 1 - window_ms // size_ms
        window_ms = window_ms + missing * size_ms if missing > 0 else window_ms or 1
        rate = (self._rest + value if self._whole else self._total()) / (window_ms / 1000.0)
        if rate <= quota_per_s:
            return 0
        return throttle_ms(rate, quota_per_s, window_ms=window_ms, max_ms=max_ms)

    def admit(self, units: int, quota_per_s: float | None, *, now_ms: int, max_ms: int) -> PartlyAdmitted | None:
        """Count units, one or more, one after the other, and take back each that is beyond the quota; None: none is. Units that
        are within it together are so one by one; the others come at one instant of one window, so all have the same delay."""
        delay_ms = self.charge(units, quota_per_s, now_ms=now_ms, max_ms=max_ms)
        if not delay_ms:
            return None
        self.record(-units, now_ms=now_ms)
        within = 0
        if units > 1:
            while not (delay_ms := self.charge(1, quota_per_s, now_ms=now_ms, max_ms=max_ms)):
                within += 1
            self.record(-1, now_ms=now_ms)
        return PartlyAdmitted(within, delay_ms)

    def insert(self, amount: float, *, at_ms: int, now_ms: int) -> None:
        """Count what another meter recorded at `at_ms`, by now or long before; nothing if it is obsolete.

        It goes into the sample under way at `at_ms`, or begins one there. Where the next sample begins too soon after it, it
        goes into that, and may count for a sample's length longer.
        """
        samples, size_ms = self.window
        if at_ms <= now_ms - (samples + 1) * size_ms:
            return
        if at_ms >= max(self._last, default=at_ms):
            self.charge(amount, None, now_ms=at_ms)  # at the time at which it was recorded there
            return
        starts, at = self._starts, self._at
        order = sorted((i for i, value in enumerate(self._values) if value and i != at), key=starts.__getitem__)
        order.append(at)
        earlier = [i for i in order if starts[i] <= at_ms]
        index = earlier[-1] if earlier and (at_ms - starts[earlier[-1]] < size_ms or earlier[-1] == at) else None
        if index is None:
            index = order[len(earlier)]
            if starts[index] - at_ms >= size_ms and len(order) <= samples:
                self._begin_sample(order, len(earlier), amount, at_ms)
                return
            if self._last[index] - at_ms < size_ms:
                starts[index] = at_ms
        self._values[index] += amount
        self._last[index] = max(self._last[index], at_ms)
        self._whole = self._whole and amount.__class__ is int
        self._derive()

    def undo(self, amount: float, *, at_ms: int) -> None:
        """Take back what was recorded at `at_ms` out of the sample it went into; nothing if that one counts no more.

        A negative `record`, as Kafka takes back, goes into the current sample and so outlives what it takes back.
        """
        kept = [(start, self._last[i], i) for i, start in enumerate(self._starts) if start <= at_ms]
        if kept:
            index = max(kept)[2]
            self._values[index] = value = self._values[index] - amount
            self._whole = self._whole and value.__class__ is int
            self._derive()

    def measure(self, *, now_ms: int) -> float:
        """Per second, over the window that ends now. Clears obsolete samples, as Kafka's measuring does."""
        if not self._values:
            self._advance(now_ms)
        self._clear(now_ms)
        return self._total() / (self.window.stretched_ms(now_ms - self._oldest) / 1000.0)

    def peek(self, *, now_ms: int) -> float:
        """The answer that `measure` would give, without changing anything: for metrics and explanations."""
        kept = self._kept(now_ms)
        oldest = min((self._starts[i] for i in kept), default=now_ms)
        return self.units(now_ms=now_ms) / (self.window.stretched_ms(now_ms - oldest) / 1000.0)

    def units(self, *, now_ms: int) -> float:
        """The sum of the samples that are not obsolete at `now_ms`; changes nothing."""
        total = 0.0
        for i in self._kept(now_ms):
            total += self._values[i]
        return total

    def idle_since_ms(self) -> int | None:
        """The time of the last record or clearing; None: there was none."""
        return max(self._last, default=None)

    def is_spent(self, quota_per_s: float | None, *, now_ms: int) -> bool:
        """True if nothing of what was recorded counts any more: a new rate would answer the same."""
        return now_ms - max(self._last, default=-_NEVER) >= self.window.samples * self.window.size_ms

    def forgive(self, quota_per_s: float | None, *, now_ms: int) -> None:
        """Nothing: what was recorded is forgotten after a window, however much it is."""

    def state(self) -> dict[str, object] | None:
        """All that later answers depend on, as plain data; None before anything is recorded."""
        if not self._values:
            return None
        samples = [list(each) for each in zip(self._values, self._starts, self._last, strict=True)]
        return {"current": self._at, "samples": samples}

    @classmethod
    def of_state(cls, window: Window, state: Mapping[str, Any]) -> "Rate":
        """The rate that told its state. ValueError, TypeError or KeyError for what is none."""
        rate = cls(window)
        values, starts, last = zip(*state["samples"], strict=True)
        if not (0 <= state["current"] < len(values) <= window.samples + 1):
            raise ValueError("a rate has no such current sample")
        rate._values, rate._starts, rate._last = list(values), list(map(int, starts)), list(map(int, last))
        rate._whole = all(value.__class__ is int for value in values)
        rate._at = state["current"]
        rate._rest = 0
        rate._derive()
        return rate

    def copy(self) -> "Rate":
        """Another rate with the same history."""
        twin = Rate(self.window)
        twin._values, twin._starts, twin._last = self._values.copy(), self._starts.copy(), self._last.copy()
        twin._whole, twin._at = self._whole, self._at
        if twin._values:
            twin._derive()
        return twin

    def _kept(self, now_ms: int) -> list[int]:
        """The samples that are not obsolete (obsolete_by_last_record)."""
        expire_ms = self.window.samples * self.window.size_ms
        return [i for i, last in enumerate(self._last) if now_ms - last < expire_ms]

    def _advance(self, now_ms: int) -> None:
        """Start the next sample, over the oldest one once the ring is full (samples_start_at_records); `_derive` has to follow."""
        values = self._values
        if values:
            self._at = (self._at + 1) % (self.window.samples + 1)
        if self._at >= len(values):
            values.append(0)
            self._starts.append(now_ms)
            self._last.append(now_ms)
        else:
            values[self._at] = 0
            self._starts[self._at] = self._last[self._at] = now_ms

    def _begin_sample(self, order: list[int], place: int, amount: float, at_ms: int) -> None:
        """Puts a sample of its own before that of a `place` in `order`, which has those with something in them by their start,
        and at last the current one. Empty samples are overwritten first, or make room."""
        ring = [(self._values[i], self._starts[i], self._last[i]) for i in order]
        ring.insert(place, (amount, at_ms, at_ms))
        empty = [i for i in range(len(self._values)) if i not in order]
        room = self.window.samples + 1 - len(ring)
        ring[:0] = [(0, self._starts[i], self._last[i]) for i in empty[:room]]
        self._values = [value for value, _, _ in ring]
        self._starts = [start for _, start, _ in ring]
        self._last = [last for _, _, last in ring]
        self._at = len(ring) - 1
        self._whole = self._whole and amount.__class__ is int
        self._derive()

    def _clear(self, now_ms: int) -> None:
        """obsolete_by_last_record, for every sample, the current one too."""
        obsolete_ms = now_ms - self.window.samples * self.window.size_ms
        if min(self._last) <= obsolete_ms:
            for i, last in enumerate(self._last):
                if last <= obsolete_ms:
                    self._values[i] = 0
                    self._starts[i] = self._last[i] = now_ms
        self._derive()

    def _derive(self) -> None:
        """The sums over all samples that `charge` needs, kept because they change once a window.

        The current sample's last record is the latest of all, so it is the least only where it is alone.
        """
        at, last = self._at, self._last
        self._start = self._starts[at]
        self._oldest = min(self._starts)
        self._clear_at = min(last) + self.window.samples * self.window.size_ms if len(last) > 1 else _NEVER
        if self._whole:
            self._rest = sum(self._values) - self._values[at]

    def _total(self) -> float:
        """Added one by one in Kafka's order: `sum` rounds fractions differently from Python 3.12 on."""
        total = 0.0
        for value in self._values:
            total += value
        return total
