"""A suite as the runner sees it: the source of its package, its build, and the reading of one run against a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "suites"

Outcome = Literal["pass", "again", "fail", "skip"]
"""`again`: it failed, and passed when it was run a second time."""
Results = dict[str, Outcome]
"""The outcome of each test, by its name in the suite."""


class Target(NamedTuple):
    """The target of a suite: "host:port,...", how many brokers that is, and an empty folder for what it leaves."""

    bootstrap: str
    brokers: int
    folder: Path


class Suite(NamedTuple):
    """`version` is that of the package. `prepare` fetches and builds, once; it raises CannotRun. `run` is given a word that the
    names of its tests must have, and how many seconds it may take: a test that has not ended by then has failed. `alone`:
    a test needs nothing that others have done."""

    name: str
    shown: str
    version: str
    prepare: Callable[[], None]
    run: Callable[[Target, str, float], Results]
    alone: bool = True


class CannotRun(Exception):
    """A part that a suite needs is not to be had; the message names it."""


def built(command: Sequence[str], cwd: Path, *, env: Mapping[str, str] | None = None) -> str:
    """Runs one step of a preparation and returns what it printed. Raises CannotRun with the end of what it said."""
    try:
        done = subprocess.run(
            command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=3600
        )
    except FileNotFoundError:
        raise CannotRun(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise CannotRun(f"{' '.join(command)} failed:\n{said}")
    return done.stdout


def limited(
    command: Sequence[str], output: Path, limit_s: float, *, cwd: Path, env: Mapping[str, str] | None = None
) -> bool:
    """Runs `command` with its output in a file; whether it ended by itself within `limit_s`. Its processes end with this call,
    however that is left."""
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        _RUNNING.add(process)
        try:
            process.wait(timeout=limit_s)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
            _RUNNING.discard(process)


_RUNNING: set[subprocess.Popen[bytes]] = set()


def end_all() -> None:
    """Ends what `limited` runs in other threads; those calls return."""
    for process in list(_RUNNING):
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and all of its session: a suite may have started others."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + 3
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    process.wait()
