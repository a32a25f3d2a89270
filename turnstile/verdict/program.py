"""The client under test: a command of the user's, its copies, and the CPU time that it asks for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO


class Program:
    """A command in a session of its own. `{bootstrap}` in its words, and $TURNSTILE_BOOTSTRAP, name the cluster."""

    def __init__(self, command: Sequence[str], bootstrap: str, output: IO[bytes]) -> None:
        """Raises OSError when there is no such command."""
        words = [word.replace("{bootstrap}", bootstrap) for word in command]
        environment = {**os.environ, "TURNSTILE_BOOTSTRAP": bootstrap}
        self._popen = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._popen.poll()

    def busy_s(self) -> float:
        """Time for which its threads have run, or were ready to and waited for a CPU: what a busy loop takes of a machine,
        also of one that has other things to do. Of it and of all processes that it has started and that are still there."""
        used_ns = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(stat.read_text().rpartition(")")[2].split()[3]) != self._popen.pid:  # its session
                    continue
                for thread in stat.parent.glob("task/*/schedstat"):
                    ran_ns, waited_ns, _ = map(int, thread.read_text().split())
                    used_ns += ran_ns + waited_ns
            except (FileNotFoundError, ProcessLookupError):
                continue
        return used_ns / 1e9

    def terminate(self) -> None:
        """SIGTERM, to it and what it has started."""
        self._signal(signal.SIGTERM)

    def wait(self, within_s: float) -> bool:
        """Whether it has ended by then."""
        deadline = time.monotonic() + within_s
        while self._popen.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._popen.poll() is not None

    def kill(self) -> None:
        """Ends it, whatever it does."""
        self._signal(signal.SIGKILL)
        self._popen.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._popen.pid, number)
        except ProcessLookupError:
            self._popen.poll()
