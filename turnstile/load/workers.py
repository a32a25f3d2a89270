"""The driver's own processes: each runs a Storm over its share of the clients and reports ten times a second.

Parent to worker: one message of any kind, or the end of the pipe, means "end now". Worker to parent: WorkerProgress while it
runs, then Done or Failed. A worker says that it is settled and goes on; the parent ends all
together when all are, so connections that are held until the end are held while any worker still opens.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from turnstile.load.lanes import Lane
from turnstile.load.raw_sockets import Address, DriverError
from turnstile.load.spec import LoadScenario
from turnstile.load.storm import Storm
from turnstile.load.tally import Tally
from turnstile.load.watch import WorkerProgress


class Done(NamedTuple):
    """A worker's result: one dumped Tally per group."""

    dumped: list[Any]


class WorkerFailed(NamedTuple):
    """A worker that could not go on, and the sentence that says why."""

    sentence: str


class Crew:
    """The workers of one run."""

    def __init__(self, scenario: LoadScenario, targets: list[list[Address]], *, processes: int, began: float) -> None:
        self.latest: list[WorkerProgress | None] = [None] * processes
        self._not_before = began + (scenario.seconds or 0.0)
        self._groups = len(scenario.groups)
        self._results: list[list[Tally] | None] = [None] * processes
        self._pipes: list[Connection] = []
        self._processes = []
        self._ending = False
        context = multiprocessing.get_context("fork")
        for index in range(processes):
            ours, theirs = context.Pipe()
            others = [*self._pipes, ours]
            process = context.Process(
                target=_work,
                args=(scenario, targets, index, processes),
                kwargs={"began": began, "pipe": theirs, "not_ours": others},
                daemon=True,
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def collect(self, watch: Callable[[], None]) -> list[Tally]:
        """Run to the end; `watch` is called after every round of reports. The result has one Tally per group.

        Raises DriverError when a worker could not go on. KeyboardInterrupt passes through, once: then call
        end() and collect() again.
        """
        while any(result is None for result in self._results):
            for pipe in wait(self._pipes_in_use(), timeout=0.5):
                self._take(self._pipes.index(pipe))  # type: ignore[arg-type]
            watch()
            settled = all(progress is not None and progress.settled for progress in self.latest)
            if settled and time.monotonic() >= self._not_before:
                self.end()
        for process in self._processes:
            process.join()
        totals = [Tally() for _ in range(self._groups)]
        for result in self._results:
            for total, part in zip(totals, result or (), strict=True):
                total.add(part)
        return totals

    def end(self) -> None:
        """Tell every worker to close what it has open and to report."""
        if not self._ending:
            self._ending = True
            for pipe in self._pipes_in_use():
                pipe.send(None)

    def kill(self) -> None:
        """End the processes without waiting for what they have."""
        for process in self._processes:
            process.kill()
            process.join()

    def _pipes_in_use(self) -> list[Connection]:
        return [pipe for pipe, result in zip(self._pipes, self._results, strict=True) if result is None]

    def _take(self, index: int) -> None:
        try:
            message = self._pipes[index].recv()
        except EOFError:
            message = WorkerFailed("A process of the load driver died.")
        if isinstance(message, WorkerProgress):
            self.latest[index] = message
        elif isinstance(message, Done):
            self._results[index] = [Tally.load(dumped) for dumped in message.dumped]
        else:
            self.kill()
            raise DriverError(message.sentence)


def _work(
    scenario: LoadScenario,
    targets: list[list[Address]],
    process: int,
    processes: int,
    *,
    began: float,
    pipe: Connection,
    not_ours: list[Connection],
) -> None:
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in not_ours:
        other.close()
    raise_file_limit()
    lanes = [Lane(group, process=process, processes=processes) for group in scenario.groups]

    def report(settled: bool) -> None:
        counts = [lane.tally.counts() for lane in lanes]
        pipe.send(WorkerProgress(counts, storm.open_now, storm.last_error, settled))

    storm = Storm(scenario, lanes, targets, began=began, report=report)
    storm.listen_to(pipe.fileno(), storm.finish)
    try:
        storm.run()
        pipe.send(Done([lane.tally.dump() for lane in lanes]))
    except DriverError as error:
        pipe.send(WorkerFailed(str(error)))
    except BrokenPipeError:
        pass  # the parent is gone, and with it the reader of the result


def raise_file_limit() -> int:
    """Lift the soft limit of open files to the hard one; the limit that is now in force."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
