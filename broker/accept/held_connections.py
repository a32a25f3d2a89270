"""Connections over the rate of their address: held unread for their delay, then closed, or asked about again.

Holding costs an entry here and one in a heap: no thread, no task, no read. A client that reconnects at once is slowed
down; one that holds thousands of sockets meets the bounds below.

H1  At most `most` are held; for one more the one held longest goes early. So it does when descriptors run out.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from broker.timers import Timers


class Holdable(Protocol):
    """Something that can be let go; compared by identity."""

    def let_go(self, *, early: bool) -> None:
        """Its time has come, or, `early`, its place is needed."""


class HeldConnections:
    """Those of one shard, all listeners together."""

    def __init__(self, timers: Timers, most: int) -> None:
        self._timers = timers
        self._most = most
        self._held: dict[Holdable, None] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, connection: Holdable, delay_ms: int) -> None:
        if len(self._held) >= self._most:
            self.make_room()
        self._held[connection] = None
        self._timers.after(delay_ms, partial(self._due, connection))

    def make_room(self) -> bool:
        """Lets go of the one held longest; False when there is none."""
        if not self._held:
            return False
        oldest = next(iter(self._held))
        del self._held[oldest]
        oldest.let_go(early=True)
        return True

    def let_go_all(self) -> None:
        """Before the end: nobody is held any more."""
        while self.make_room():
            pass

    def _due(self, connection: Holdable) -> None:
        if connection in self._held:
            del self._held[connection]
            connection.let_go(early=False)
