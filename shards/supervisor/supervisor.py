"""Starts the processes of a cluster, starts them again when they die, and ends them all.

No event loop and no threads: everything the children need is imported before they are forked, so starting one again costs a
few milliseconds, and forking is safe. All sockets are bound here and stay open here, so a connection that arrives
while a shard restarts waits in its backlog instead of being refused, unless the shard is to stay away
(away_processes_do_not_listen).

Invariants
no_child_outlives_the_supervisor  No child outlives the supervisor, however it ends (PR_SET_PDEATHSIG).
epochs_rise_with_every_fork  Every fork gets an epoch above all earlier ones of this data directory (epochs.py), by which a
    dead incarnation's messages are known.
dying_processes_are_delayed  A process that keeps dying is started again after longer and longer delays
    (backoff.restart_delays_double); the others go on.
the_watcher_is_watched  The process that watches the others is watched itself (coordinator_watchdog.py).
away_processes_do_not_listen  A process that is to start again only in AWAY_S or later, or that can't be started, does not
    listen until then: its clients go to the other shards.
signals_end_in_order  Every signal that asks a process to end (ENDING) ends the cluster in order, and so does the end of its
    owner (owner.py). Processes that are stopped are continued for it, and those that do not end are killed, within _STOP_S
    and _LEAST_S a stage.
zombies_are_reaped  As process 1 of a container it also reaps the orphans of other programs there: no zombie stays.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import groupby

from shards.supervisor.backoff import Backoff
from shards.supervisor.binding import ListeningSockets
from shards.supervisor.coordinator_watchdog import LOOK_S, CoordinatorWatchdog
from shards.supervisor.epochs import Epochs
from shards.supervisor.memory_limit import MemoryLimit
from shards.supervisor.owner import Owner
from shards.supervisor.parent_death import die_with_parent
from shards.supervisor.restart_board import RestartBoard
from shards.supervisor.signals import wait_for

# The signals whose default action ends a process (signal(7)), without SIGKILL, AGAIN and those for faults of its own, as SIGSEGV.
ENDING: frozenset[int] = frozenset(
    {
        signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGVTALRM,
        signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGXCPU,
        *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
    }
)  # fmt: skip
AGAIN = signal.SIGUSR2
"""Ends the cluster in order, too; it is then to start again."""
_WATCHED = {signal.SIGCHLD, AGAIN, *ENDING}
_STOP_S = 8.0
_LEAST_S = 1.0  # for a stage whose turn comes late
AWAY_S = 1.0
# How soon a fork that failed is tried again.
_RETRY_S = 0.25

Main = Callable[[int], int]
"""Runs one process until told to end; gets its epoch, returns its exit code."""


class Child:
    """One process to keep alive: `name` for messages, `main` to run. Higher stages start later and end earlier. One with a
    `watchdog` is ended when it hangs. `listening`: the sockets that it listens on."""

    def __init__(
        self,
        name: str,
        stage: int,
        main: Main,
        watchdog: CoordinatorWatchdog | None = None,
        listening: ListeningSockets | None = None,
    ) -> None:
        self.watchdog = watchdog
        self.listening = listening
        self.name = name
        self.stage = stage
        self.main = main
        self.pid = 0
        self.cannot_fork = False  # when it was last tried
        self.restarts = 0
        self.memory_kills = 0
        self.due_s = 0.0  # when to start it again, by time.monotonic
        self.backoff = Backoff()


class Supervisor:
    """Runs `children` until a signal of ENDING or AGAIN, or the end of its owner."""

    def __init__(
        self,
        children: list[Child],
        epochs: Epochs,
        *,
        tell: Callable[[str], None],
        board: RestartBoard | None = None,
        owner: Owner | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        """`tell` gets sentences for people; `board` is kept up to date, by the place of each child in `children`."""
        self._places = {child: place for place, child in enumerate(children)}
        self._children = sorted(children, key=lambda child: child.stage)
        self._epochs = epochs
        self._owner = owner or Owner()
        self._tell = tell
        self._board = board or RestartBoard(len(children))
        self._memory = memory or MemoryLimit()
        self._pid = os.getpid()
        self.starts_again = False
        """True if the signal that ended it was AGAIN."""

    def start(self, prepare: Callable[[int], None] = lambda stage: None) -> None:
        """Forks every child; `prepare(stage)` is called before the first of each stage, while the earlier ones start. SIGCHLD and
        the signals that end the cluster are held from here on, until `run` takes them.

        Raises OSError.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        for stage, children in groupby(self._children, key=lambda child: child.stage):
            prepare(stage)
            for child in children:
                self._fork(child)

    def pids(self) -> list[int]:
        """The processes that run now."""
        return [child.pid for child in self._children if child.pid]

    def run(self) -> int:
        """Restarts what dies until told to stop; returns the exit code 0."""
        look_s = time.monotonic()
        while True:
            due_s = min([look_s, *(child.due_s for child in self._children if not child.pid)])
            caught = wait_for(_WATCHED, max(0.0, due_s - time.monotonic()))
            if (caught and caught.si_signo != signal.SIGCHLD) or self._owner.has_ended():
                self.starts_again = caught is not None and caught.si_signo == AGAIN
                self.stop()
                return 0
            self._reap()
            if self._pid == 1:
                self._reap_strangers()
            for child in self._children:
                if not child.pid and child.due_s <= time.monotonic():
                    self._restart(child)
            if time.monotonic() >= look_s:
                look_s = time.monotonic() + LOOK_S
                self._end_hung(now_s=time.monotonic())

    def _end_hung(self, *, now_s: float) -> None:
        for child in self._children:
            if child.watchdog is not None and child.pid and child.watchdog.take_hung(child.pid, now_s=now_s):
                self._tell(f"{child.name} (pid {child.pid}) does not answer; ending it")
                self._signal(child, signal.SIGKILL)

    def _restart(self, child: Child) -> None:
        """Forks it. If that fails (the process table is full), `run` tries again soon."""
        try:
            if child.listening is not None:
                child.listening.open()
            self._fork(child)
        except OSError as fault:
            if child.listening is not None:
                child.listening.close()
            if not child.cannot_fork:
                self._tell(f"{child.name} can't be started: {fault.strerror}; trying again")
            child.cannot_fork = True
            self._delay(child, _RETRY_S)
        else:
            child.cannot_fork = False
            child.restarts += 1
            self._put(child, None)

    def _delay(self, child: Child, delay_s: float) -> None:
        child.due_s = time.monotonic() + delay_s
        self._put(child, child.due_s)

    def _put(self, child: Child, due_s: float | None) -> None:
        self._board.put(self._places[child], child.restarts, due_s, child.memory_kills)

    def stop(self) -> None:
        """Ends all children, the last stage first, as they still report to earlier ones; kills those that do not end in time.

        A second Ctrl-C meanwhile kills every process that still lives.
        """
        deadline = time.monotonic() + _STOP_S
        for stage in sorted({child.stage for child in self._children}, reverse=True):
            own = max(deadline, time.monotonic() + _LEAST_S)
            self._stop([child for child in self._children if child.stage == stage], own)
        self._epochs.end()

    def _stop(self, children: list[Child], deadline: float) -> None:
        for child in children:
            self._signal(child, signal.SIGTERM)
            self._signal(child, signal.SIGCONT)
        while any(child.pid for child in children):
            left = deadline - time.monotonic()
            if left <= 0:
                for child in children:
                    self._signal(child, signal.SIGKILL)
                left = _LEAST_S
            caught = wait_for({signal.SIGCHLD, signal.SIGINT}, min(left, 1.0))
            if caught and caught.si_signo == signal.SIGINT:
                self._tell("ending at once: killing what has not ended")
                for child in self._children:
                    self._signal(child, signal.SIGKILL)
            self._reap(ending=True)

    def _signal(self, child: Child, number: signal.Signals) -> None:
        if child.pid:
            os.kill(child.pid, number)

    def _reap(self, *, ending: bool = False) -> None:
        """Notes which children have ended; says so, and when each is started again, unless all are `ending`."""
        for child in self._children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            child.pid = 0
            if ending:
                continue
            how = _how(status)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and self._memory.claims():
                child.memory_kills += 1
                how = f"was killed for want of memory ({self._memory.describe()})"
            delay_s = child.backoff.delay_s(now_s=time.monotonic())
            self._delay(child, delay_s)
            if child.listening is not None and delay_s >= AWAY_S:
                child.listening.close()
            when = f" in {delay_s:.1f} s, as it keeps ending" if delay_s else ""
            self._tell(f"{child.name} (pid {pid}) {how}; starting it again{when}")

    def _reap_strangers(self) -> None:
        """zombies_are_reaped. Stops at a child of ours that has ended meanwhile: its SIGCHLD has `run` reap it and call again."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in self.pids():
                return
            os.waitpid(ended.si_pid, 0)

    def _fork(self, child: Child) -> None:
        epoch = self._epochs.next()
        if child.watchdog is not None:
            child.watchdog.started(now_s=time.monotonic())
        pid = os.fork()
        if pid:
            child.pid = pid
            child.backoff.started(now_s=time.monotonic())
            return
        code = 1
        try:
            die_with_parent(self._pid)
            # A terminal's Ctrl-C reaches its whole group; the order in which to end is the supervisor's to decide.
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that came before it had left the group
            signal.signal(signal.SIGINT, signal.default_int_handler)  # the handler that trio replaces by its own
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
            code = child.main(epoch)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        named = {each.value: each.name for each in signal.Signals}
        return f"was killed by {named.get(number, f'signal {number}')}"
    return f"ended with code {os.WEXITSTATUS(status)}"
