"""Functions to call after a delay: muted channels, held sockets, rates; on one timer however many there are.

A delay costs an entry in a heap: no thread, no task, no timer of its own.

cancelled_timers_never_run  A cancelled function is never called, and cancelled entries of the heap are at most as many as
    waiting ones, plus _FEW.
due_timers_share_a_slice  Calls that are due together take a time slice of the loop at most, and go on in the next
    (time_slice.py).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import trio

from shards.loop.poller import Poller

_FEW = 64


class Timer:
    """One call that is due later; `function` is None once it was called or cancelled."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function: Callable[[], None] | None = function


class Timers:
    """Calls functions when their time has come. `len` is how many are waiting."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._heap: list[tuple[int, int, Timer]] = []
        self._cancelled = 0  # cancelled timers in the heap
        self._order = itertools.count()
        self._sooner = trio.Event()

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def after(self, delay_ms: float, function: Callable[[], None]) -> Timer:
        """Calls `function` `delay_ms` from now, as part of a pass of the poller."""
        due_ns = self._poller.now_ns + int(delay_ms * 1e6)
        if not self._heap or due_ns < self._heap[0][0]:
            self._sooner.set()
        timer = Timer(function)
        heapq.heappush(self._heap, (due_ns, next(self._order), timer))
        return timer

    def cancel(self, timer: Timer) -> None:
        """Never calls it; nothing happens if it was called or cancelled before."""
        if timer.function is None:
            return
        timer.function = None
        self._cancelled += 1
        if self._cancelled > _FEW + len(self):
            self._heap = [entry for entry in self._heap if entry[2].function is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def check(self) -> None:
        """Raises AssertionError when cancelled_timers_never_run does not hold."""
        assert self._cancelled == sum(timer.function is None for _, _, timer in self._heap)
        assert len(self._heap) <= 2 * len(self) + _FEW + 1

    async def run(self) -> None:
        """Calls what is due, as part of a pass of the poller, until cancelled."""
        while True:
            self._sooner = trio.Event()
            wait_s = (self._heap[0][0] - self._poller.clock_ns()) / 1e9 if self._heap else float("inf")
            with trio.move_on_after(max(wait_s, 0)):
                await self._sooner.wait()
            self._poller.touch()
            self.call_due()

    def call_due(self) -> None:
        """Calls the functions whose time has come by the beginning of the present pass, until the time slice is over
        (due_timers_share_a_slice)."""
        now_ns = self._poller.now_ns
        while self._heap and self._heap[0][0] <= now_ns:
            timer = heapq.heappop(self._heap)[2]
            function, timer.function = timer.function, None
            if function is None:
                self._cancelled -= 1
            else:
                function()
                if self._poller.time_slice.spend(0):
                    return
