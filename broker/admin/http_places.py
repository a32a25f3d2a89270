"""The connections that the admin API keeps, and the order in which it closes them to make room. Pure: no I/O, no clock.

admin_connections_are_bounded  At most `most` connections are open, and what they hold of bodies and of answers that are not
    yet taken is at most `most_bytes`, but for what one alone needs, and for requests that are being worked on.
longest_in_a_step_makes_room  Room is made by closing the connection whose step began first. A step is being idle, sending a
    request, or taking an answer: a client that sends or reads one byte at a time stays in its step.
work_is_not_cut_off  A connection whose request is being worked on is not closed: a change that was begun is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Closable(Protocol):
    """A connection, as its place knows it."""

    def close_early(self) -> None:
        """Ends the connection in the middle of its step."""


@dataclass(slots=True)
class _Place:
    held_bytes: int = 0
    waits: bool = True  # for its client


class Places:
    """The open connections of one server, in the order in which their steps began."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._places: dict[Closable, _Place] = {}
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def is_full(self) -> bool:
        """True when one more connection needs room."""
        return len(self._places) >= self._most

    def add(self, connection: Closable) -> None:
        """A connection that was accepted; its first step begins."""
        self._places[connection] = _Place()

    def remove(self, connection: Closable) -> None:
        """The connection has ended. Harmless when it has been removed already."""
        place = self._places.pop(connection, None)
        if place is not None:
            self._held_bytes -= place.held_bytes

    def begins_step(self, connection: Closable) -> None:
        """The connection waits for its client from now on."""
        place = self._places.pop(connection, None)
        if place is not None:
            place.waits = True
            self._places[connection] = place

    def waits(self, connection: Closable, waits: bool = True) -> None:
        """The connection waits for its client, within its step; or, with False, its request is worked on (work_is_not_cut_off)."""
        place = self._places.get(connection)
        if place is not None:
            place.waits = waits

    def holds(self, connection: Closable, size: int) -> None:
        """The connection holds `size` bytes more, or fewer; others make room for them."""
        place = self._places.get(connection)
        if place is None:
            return
        place.held_bytes += size
        self._held_bytes += size
        while self._held_bytes > self._most_bytes:
            rest = (
                each for each, its in self._places.items() if its.waits and its.held_bytes and each is not connection
            )
            if not self._close(next(rest, None)):
                return

    def make_room(self) -> bool:
        """Closes the connection whose step began first; False when all are being worked on."""
        return self._close(next((each for each, its in self._places.items() if its.waits), None))

    def _close(self, connection: Closable | None) -> bool:
        if connection is None:
            return False
        self.remove(connection)  # now: its task ends only later
        connection.close_early()
        return True
