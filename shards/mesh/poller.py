"""An epoll set of our own, which trio waits on as one descriptor.

A trio task per connection costs several times what accepting the connection does: two system calls to arm and disarm
each wait, and a task switch. Most events of a shard need no waiting at all, so they are plain callbacks, run in
batches ("passes"); a trio task starts only for what must wait. What callbacks of a pass queue up (frames to other
shards, journal records) goes out once, when `at_end_of_pass` runs.

Going to sleep through trio and being woken again costs as much as a small request does. So after a pass the poller first
waits by itself, for _LINGER_S: under load the next event comes sooner.

Invariants
P1  A callback never waits and never raises for a peer's mistake; an exception out of a callback is a bug and ends the process.
P2  A descriptor forgotten during a pass gets no further callback. Its number may be reused within the same pass, and the
    new owner may then see an event meant for the old one: a callback believes only what reading or writing tells it.
P3  The hooks of `at_end_of_pass` run after every pass, in the order they were added.
P4  A task that a callback made runnable runs before the poller waits; any other (a deadline, a thread's result) after
    _BEFORE_YIELD_NS at most.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

import trio

EPOLLIN = select.EPOLLIN
EPOLLOUT = select.EPOLLOUT
EPOLLET = select.EPOLLET
EPOLLRDHUP = select.EPOLLRDHUP
EPOLLHUP = select.EPOLLHUP
EPOLLERR = select.EPOLLERR

Callback = Callable[[int], None]

# After so long without trio, its own tasks get a turn.
_BEFORE_YIELD_NS = 2_000_000
_LINGER_S = 0.001
_EVENTS_PER_PASS = 512


class _TasksRunnable(trio.abc.Instrument):
    """Whether a task has become runnable since `any` was last set to False."""

    def __init__(self) -> None:
        self.any = False

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Called by trio."""
        self.any = True


class Poller:
    """Callbacks for readiness: `watch` a descriptor, `run` in a task, hooks after each pass.

    `now_ns` is the monotonic time at which the current pass began (ns, one clock for all processes of the machine);
    `round_ns`: how long the last passes took between two turns of trio's tasks, without what they waited.
    """

    def __init__(self, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}
        self._hooks: list[Callable[[], None]] = []
        self.clock_ns = clock_ns
        self._woken = trio.Event()
        self.in_pass = False
        self.now_ns = clock_ns()
        self.round_ns = 0

    def watch(self, fd: int, callback: Callback, events: int = EPOLLIN) -> None:
        """Calls `callback(events)` whenever `fd` is ready for `events`."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Ends the callbacks of `fd`; for a descriptor about to be closed, which takes it out of the epoll set by itself."""
        self._callbacks.pop(fd, None)

    def unwatch(self, fd: int) -> None:
        """Ends the callbacks of `fd`, which stays open."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def at_end_of_pass(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def touch(self) -> None:
        """Refreshes `now_ns` and makes the end-of-pass hooks run soon; a task calls it before it does what a callback does."""
        if not self.in_pass:
            self.now_ns = self.clock_ns()
            self._woken.set()

    def wake(self) -> None:
        """Runs the hooks of `at_end_of_pass` once more: for an event in one hook that makes work for an earlier one."""
        self._woken.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serves callbacks until cancelled."""
        runnable = _TasksRunnable()
        trio.lowlevel.add_instrument(runnable)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_touched)
            task_status.started()
            fd = self._epoll.fileno()
            while True:
                await trio.lowlevel.wait_readable(fd)
                while self._run_passes(runnable):
                    await trio.lowlevel.checkpoint()

    def _run_passes(self, runnable: _TasksRunnable) -> bool:
        """Passes until it is the turn of trio's tasks: True; or nothing comes any more: False."""
        runnable.any = False
        began_ns = self.clock_ns()
        waited_ns = 0
        try:
            while not runnable.any and self.clock_ns() < began_ns + _BEFORE_YIELD_NS:
                if not self.run_pass():
                    idle_ns = self.clock_ns()
                    ready = self._epoll.poll(_LINGER_S, _EVENTS_PER_PASS)
                    waited_ns += self.clock_ns() - idle_ns
                    if not ready:
                        return False
                    self._serve(ready)
            return True
        finally:
            self.round_ns = self.clock_ns() - began_ns - waited_ns

    def run_pass(self) -> bool:
        """One pass over what is ready now; returns whether anything was."""
        ready = self._epoll.poll(0, _EVENTS_PER_PASS)
        if ready:
            self._serve(ready)
        return bool(ready)

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        self.in_pass = True
        self.now_ns = self.clock_ns()
        callbacks = self._callbacks
        for fd, events in ready:
            callback = callbacks.get(fd)
            if callback is not None:
                callback(events)
        for hook in self._hooks:
            hook()
        self.in_pass = False

    async def _run_touched(self) -> None:
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            self.in_pass = True
            for hook in self._hooks:
                hook()
            self.in_pass = False

    def close(self) -> None:
        self._epoll.close()
