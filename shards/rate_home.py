"""The rates that are at home on this shard: those of addresses, and at one shard of a broker those of its listeners.

H1  Nothing is decided while the memory of what an earlier home knew is incomplete: asks wait in `_parked`.
H2  Every answer carries the version it was given under, and when its units were recorded.
"""

from collections.abc import Callable
from typing import Any

from limits.rate import Window
from limits.throttle import INT_MAX
from shards.gate import Gate
from shards.settings import View
from shards.windows import Windows

Post = Callable[[int, tuple[Any, ...]], None]


class RateHome:
    """`post(peer, item)` queues an answer; `block(listener, until_ms)` tells every shard that a listener must not accept."""

    def __init__(
        self,
        shards: int,
        listeners: tuple[str, ...],
        view: View,
        post: Post,
        block: Callable[[str, int], None],
    ) -> None:
        self.complete = False
        self.version = 0
        self._shards = shards
        self._listeners = listeners
        self._view = view
        self._post = post
        self._block = block
        self._parked: list[tuple[int, str, int, int]] = []
        self.start(Window())

    def start(self, window: Window) -> None:
        """Empty windows of this shape."""
        self.window = window
        self.windows = Windows(window)
        self.gate = Gate(self._listeners, window, self._shards, self._answer)

    def record(self, key: str, *, now_ms: int) -> int | None:
        """One connection of this very shard: as `Waiter.recorded` is told; None: ask, and wait for the answer."""
        if not self.complete:
            return None
        if not key.startswith("listener:"):
            return self._ask_window(key[3:], 1, 0, now_ms)[1]
        until_ms = self.gate.ask_one(key[9:], now_ms=now_ms)
        if not until_ms:
            return until_ms
        self._block(key[9:], until_ms)
        return until_ms - now_ms

    def asked(self, peer: int, now_ms: int, key: str, units: int, more: int) -> None:
        """A shard has `units` connections, and could use as many `more` soon."""
        if not self.complete:
            self._parked.append((peer, key, units, more))
        elif key.startswith("listener:"):
            self.gate.ask(peer, key[9:], units, more, now_ms=now_ms)
        else:
            within, delay_ms, spare = self._ask_window(key[3:], units, more, now_ms)
            self._post(peer, ("within", key, within, units - within, delay_ms, spare, now_ms, self.version))

    def undo(self, peer: int, now_ms: int, key: str, units: int, at_ms: int) -> None:
        """Units recorded at `at_ms` were not used."""
        if key.startswith("listener:"):
            self.gate.undo(key[9:], units, at_ms=at_ms)
        else:
            self.windows.undo(key[3:], units, at_ms=at_ms)

    def count(self, peer: int, now_ms: int, listener: str, units: int) -> None:
        """See Rates.count."""
        self.gate.record(listener, units, now_ms=now_ms)

    def forget(self, peer: int) -> None:
        """A shard died: nobody there waits any more."""
        self.gate.forget(peer)
        self._parked = [ask for ask in self._parked if ask[0] != peer]

    def resume(self, remembered: list[tuple[int, str, int]], now_ms: int) -> None:
        """The memory is complete: count it, oldest first, then answer who asked meanwhile."""
        for at_ms, key, units in remembered:
            if key.startswith("listener:"):
                self.gate.record(key[9:], units, now_ms=at_ms)
            else:
                self.windows.record(key[3:], units, now_ms=at_ms)
        self.complete = True
        parked, self._parked = self._parked, []
        for peer, key, units, more in parked:
            self.asked(peer, now_ms, key, units, more)

    def _ask_window(self, ip: str, units: int, more: int, now_ms: int) -> tuple[int, int, int]:
        quota = self._view.quota_for_ip(ip)
        if quota is None or quota >= INT_MAX:
            return units, 0, 0  # without a quota nothing is recorded
        return self.windows.ask(ip, units, more, quota, self._shards, now_ms=now_ms)

    def _answer(self, peer: int, listener: str, units: int, until_ms: int, spare: int, at_ms: int) -> None:
        self._post(peer, ("go", listener, units, until_ms, spare, at_ms, self.version))
        if until_ms:
            self._block(listener, until_ms)
