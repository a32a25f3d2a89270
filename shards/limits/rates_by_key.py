"""A Rate for each key, an address or a user. A rate of which no record counts any more is forgotten.

windows_are_forgotten  A key is forgotten one to two spans after its last record; a span is `samples` + 1 windows. No sample
    counts then: a sample counts for `samples` windows after the last record in it.
"""

from collections.abc import Iterable, Iterator

from shards.limits.rate import Rate, Window


class RatesByKey:
    """A Rate for each key that has records. Times are ms."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._rates: dict[str, Rate] = {}
        self._older: dict[str, Rate] = {}  # not used since the last turn
        self._turn_ms = 0

    def find(self, key: str) -> Rate | None:
        """The rate of a key; None: it has no record that still counts."""
        return self._rates.get(key) or self._older.get(key)

    def take(self, key: str, *, now_ms: int) -> Rate:
        """The rate of a key that is about to be recorded in."""
        if now_ms >= self._turn_ms:
            self._turn(now_ms)
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = self._older.pop(key) if key in self._older else Rate(self.window)
        return rate

    def take_each(self, keys: Iterable[str], *, now_ms: int) -> list[Rate]:
        """The rates of some keys that are about to be recorded in."""
        if now_ms >= self._turn_ms:
            self._turn(now_ms)
        found = self._rates.get
        return [found(key) or self.take(key, now_ms=now_ms) for key in keys]

    def items(self) -> Iterator[tuple[str, Rate]]:
        """Every key that is remembered, and its rate."""
        yield from self._older.items()
        yield from self._rates.items()

    def __len__(self) -> int:
        return len(self._rates) + len(self._older)

    def _turn(self, now_ms: int) -> None:
        """windows_are_forgotten: after a whole span without a record, no sample counts."""
        span_ms = (self.window.samples + 1) * self.window.size_ms
        if now_ms >= self._turn_ms + span_ms:
            self._rates = {}
        self._older, self._rates = self._rates, {}
        self._turn_ms = now_ms + span_ms
