"""Connections over the rate of their address: held unread for their delay, then closed, or asked about again.

Holding costs an entry here and one in a heap: no thread, no task, no read. A client that reconnects at once is slowed
down; one that holds thousands of sockets meets the bound below.

held_connections_are_bounded  At most `most` are held. For one more, and when descriptors run out, the one held longest goes
    early.
let_go_once  A connection is let go once: when its delay is over or early, and not at all after its permit was given back.
"""

from __future__ import annotations

from typing import Protocol

from broker.accept.permit import Permit
from shards.loop.timers import Timer, Timers


class Holdable(Protocol):
    """A connection that can be held; compared by identity."""

    def let_go(self, *, early: bool = False) -> None:
        """The delay is over, or, `early`, the place is needed. Gives its permit back before it returns."""


class HeldConnections:
    """The held connections of one shard, of all listeners; `len` is their number."""

    def __init__(self, timers: Timers, most: int) -> None:
        self._timers = timers
        self._most = most
        self._held: dict[Holdable, Timer] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, connection: Holdable, delay_ms: int) -> Permit:
        """Lets the connection go in `delay_ms`, or early, unless the permit is given back before."""
        if len(self._held) >= self._most:
            self.make_room()
        self._held[connection] = self._timers.after(delay_ms, connection.let_go)
        return Permit(self._leave, connection)

    def make_room(self) -> bool:
        """Lets go of the connection held longest; False when there is none."""
        oldest = next(iter(self._held), None)
        if oldest is None:
            return False
        oldest.let_go(early=True)
        return True

    def _leave(self, connection: Holdable) -> None:
        self._timers.cancel(self._held.pop(connection))
