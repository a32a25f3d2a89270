"""The client under judgement as the broker sees it while the course goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from turnstile.verdict.tail import Tail
from turnstile.verdict.timeline import SECOND, Event, is_work

_LATE_NS = 5 * SECOND
"""Events may be out of order by so much: each shard writes its own."""


class Watch:
    """The events of one client among those that the tail finds."""

    def __init__(self, tail: Tail, target: Mapping[str, str]) -> None:
        """`target`: the client as a fault names it, {"client_id": ...} or {"ip": ...}; empty: all there is."""
        self._tail = tail
        self._ip, self._client_id = target.get("ip"), target.get("client_id")

    def all(self) -> list[Event]:
        """Events of the client, by time; of a client id, all that happened to its connections."""
        self._tail.catch_up()
        events = self._tail.events
        if self._client_id is not None:
            own = {event.conn for event in events if event.client_id == self._client_id}
            events = [event for event in events if event.conn in own]
        if self._ip is not None:
            events = [event for event in events if event.ip == self._ip]
        return sorted(events, key=lambda event: event.at_ns)

    def since(self, at_ns: int) -> Iterator[Event]:
        """Events after an instant, the last first; with a client id, only events that carry it."""
        self._tail.catch_up()
        for event in reversed(self._tail.events):
            if event.at_ns < at_ns - _LATE_NS:
                return
            if event.at_ns > at_ns and self._client_id in (None, event.client_id) and self._ip in (None, event.ip):
                yield event

    def first_work_after(self, at_ns: int) -> int | None:
        """The time at which the client's first piece of work after an instant was taken up."""
        return min((event.at_ns for event in self.since(at_ns) if is_work(event)), default=None)
