"""Connection rates of addresses, of users, or of the cluster (cluster_rate.py), at their home.

violations_taken_back_at_once  A unit is recorded here before its connection goes on, and a violating one is taken back at
    once, as Kafka does.
unused_units_leave_their_sample  A unit that nothing used is taken back out of the sample that it was recorded in.

What is kept is bounded in time (shards/limits/rates_by_key.py, windows_are_forgotten).
"""

from typing import Final, NamedTuple

from shards.limits.rate import Rate, Window
from shards.limits.rates_by_key import RatesByKey

SHOWN_MS: Final = 3_600_000  # Kafka drops an address's sensor after an hour without a record
SHOWN_MOST: Final = 1000


class WindowAnswer(NamedTuple):
    """The units that are within the quota, and the delay in ms of each of the others."""

    within: int
    delay_ms: int


class RateWindows:
    """The rates of one kind that are at home here, by key: `ip:ADDRESS`, `user:NAME`, or one of the cluster (cluster_rate.py)."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._rates = RatesByKey(window)
        self._shown: dict[str, int] = {}  # when each last recorded, least recent first

    def admit(self, key: str, units: int, quota_per_s: float, *, now_ms: int) -> WindowAnswer:
        """Records the units that are within the quota."""
        admitted = self._rate(key, now_ms).admit(units, quota_per_s, now_ms=now_ms, max_ms=self.window.size_ms)
        return WindowAnswer(units, 0) if admitted is None else WindowAnswer(*admitted)

    def record(self, key: str, units: int, *, now_ms: int) -> None:
        """Count units that an earlier home had granted."""
        self._rate(key, now_ms).record(units, now_ms=now_ms)

    def undo(self, key: str, units: int, *, at_ms: int) -> None:
        """Units recorded at `at_ms` were not used."""
        rate = self._rates.find(key)
        if rate is not None:
            rate.undo(units, at_ms=at_ms)

    def describe(self, most: int, *, now_ms: int) -> list[tuple[str, float]]:
        """(key, connections a second) of those that recorded within the last hour, the latest first."""
        found: list[tuple[str, float]] = []
        for key, last_ms in reversed(self._shown.items()):
            if now_ms - last_ms > SHOWN_MS or len(found) == most:
                break
            rate = self._rates.find(key)
            found.append((key, 0.0 if rate is None else rate.peek(now_ms=now_ms)))
        return found

    def rate(self, key: str, *, now_ms: int) -> float | None:
        """Connections a second of one; None: nothing of it counts here."""
        rate = self._rates.find(key)
        return None if rate is None else rate.peek(now_ms=now_ms)

    def recorded(self, *, now_ms: int) -> dict[str, float]:
        """{key: units that count at `now_ms`}, of all that are remembered."""
        return {key: rate.units(now_ms=now_ms) for key, rate in self._rates.items()}

    def __len__(self) -> int:
        return len(self._rates)

    def _rate(self, key: str, now_ms: int) -> Rate:
        shown = self._shown
        shown.pop(key, None)
        shown[key] = now_ms
        if len(shown) > SHOWN_MOST:
            del shown[next(iter(shown))]
        return self._rates.take(key, now_ms=now_ms)
