"""Large requests take turns, and tasks that are woken together, so that the loop serves everything else in between.

one_large_piece_a_round  Between two rounds of the scheduler at most one piece of large work runs, however many requests are
    large.
loop_rests_as_long_as_pieces  After a piece the loop has as long for everything else as the piece took.
pieces_are_short  A piece takes a few milliseconds: as long as one item takes, at most PIECE_S longer.
one_large_answer_at_a_time  The items of one large answer are made at a time: the answers that wait for theirs take no
    memory.
woken_tasks_go_on_in_order  Of tasks that one event wakes, those go on at once that do within AT_ONCE_S; of the others a few
    between two rounds of the scheduler, in the order in which they were woken.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from shards.loop.deferred import MaybeDeferred, Spawn

T = TypeVar("T")

AT_ONCE_S = 0.002
"""A request's work is done at once up to here; the rest is done in turns."""
PIECE_S = 0.005
_WOKEN_AT_A_TIME = 8


class Turns:
    """The turns of one process. `spawn` starts a task for each large request."""

    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self._working = trio.Lock()
        self._collecting = trio.Lock()
        self._woken: deque[trio.Event] = (
            deque()
        )  # the events of tasks that wait for their turn (woken_tasks_go_on_in_order)
        self._first_woken_s = self._last_woken_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn; its body is one piece of work, which does not await."""
        async with self._working:
            await trio.lowlevel.checkpoint()
            began_s = time.perf_counter()
            yield
            await trio.sleep(time.perf_counter() - began_s)

    async def aside(self, function: Callable[..., T], *args: object) -> T:
        """Calls a function that can't be cut into pieces in a thread, one at a time; it must share nothing with the loop."""
        async with self._working:
            return await trio.to_thread.run_sync(function, *args)

    async def woken(self) -> None:
        """To be called by a task that an event has woken which wakes others, too, before its work: returns in its turn
        (woken_tasks_go_on_in_order)."""
        now_s = time.perf_counter()
        if now_s - self._last_woken_s > AT_ONCE_S:
            self._first_woken_s = now_s
        self._last_woken_s = now_s
        if not self._woken and now_s - self._first_woken_s <= AT_ONCE_S:
            return
        turn = trio.Event()
        self._woken.append(turn)
        if len(self._woken) == 1:
            self.spawn(self._wake())
        await turn.wait()

    async def _wake(self) -> None:
        while self._woken:
            await trio.lowlevel.checkpoint()
            for _ in range(min(_WOKEN_AT_A_TIME, len(self._woken))):
                self._woken.popleft().set()
        self._first_woken_s = time.perf_counter()

    def collect(self, items: Iterable[T]) -> MaybeDeferred[list[T]]:
        """All items, whose making is the work: at once if that is short, else in turns."""
        left = iter(items)
        made: list[T] = []
        if _take(left, made, AT_ONCE_S):
            return made
        return self.spawn(self._collect(left, made), cancellable=True)

    async def _collect(self, left: Iterator[T], made: list[T]) -> list[T]:
        async with self._collecting:
            while True:
                async with self.turn():
                    ended = _take(left, made, PIECE_S)
                if ended:
                    return made


def _take(left: Iterator[T], made: list[T], most_s: float) -> bool:
    """Appends items to `made` for `most_s`; whether there are no more."""
    until_s = time.perf_counter() + most_s
    for item in left:
        made.append(item)
        if time.perf_counter() > until_s:
            return False
    return True
