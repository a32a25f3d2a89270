"""Things to do after a delay: muted channels and held sockets, on one timer however many there are.

A delay costs an entry in a heap: no thread, no task, no timer of its own.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import trio

from shards.poller import Poller


class Delays:
    """Calls functions when their time has come. `len` is how many are waiting."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._sooner = trio.Event()

    def __len__(self) -> int:
        return len(self._heap)

    def after(self, delay_ms: float, function: Callable[[], None]) -> None:
        """Calls `function` `delay_ms` from now, as part of a pass of the poller."""
        due_ns = self._poller.now_ns + int(delay_ms * 1e6)
        if not self._heap or due_ns < self._heap[0][0]:
            self._sooner.set()
        heapq.heappush(self._heap, (due_ns, next(self._order), function))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._sooner = trio.Event()
            wait_s = (self._heap[0][0] - self._poller.clock_ns()) / 1e9 if self._heap else float("inf")
            with trio.move_on_after(max(wait_s, 0)):
                await self._sooner.wait()
            self._poller.touch()
            now_ns = self._poller.now_ns
            while self._heap and self._heap[0][0] <= now_ns:
                heapq.heappop(self._heap)[2]()
