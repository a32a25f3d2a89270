"""What holds up the loop of a process, and for how long: a callback, the hooks after a pass, a step of a task.

Times are of the wall clock: that for which the process waited for a CPU, or was stopped, counts, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import trio

STALL_NS = 50_000_000
"""What takes longer has held up everything else. Seastar, which Redpanda runs on, calls it a stall of its reactor."""


class Stall(NamedTuple):
    """What held up the loop, and for how long."""

    by: str
    took_ns: int


class Stalls:
    """The stalls of one loop: `count` of them; `longest_ns`: the longest of all that was timed, stall or not.

    `told` is called with each. `notable_ns`: what takes longer is to be noted.
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest_ns = 0
        self.notable_ns = 0
        self.told: Callable[[Stall], None] = lambda stall: None

    def note(self, by: object, took_ns: int) -> None:
        """`by` took longer than `notable_ns`; `str(by)` names it."""
        self.longest_ns = max(self.longest_ns, took_ns)
        self.notable_ns = min(self.longest_ns, STALL_NS)
        if took_ns > STALL_NS:
            self.count += 1
            self.told(Stall(str(by), took_ns))


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
