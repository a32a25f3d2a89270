"""Commands that fetch from a package registry: one that does not answer costs two minutes, once.

bounded  A command and all that it starts end within FETCH_S, whatever the registry does.
not_asked_again  What failed once in this process fails at once afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FETCH_S = 120
"""The time in which a command fetches and, as `pip install` does, unpacks."""
MAVEN = "-Dmaven.wagon.rto=20000 -Daether.connector.requestTimeout=20000"
"""MAVEN_OPTS that end a download of which nothing comes for 20 s: Maven 3.8 itself waits for half an hour."""


class Missing(Exception):
    """A part that a peer needs is not on this machine; the message names it, in words fit for a skipped test."""


_problems: dict[tuple[tuple[str, ...], Path | None], str] = {}
"""What has failed in this process: a command in its folder, and why."""


def fetch(command: Sequence[str | Path], folder: Path | None = None, *, prefix: str = "") -> None:
    """Runs a command in a folder, and once more where it fails at first. Raises Missing; its message begins with `prefix`."""
    words = tuple(map(str, command))
    problem = _problems.get((words, folder)) or _problem(words, folder)
    if problem:
        _problems[words, folder] = problem
        raise Missing(prefix + problem)


def _problem(command: tuple[str, ...], folder: Path | None) -> str:
    """The reason for which the command failed, "" if it passed."""
    program = Path(command[0]).name
    options = " ".join(filter(None, (os.environ.get("MAVEN_OPTS"), MAVEN)))
    for _ in range(2):
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "MAVEN_OPTS": options}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=FETCH_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"{program} does not end within {FETCH_S} s"
        if process.returncode == 0:
            return ""
    lines = said.strip().splitlines() or ["no output"]
    return f"{program} failed: {next((line for line in lines if 'ERROR' in line or 'error' in line), lines[-1])}"
