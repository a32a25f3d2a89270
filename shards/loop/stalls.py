"""Stalls of the loop of a process, with their length and their cause: a callback, the hooks after a pass, a step of a task.

Time for which other processes had the CPUs does not count: on a busy machine everything takes long. The kernel tells its sum,
which is read only when something took long, and a few times a second (`look`); so a stall may seem shorter than it was.
"""

from collections.abc import Callable
from typing import NamedTuple

import trio

STALL_NS = 50_000_000
"""A callback that takes longer has held up everything else. Seastar, which Redpanda runs on, calls it a stall of its reactor."""


class Stall(NamedTuple):
    """The cause that held up the loop, and for how long."""

    by: str
    took_ns: int


def cpu_waited_ns() -> int:
    """The time for which this thread was ready to run while others had the CPUs; 0 where the kernel does not tell (schedstat)."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError):
        return 0


class Stalls:
    """The stalls of one loop: `count` of them; `longest_ns`: the longest of all that was timed, stall or not.

    `told` is called with each. `notable_ns`: what takes longer is to be noted. `waited_ns()`: how long the process has waited
    for a CPU since it began.
    """

    def __init__(
        self,
        told: Callable[[Stall], None] = lambda stall: None,
        waited_ns: Callable[[], int] = cpu_waited_ns,
    ) -> None:
        self._told = told
        self._waited_ns = waited_ns
        self._waited_before_ns = 0
        self.count = 0
        self.longest_ns = 0
        self.notable_ns = 0

    def note(self, by: object, took_ns: int) -> None:
        """`by` took longer than `notable_ns`; `str(by)` names it."""
        waited_ns = self._waited_before_ns
        self.look()
        took_ns -= self._waited_before_ns - waited_ns
        self.longest_ns = max(self.longest_ns, took_ns)
        self.notable_ns = min(self.longest_ns, STALL_NS)
        if took_ns > STALL_NS:
            self.count += 1
            self._told(Stall(str(by), took_ns))

    def look(self) -> None:
        """To be called a few times a second: the wait for a CPU until now is not part of a later stall."""
        self._waited_before_ns = self._waited_ns()


class TaskSteps(trio.abc.Instrument):
    """The tasks that are to run, which trio's own statistics leave out of the batch that it is working on; their steps, timed.

    `own`: the tasks of the poller, whose callbacks are timed one by one.
    """

    def __init__(self, clock_ns: Callable[[], int], stalls: Stalls) -> None:
        self.tasks: set[trio.lowlevel.Task] = set()
        self.own: set[trio.lowlevel.Task] = set()
        self._clock_ns = clock_ns
        self._stalls = stalls
        self._began_ns = 0

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Called by trio."""
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Called by trio."""
        self.tasks.discard(task)
        self._began_ns = self._clock_ns()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Called by trio."""
        took_ns = self._clock_ns() - self._began_ns
        if took_ns > self._stalls.notable_ns and task not in self.own:
            self._stalls.note(f"the task {task.name}", took_ns)
