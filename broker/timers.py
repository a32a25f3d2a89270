"""Things to do after a delay: muted channels and held sockets, on one timer however many there are.

A delay costs an entry in a heap: no thread, no task, no timer of its own.

D1  What was cancelled is never called, and takes no more entries than what still waits, a few aside.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import trio

from shards.mesh.poller import Poller

_FEW = 64


class Timer:
    """Something that waits for its time; `function` is None once that has come or been cancelled."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function: Callable[[], None] | None = function


class Timers:
    """Calls functions when their time has come. `len` is how many are waiting."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._heap: list[tuple[int, int, Timer]] = []
        self._cancelled = 0  # of those in the heap
        self._order = itertools.count()
        self._sooner = trio.Event()

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def after(self, delay_ms: float, function: Callable[[], None]) -> Timer:
        """Calls `function` `delay_ms` from now, as part of a pass of the poller."""
        due_ns = self._poller.now_ns + int(delay_ms * 1e6)
        if not self._heap or due_ns < self._heap[0][0]:
            self._sooner.set()
        delay = Timer(function)
        heapq.heappush(self._heap, (due_ns, next(self._order), delay))
        return delay

    def cancel(self, delay: Timer) -> None:
        """Never calls it; nothing happens if it was called or cancelled before."""
        if delay.function is None:
            return
        delay.function = None
        self._cancelled += 1
        if self._cancelled > _FEW + len(self):
            self._heap = [entry for entry in self._heap if entry[2].function is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

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
                delay = heapq.heappop(self._heap)[2]
                function, delay.function = delay.function, None
                if function is None:
                    self._cancelled -= 1
                else:
                    function()
