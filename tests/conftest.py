"""What every test folder shares: `tests/support` as plain imports, a quick Hypothesis profile, how tests share two cores.

Under `pytest -n N --dist loadgroup` (`make test`) three rules hold:

1. Tests that share a costly session fixture (Spark's JVM, Kafka's tools, the clients' clusters) run in one process.
   Each page of the documents is a group of its own, as it has a machine of its own.
2. Long groups begin first, and of files those with many tests, so that no core is idle at the end. Within a group, and among
   files of about as many tests, the order is random.
3. A test marked `timed` measures rates or delays on the real clock. It runs last, and nothing runs beside it but three others
   of its kind: they wait most of the time.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS / "support"))

# Mutants and doubles replace parts of modules, which those that are compiled do not look up: tests run the sources in their
# own process, unless TURNSTILE_COMPILED=1 is set. The clusters that they start run what users run.
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("TURNSTILE_COMPILED", os.environ.get("TURNSTILE_COMPILED", "0"))
    import shards  # noqa: F401 - which decides it

from admin_fixtures import api, start_api  # noqa: E402, F401 - importable only from here on; fixtures

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would every command that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

GROUPS = ("spark", "clients", "docs", "", "timed")
"""In the order in which they begin; "" stands for every file that is a group of its own."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Python's collector looks at what tests make alone: of half a million objects that are collected, all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def group_of(item: pytest.Item) -> str:
    """The group of a test, "" for the group of its file."""
    if item.get_closest_marker("timed"):
        return "timed"
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    folder = _file(item.path).partition(os.sep)[0]
    return folder if folder in ("clients", "docs") else ""


@cache
def _file(path: Path) -> str:
    """A file's path below tests: a file has hundreds of tests, and paths are slow to compare."""
    return os.path.relpath(path, TESTS)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Gives each test its group before xdist reads it, and sorts the groups after pytest-randomly has shuffled."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            file = _file(item.path)
            groups = {"docs": item.name, "timed": f"timed {file}", "": file}
            name = group_of(item)
            item.add_marker(pytest.mark.xdist_group(groups.get(name, name)))
    yield
    if "PYTEST_XDIST_WORKER" in os.environ and config.getoption("loadgroup", False) and items:
        assert all("@" in item.nodeid for item in items), "pytest-xdist does not keep groups in one process"
    sizes = Counter(_file(item.path) for item in items)
    items.sort(key=lambda item: _place(item, sizes))


def _place(item: pytest.Item, sizes: Counter[str]) -> tuple[int, int]:
    """By the order of groups, and of files that are groups of their own by the order of magnitude of their tests' number."""
    group = group_of(item)
    return GROUPS.index(group), 0 if group else -sizes[_file(item.path)].bit_length()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keeps `timed` tests apart from all others of this run, and lets no fifth one run beside four."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    if not item.get_closest_marker("timed"):
        _machine.share()
        return (yield)
    _machine.give_up()
    with _lane(), _sharing(GATE, behind=MACHINE):
        return (yield)


DOOR, GATE, MACHINE, *LANES = (
    TESTS / folder for folder in ("support", "shards", ".", "cluster", "broker", "turnstile", "clients")
)
"""Folders on which the processes of a run lock each other out. A `timed` test shares the gate. A process shares the machine from
its first other test until it comes to a `timed` one, or ends: kinds that take turns would leave a core idle at each turn. A
process that waits for either to be free has the door."""


class Machine:
    """The lock of this process on the machine."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._is_shared = False

    def share(self) -> None:
        if not self._is_shared:
            self._held.enter_context(_sharing(MACHINE, behind=GATE))
            self._is_shared = True

    def give_up(self) -> None:
        self._held.close()
        self._is_shared = False


_machine = Machine()


def pytest_sessionfinish() -> None:
    _machine.give_up()


@contextmanager
def _sharing(folder: Path, *, behind: Path) -> Iterator[None]:
    """Shares the lock of a folder, once nobody has that of another one."""
    door, other, lock = (os.open(each, os.O_RDONLY) for each in (DOOR, behind, folder))
    try:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_SH)
        fcntl.flock(other, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_UN)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
    finally:
        for each in (door, other, lock):
            fcntl.flock(each, fcntl.LOCK_UN)  # a process that the test has forked may have it open still
            os.close(each)


@contextmanager
def _lane() -> Iterator[None]:
    """One of LANES."""
    lanes = [os.open(each, os.O_RDONLY) for each in LANES]
    try:
        for lane in lanes:
            with suppress(BlockingIOError):
                fcntl.flock(lane, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            fcntl.flock(lanes[0], fcntl.LOCK_EX)
        yield
    finally:
        for lane in lanes:
            fcntl.flock(lane, fcntl.LOCK_UN)
            os.close(lane)
