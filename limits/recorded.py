"""Connection rates (KIP-612) done again from a list of the units that were recorded: which of them no broker would have let in?

Whoever decided wrote down every change of its windows, in order: units it recorded, units it took back, and that it
started anew. Fed with these, the windows here go through the same states, by Kafka's arithmetic (rate.py), and

  - a unit of an address is *beyond* when its rate is over the quota with it (Kafka takes it back and closes);
  - a unit of a listener is *beyond* when the delay that an earlier one of that listener caused has not passed.

Times are whole milliseconds that never go back; quotas are units per second, None: no quota.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from limits.rate import Rate, Window


class Quotas(NamedTuple):
    """Units a second that a pool may have: its own quota, and for a listener its broker's."""

    own: float | None
    broker: float | None = None
    exempt: bool = False  # the broker's rate does not count this listener


class Recorded:
    """All windows of one home, from the `detail` of its `grant` and `reclaim` events (docs/journal.md) about `rate:` pools."""

    def __init__(self, window: Window) -> None:
        self._begin(window)

    def event(self, detail: Mapping[str, Any], quotas: Callable[[str], Quotas], window: Window) -> int:
        """The next event, and what is in force then: how many of its units are beyond."""
        key = detail["pool"].removeprefix("rate:")
        if "remembered" in detail:
            if detail["started"]:
                self._start(key, window)
            for at_ms, each, units in detail["remembered"]:
                self._record(each, units, quotas(each), at_ms)
        elif "from" in detail:
            self._undo(key, detail["tokens"], quotas(key), detail["at_ms"])
        elif not detail.get("charged", True):
            self._record(key, detail["tokens"], quotas(key), detail["at_ms"])
        else:
            return self._charge(key, detail, quotas(key))
        return 0

    def _begin(self, window: Window) -> None:
        self._window = window
        self._addresses: dict[str, RecordedAddress] = {}
        self._listeners = RecordedListeners(window)

    def _start(self, what: str, window: Window) -> None:
        if what:
            self._listeners = RecordedListeners(window)
        else:
            self._begin(window)

    def _charge(self, key: str, detail: Mapping[str, Any], quotas: Quotas) -> int:
        units, at_ms = detail["tokens"], detail["at_ms"]
        kind, _, name = key.partition(":")
        if kind == "listener":
            return self._listeners.charge(name, units, quotas, at_ms=at_ms)
        address = self._address(name)
        beyond = address.charge(units, quotas.own, at_ms=at_ms)
        if detail.get("violated"):
            address.violated(at_ms=at_ms)
        return beyond

    def _record(self, key: str, units: int, quotas: Quotas, at_ms: int) -> None:
        kind, _, name = key.partition(":")
        if kind == "listener":
            self._listeners.record(name, units, exempt=quotas.exempt, at_ms=at_ms)
        else:
            self._address(name).record(units, at_ms=at_ms)

    def _undo(self, key: str, units: int, quotas: Quotas, at_ms: int) -> None:
        kind, _, name = key.partition(":")
        if kind == "listener":
            self._listeners.undo(name, units, exempt=quotas.exempt, at_ms=at_ms)
        else:
            self._address(name).undo(units, at_ms=at_ms)

    def _address(self, ip: str) -> "RecordedAddress":
        address = self._addresses.get(ip)
        if address is None:
            address = self._addresses[ip] = RecordedAddress(self._window)
        return address


class RecordedAddress:
    """The window of one address."""

    __slots__ = ("_rate",)

    def __init__(self, window: Window) -> None:
        self._rate = Rate(window)

    def charge(self, units: int, quota_per_s: float | None, *, at_ms: int) -> int:
        """These were let in: how many of them are beyond."""
        size_ms = self._rate.window.size_ms
        return sum(self._rate.charge(1, quota_per_s, now_ms=at_ms, max_ms=size_ms) > 0 for _ in range(units))

    def violated(self, *, at_ms: int) -> None:
        """One was found beyond and taken back, which may have begun a sample."""
        self._rate.charge(1, None, now_ms=at_ms)
        self._rate.record(-1, now_ms=at_ms)

    def record(self, units: int, *, at_ms: int) -> None:
        """Counted without being asked about."""
        self._rate.record(units, now_ms=at_ms)

    def undo(self, units: int, *, at_ms: int) -> None:
        """Recorded at `at_ms`, and not used."""
        self._rate.undo(units, at_ms=at_ms)


class RecordedListeners:
    """The windows of a broker and its listeners."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._broker = Rate(window)
        self._rates: dict[str, Rate] = {}
        self._blocked_until_ms: dict[str, int] = {}

    def charge(self, listener: str, units: int, quotas: Quotas, *, at_ms: int) -> int:
        """These were let in, one after the other: how many of them are beyond."""
        beyond, size_ms = 0, self._window.size_ms
        for _ in range(units):
            beyond += at_ms < self._blocked_until_ms.get(listener, 0)
            delay_ms = self._rate(listener).charge(1, quotas.own, now_ms=at_ms, max_ms=size_ms)
            if not quotas.exempt:
                delay_ms = max(delay_ms, self._broker.charge(1, quotas.broker, now_ms=at_ms, max_ms=size_ms))
            if delay_ms:
                self._blocked_until_ms[listener] = at_ms + delay_ms
        return beyond

    def record(self, listener: str, units: int, *, exempt: bool, at_ms: int) -> None:
        """Counted without being asked about; negative: taken back as Kafka does, in the current sample."""
        self._rate(listener).record(units, now_ms=at_ms)
        if not exempt:
            self._broker.record(units, now_ms=at_ms)

    def undo(self, listener: str, units: int, *, exempt: bool, at_ms: int) -> None:
        """Recorded at `at_ms`, and not used."""
        self._rate(listener).undo(units, at_ms=at_ms)
        if not exempt:
            self._broker.undo(units, at_ms=at_ms)

    def _rate(self, listener: str) -> Rate:
        rate = self._rates.get(listener)
        if rate is None:
            rate = self._rates[listener] = Rate(self._window)
        return rate
