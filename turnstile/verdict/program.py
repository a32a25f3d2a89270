"""The client under test: a command of the user's, its copies, and the CPU time that it asks for.

nothing_left_of_a_mark  After `end_all(mark)` nothing is left of the programs that had the mark, nor of what these have
    started, in whatever session: the mark is a variable of the environment, which a process inherits.
programs_end_with_their_thread  A program does not outlive the thread that started it, even if that is killed
    (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from shards.supervisor.parent_death import die_with_parent
from turnstile.verdict.judged import CannotJudge, CpuTime

_MARK = "TURNSTILE_VERDICT_PROGRAM"
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_LOOK_S = 0.01
_KILLED_WITHIN_S = 2.0


class Program:
    """A command in a session of its own. `{bootstrap}` in its words, and $TURNSTILE_BOOTSTRAP, name the cluster."""

    def __init__(self, command: Sequence[str], bootstrap: str, output: int, mark: str) -> None:
        """`output`: a descriptor. Raises CannotJudge when the command can't be run."""
        words = [word.replace("{bootstrap}", bootstrap) for word in command]
        environment = {**os.environ, "TURNSTILE_BOOTSTRAP": bootstrap, _MARK: mark}
        try:
            self._popen = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )  # fmt: skip
        except OSError as fault:
            raise CannotJudge(f"{words[0]} can't be run: {fault.strerror}") from None

    def exit_code(self) -> int | None:
        """None while the program runs, or another process of its session."""
        code = self._popen.poll()
        return None if code is None or any(self._session()) else code

    def busy_s(self) -> CpuTime:
        """The time for which the threads of its session have run, and for which they were ready and waited for a CPU: together what
        a busy loop takes of a machine, even of a busy one. Processes that have ended do not count."""
        ran_ns = waited_ns = 0
        for process in self._session():
            for thread in process.glob("task/*/schedstat"):
                with suppress(*_GONE):
                    ran, waited, _ = map(int, thread.read_text().split())
                    ran_ns, waited_ns = ran_ns + ran, waited_ns + waited
        return CpuTime(ran_ns / 1e9, waited_ns / 1e9)

    def terminate(self) -> None:
        """Sends SIGTERM to the program and to what it has started."""
        with suppress(*_GONE):
            os.killpg(self._popen.pid, signal.SIGTERM)

    def wait(self, within_s: float) -> bool:
        """True if it has ended by then."""
        deadline = time.monotonic() + within_s
        while self.exit_code() is None and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self.exit_code() is not None

    def kill(self) -> None:
        """Kills every process of its session."""
        _kill(self._session)
        self._popen.poll()

    def _session(self) -> Iterator[Path]:
        """The folders in /proc of the processes that run in its session."""
        for process in _processes():
            with suppress(*_GONE):
                state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self._popen.pid and state not in "ZX":
                    yield process


def end_all(mark: str) -> None:
    """Kills what is left of the programs with a mark."""
    variable = f"{_MARK}={mark}".encode()

    def marked() -> Iterator[Path]:
        for process in _processes():
            with suppress(*_GONE):
                if variable in (process / "environ").read_bytes().split(b"\0"):
                    yield process

    _kill(marked)


def _kill(wanted: Callable[[], Iterator[Path]]) -> None:
    """Kills until none is left, as a process that is being killed may start others; gives up after _KILLED_WITHIN_S."""
    deadline = time.monotonic() + _KILLED_WITHIN_S
    while left := list(wanted()):
        for process in left:
            with suppress(*_GONE):
                os.kill(int(process.name), signal.SIGKILL)
        if time.monotonic() > deadline:  # another user's
            return
        time.sleep(_LOOK_S)


def _processes() -> Iterator[Path]:
    return Path("/proc").glob("[0-9]*")
