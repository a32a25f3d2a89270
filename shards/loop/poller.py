"""An epoll set of our own, which trio waits on as one descriptor.

A trio task per connection costs several times what accepting the connection does: two system calls to arm and disarm
each wait, and a task switch. Most events of a shard need no waiting at all, so they are plain callbacks, run in
batches ("passes"); a trio task starts only for what must wait. What callbacks of a pass queue up (frames to other
shards, journal records) goes out once, when `at_end_of_pass` runs.

Going to sleep through trio and being woken again costs as much as a small request does. So after a pass the poller may first
wait by itself, for `linger_s`: under load the next event comes sooner. What trio's other tasks wait for is not seen meanwhile,
so a process most of whose work is in tasks does not linger. Being woken by the kernel costs more than the answer to a message
takes: after one on a link whose answers are waited for (`expect`), it stays awake for EXPECTED_NS. A connection that arrives
is the first of several events, and who makes them may need this very core: after it has slept until a `herald` came, the poller
yields the core once, and serves in one pass what came meanwhile.

A peer that sends without end would keep its callback busy without end. So each callback has a time slice (time_slice.py); one
that is not done when that is over asks to be called `again`, in the next pass, where everything else that is ready comes first.

Invariants
callbacks_never_wait  A callback never waits and never raises for a peer's mistake; an exception out of a callback is a bug
    and ends the process.
forgotten_descriptors_get_nothing  A descriptor forgotten during a pass gets no further callback. Its number may be reused
    within the same pass, and the new owner may then see an event meant for the old one: a callback believes only what
    reading or writing tells it.
hooks_end_every_pass_in_order  The hooks of `at_end_of_pass` run after every pass, in the order they were added.
tasks_are_not_held_up  The poller does not wait by itself while a task is to run. One that becomes so meanwhile (a deadline,
    a thread's result) runs after _BEFORE_YIELD_NS at most.
one_call_per_watcher_and_pass  In a pass each watcher is called once at most: those that are ready, then those that asked to
    be called again, in the order in which they asked, for ROUND_NS. What is left of these are the first to be called again
    in the next.
passes_are_bounded  While callbacks keep to their slices, a pass takes twice ROUND_NS and one step of each watcher that is
    ready. A callback, the hooks after a pass or a step of a task that takes longer than STALL_NS is a stall (stalls.py).
"""

import os
import select
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import trio

from shards.loop.held_events import HeldEvents
from shards.loop.stalls import Stalls, TaskSteps
from shards.loop.time_slice import SLICE_NS, TimeSlice

EPOLLIN = select.EPOLLIN
EPOLLOUT = select.EPOLLOUT
EPOLLET = select.EPOLLET
EPOLLRDHUP = select.EPOLLRDHUP
EPOLLHUP = select.EPOLLHUP
EPOLLERR = select.EPOLLERR


class Watcher(Protocol):
    """The receiver of a descriptor's readiness. Not a function: the bound method would be 64 bytes of each connection."""

    def ready(self, events: int) -> None:
        """The descriptor is ready for `events`."""


class Calling(NamedTuple):
    """A watcher that calls a function."""

    ready: Callable[[int], None]


# After so long without trio, its own tasks get a turn.
_BEFORE_YIELD_NS = 2_000_000
LINGER_S = 0.001
"""The time for which a process whose events are callbacks waits by itself before it sleeps."""
_EVENTS_PER_PASS = 512
EXPECTED_NS = 60_000
"""Twice what a message to another process and its answer take where neither sleeps."""
ROUND_NS = 5_000_000
"""All slices of a pass together: they are shorter when many watchers are to be called."""
_WHOLE_SLICES = ROUND_NS // SLICE_NS


class Poller:
    """Callbacks for readiness: `watch` a descriptor, `run` in a task, hooks after each pass.

    `now_ns` is the monotonic time at which the current pass began, or of the last `refresh` in it (ns, one clock for all processes
    of the machine);
    `round_ns`: how long the last passes took between two turns of trio's tasks, without what they waited. `time_slice`: of the
    callback that runs. `stalls`: what held up the loop (passes_are_bounded).
    """

    def __init__(
        self,
        *,
        linger_s: float = LINGER_S,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        stalls: Stalls | None = None,
    ) -> None:
        self._epoll = select.epoll()
        self._watchers: dict[int, Watcher] = {}
        self._heralds: set[int] = set()
        self._hooks: list[Callable[[], None]] = []
        self._linger_s = linger_s
        self.clock_ns = clock_ns
        self._woken = trio.Event()
        self.in_pass = False
        self.now_ns = clock_ns()
        self.round_ns = 0
        self._expected_ns = 0  # until when the next event is waited for awake
        # Descriptors whose watchers are called in the next pass though nothing new is ready, in this order.
        self._again: dict[int, None] = {}
        self._held: HeldEvents | None = None
        self.time_slice = TimeSlice(clock_ns)
        self.stalls = stalls or Stalls()

    def watch(self, fd: int, watcher: Watcher, events: int = EPOLLIN, *, herald: bool = False) -> None:
        """Calls `watcher.ready(events)` whenever `fd` is ready for `events`. `herald`: more events follow at once, as a request
        does on a connection that arrives."""
        self._watchers[fd] = watcher
        if herald:
            self._heralds.add(fd)
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Ends the callbacks of `fd`; for a descriptor about to be closed, which takes it out of the epoll set by itself."""
        self._watchers.pop(fd, None)
        if self._again:
            self._again.pop(fd, None)

    def unwatch(self, fd: int) -> None:
        """Ends the callbacks of `fd`, which stays open."""
        self._heralds.discard(fd)
        self._again.pop(fd, None)
        if self._watchers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def again(self, fd: int) -> None:
        """Calls the watcher of `fd` in the next pass, with what is ready then, perhaps nothing: it is not done
        (one_call_per_watcher_and_pass)."""
        self._again[fd] = None
        if not self.in_pass:
            self._woken.set()

    def hold(self, kind: type) -> None:
        """Calls no watcher of this class from the next pass on (held_events.py). One class at a time."""
        if self._held is None:
            self._held = HeldEvents(kind)
        else:
            self._held.hold()

    def release(self) -> None:
        """Calls them again in the next pass, with what came meanwhile."""
        if self._held is not None:
            self._held.release()
            for fd in self._held.descriptors:
                self.again(fd)

    def holds(self, fd: int) -> bool:
        """True if the watcher of `fd` has been kept from an event that came."""
        return self._held is not None and fd in self._held.descriptors

    def at_end_of_pass(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def expect(self) -> None:
        """A message was exchanged with another process: what comes next is near, and is waited for awake."""
        self._expected_ns = self.clock_ns() + EXPECTED_NS

    def touch(self) -> None:
        """Refreshes `now_ns` and makes the end-of-pass hooks run soon; a task calls it before it does what a callback does."""
        if not self.in_pass:
            self.now_ns = self.clock_ns()
            if (
                not self._woken.is_set()
            ):  # else the pass goes on with the work of tasks since the last pass, in one slice
                self.time_slice.begin(self.now_ns)
                self._woken.set()

    def refresh(self) -> None:
        """Brings `now_ns` up to date, before something is taken up that may have come since the pass began."""
        self.now_ns = self.clock_ns()

    def wake(self) -> None:
        """Runs the hooks of `at_end_of_pass` once more: for an event in one hook that makes work for an earlier one."""
        self._woken.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serves callbacks until cancelled."""
        runnable = TaskSteps(self.clock_ns, self.stalls)
        runnable.own.add(trio.lowlevel.current_task())
        if self._linger_s:
            trio.lowlevel.add_instrument(runnable)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_touched, runnable)
            task_status.started()
            fd = self._epoll.fileno()
            while True:
                await trio.lowlevel.wait_readable(fd)
                while self._run_passes(runnable):
                    await trio.lowlevel.checkpoint()

    def _run_passes(self, runnable: TaskSteps) -> bool:
        """Passes until it is the turn of trio's tasks: True; or nothing comes any more: False."""
        began_ns = self.clock_ns()
        waited_ns = 0
        try:
            while True:
                if not self.run_pass():
                    if runnable.tasks or not self._linger_s:
                        return bool(runnable.tasks)
                    idle_ns = self.clock_ns()
                    ready = self._wait()
                    waited_ns += self.clock_ns() - idle_ns
                    if not ready:
                        return False
                    self._serve(ready)
                if runnable.tasks or self.clock_ns() >= began_ns + _BEFORE_YIELD_NS:
                    return True
        finally:
            self.round_ns = self.clock_ns() - began_ns - waited_ns

    def _wait(self) -> list[tuple[int, int]]:
        """The events that are ready next, within `linger_s`; awake as long as something is expected."""
        ready: list[tuple[int, int]] = []
        while not ready and self.clock_ns() < self._expected_ns:
            ready = self._epoll.poll(0, _EVENTS_PER_PASS)
            if not ready:
                os.sched_yield()  # this process may be on the very core that the other process needs
        if ready:
            return ready
        ready = self._epoll.poll(self._linger_s, _EVENTS_PER_PASS)
        if self._expected_ns < self.now_ns and not self._heralds.isdisjoint(found := dict(ready)):
            os.sched_yield()
            found.update(self._epoll.poll(0, _EVENTS_PER_PASS))
            return list(found.items())
        return ready

    def run_pass(self) -> bool:
        """One pass over what is ready now; returns whether anything was."""
        ready = self._epoll.poll(0, _EVENTS_PER_PASS)
        if not ready and not self._again:
            return False
        self._serve(ready)
        return True

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        self.in_pass = True
        began_ns = self.now_ns = self.clock_ns()
        again, self._again = self._again, {}
        if self._held is not None:
            ready = self._held.sift(ready, again, self._watchers)
            if self._held.released:
                self._held = self._held.after_release
        for fd, _ in ready if again else ():
            again.pop(fd, None)
        count = len(ready) + len(again)
        self.time_slice.most_ns = SLICE_NS if count <= _WHOLE_SLICES else ROUND_NS // count
        now_ns = self._call(ready, began_ns)
        if again:
            now_ns = self._call_again(again, now_ns)
        self._end_pass(now_ns)

    def _call(self, ready: Iterable[tuple[int, int]], now_ns: int) -> int:
        """Calls watchers with their events; returns the time."""
        watchers, time_slice, clock_ns, stalls = self._watchers, self.time_slice, self.clock_ns, self.stalls
        for fd, events in ready:
            watcher = watchers.get(fd)
            if watcher is not None:
                time_slice.now_ns = now_ns  # as TimeSlice.begin, without the call
                time_slice.fresh = True
                time_slice.over = False
                watcher.ready(events)
                took_ns = -now_ns
                now_ns = clock_ns()
                took_ns += now_ns
                if took_ns > stalls.notable_ns:
                    stalls.note(watcher, took_ns)
        return now_ns

    def _call_again(self, again: dict[int, None], now_ns: int) -> int:
        """Calls those that asked for it and were not called in this pass, until ROUND_NS is over; returns the time."""
        until_ns = now_ns + ROUND_NS
        while again and now_ns < until_ns:
            fd = next(iter(again))
            del again[fd]
            self.now_ns = now_ns  # see refresh()
            now_ns = self._call(((fd, 0),), now_ns)
        if again:
            self._again = {**again, **self._again}
        return now_ns

    def _end_pass(self, now_ns: int) -> None:
        for hook in self._hooks:
            hook()
        self.in_pass = False
        if (took_ns := self.clock_ns() - now_ns) > self.stalls.notable_ns:
            self.stalls.note("the end of a pass", took_ns)

    async def _run_touched(self, runnable: TaskSteps) -> None:
        runnable.own.add(trio.lowlevel.current_task())
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            self.in_pass = True
            self._end_pass(self.clock_ns())
            while self._again:
                self.run_pass()
                await trio.lowlevel.checkpoint()

    def close(self) -> None:
        self._epoll.close()
