"""Channels that a client quota has muted: how many by quota, and when each is unmuted.

A muted channel costs an entry here and one in a heap: no thread, no task, no read. There are never more of them than
open connections.

While the shard's network thread is blocked (request_queue.py) none is unmuted: Kafka's Processor unmutes them itself.

muted_once_or_not  A connection is here once or not at all; one that closes leaves at once, however long its delay was.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Protocol

from shards.loop.timers import Timer, Timers


class Mutable(Protocol):
    """A channel that can be muted; compared by identity."""

    def go_on(self) -> None:
        """The channel is unmuted."""


class Muted:
    """The muted channels of one shard, of all listeners."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._muted: dict[Mutable, tuple[str, Timer]] = {}
        self._over: dict[Mutable, None] | None = None  # connections whose delay ended while none is unmuted
        self.sizes: Counter[str] = Counter()
        """The number of muted channels, by the quota that asked for it."""

    def __len__(self) -> int:
        return len(self._muted)

    def mute(self, connection: Mutable, kind: str, delay_ms: float) -> None:
        """The connection goes on in `delay_ms`."""
        self._muted[connection] = kind, self._timers.after(delay_ms, partial(self.end, connection))
        self.sizes[kind] += 1

    def __contains__(self, connection: Mutable) -> bool:
        return connection in self._muted

    def end(self, connection: Mutable) -> None:
        """The delay is over, or is ended early: the connection goes on, unless none does (`pause`)."""
        if self._over is not None:
            self._over[connection] = None
            return
        kind, timer = self._muted.pop(connection)
        self._timers.cancel(timer)
        self.sizes[kind] -= 1
        connection.go_on()

    def forget(self, connection: Mutable) -> None:
        """A connection has closed."""
        kind, timer = self._muted.pop(connection)
        self.sizes[kind] -= 1
        self._timers.cancel(timer)

    def pause(self) -> None:
        """No connection is unmuted until `resume`."""
        if self._over is None:
            self._over = {}

    def resume(self) -> None:
        """Unmutes the connections whose delay is over."""
        over, self._over = self._over, None
        for connection in over or ():
            if connection in self._muted:
                self.end(connection)
