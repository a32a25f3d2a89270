"""The processes of a `turnstile.Cluster`: the program runs `turnstile up` as a child process.

no_process_left  When the constructor raises, and when `stop` returns, no process of the cluster is left, and no temporary
    folder.
cluster_ends_with_program  The cluster watches the program's pid and ends with the program, however the program ends, even if
    forks of it live on. Ctrl-C in a terminal reaches the program alone: the cluster serves until the program stops it.
options_alone_count  Only the options configure a cluster; the environment variables of `turnstile up` (TURNSTILE_UP_*) do not.
forks_do_not_keep_clusters  A fork of the program can use the cluster. It neither ends the cluster nor keeps it alive, as it
    closes its copy of the pipe.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_STOP_WITHIN_S = 15.0
_REMOVED_WITHIN_S = 5.0


class ClusterError(Exception):
    """The cluster did not start, or is not running; `str()` says why."""


class ClusterProcess:
    """A cluster that has started. `told`: the JSON that `turnstile up --json` printed: `admin`, `listeners`, `data_dir`, ..."""

    def __init__(self, options: Sequence[str], *, keeps_data: bool) -> None:
        """`options` of `turnstile up`; returns when every shard accepts connections. Raises ClusterError."""
        self._keeps_data = keeps_data
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it is open as long as the cluster
        # -P: Python must not import from a folder broker or shards in the caller's working directory.
        command = [sys.executable, "-P", "-m", "turnstile.entry", "up", "--json", "--end-with-stdin"]
        command += ["--end-with-pid", str(self._owner), *options]
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=_environment(),
            process_group=0,
        )  # fmt: skip
        _processes.add(self)
        self.told: dict[str, Any] = {}
        try:
            self.told = self._first_word()
        except BaseException:
            self.stop()
            raise

    def _first_word(self) -> dict[str, object]:
        """The JSON that the cluster prints when it has started. Raises ClusterError if it did not start."""
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        started = _json(line)
        if "admin" not in started:
            why = _json(line + self._popen.stdout.read()).get("error")
            self._popen.wait()
            raise ClusterError(why or self._said() or "the cluster ended before it answered")
        return started

    def ended(self) -> str | None:
        """The reason why the cluster has ended; None while it runs. A fork of the program cannot know, and gets None."""
        if os.getpid() != self._owner or self._popen.poll() is None:
            return None
        return self._said() or f"exit code {self._popen.returncode}"

    def stop(self) -> None:
        """Ends the cluster in order, or kills it after _STOP_WITHIN_S. In a fork of the program it does nothing."""
        if os.getpid() != self._owner:
            return
        self._popen.send_signal(signal.SIGTERM)
        try:
            self._popen.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._errors):
            assert stream is not None
            stream.close()
        if self.told and not self._keeps_data:
            _remove(Path(self.told["data_dir"]))

    def close_copy(self) -> None:
        """Called in a fork: closes its copy of the pipe whose end ends the cluster (forks_do_not_keep_clusters)."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def _said(self) -> str:
        """The lines that the cluster wrote to its standard error, without the name of the command."""
        self._errors.seek(0)
        return self._errors.read().strip().removeprefix("turnstile: ")


def _remove(folder: Path) -> None:
    """Removes the temporary folder of a cluster. It tries again for a while, as ending processes may still write there."""
    deadline = time.monotonic() + _REMOVED_WITHIN_S
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.005)


def _environment() -> dict[str, str]:
    own = ("TURNSTILE_UP_", "TURNSTILE_ADMIN_TOKEN", "TURNSTILE_NAME")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def _json(text: str) -> dict[str, Any]:
    """The JSON object in a text; {} if the text has none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _close_copies() -> None:
    for process in list(_processes):
        process.close_copy()


_processes: weakref.WeakSet[ClusterProcess] = weakref.WeakSet()
os.register_at_fork(after_in_child=_close_copies)
