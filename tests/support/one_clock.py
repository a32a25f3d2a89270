"""Shards in one process on one clock; what they call of each other waits for `answer_calls`, unless all homes are lost."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from shards.errors import PeerLost
from shards.loop.deferred import Deferred

Timer = list[Any]


class OneClock:
    """The `call` and the `timers` of its shards. `served[shard]`: the functions that a shard offers, by name."""

    def __init__(self, shards: int) -> None:
        self.now_ms = 0
        self.is_lost = False
        self.served: list[dict[str, Callable[..., Any]]] = [{} for _ in range(shards)]
        self.asked: list[tuple[Deferred[Any], int, str, list[Any]]] = []
        self._due: list[Timer] = []

    def call(self, peer: int, method: str, *args: Any) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        if self.is_lost:
            answer.fail(PeerLost(f"{peer} is down"))
        else:
            self.asked.append((answer, peer, method, [_carried(each) for each in args]))
        return answer

    def answer_calls(self) -> None:
        while self.asked:
            answer, peer, method, args = self.asked.pop(0)
            answer.resolve(_carried(self.served[peer][method](1, *args)))

    def after(self, delay_ms: int, function: Callable[[], None]) -> Timer:
        timer = [self.now_ms + delay_ms, len(self._due), function]
        heapq.heappush(self._due, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        timer[2] = lambda: None

    def wait(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while self._due and self._due[0][0] <= until_ms:
            self.now_ms, _, function = heapq.heappop(self._due)
            function()
        self.now_ms = until_ms


def _carried(value: Any) -> Any:
    """As msgpack carries it."""
    return list(value) if isinstance(value, tuple) else value
