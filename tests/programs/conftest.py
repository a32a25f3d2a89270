"""Programs that stand on Kafka clients, each run from its package against Turnstile, throttled and capped for a while."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.peers import fetching, jars


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips before any fixture is made: those of a module install packages for minutes."""
    if item.get_closest_marker("long") and "TURNSTILE_ALL_PROGRAMS" not in os.environ:
        pytest.skip("takes a minute or more; `make programs` does it")


def _had(classpath: Callable[[], str]) -> str:
    try:
        return classpath()
    except fetching.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def streams() -> str:
    """The class path of Kafka Streams; skips where it can't be had."""
    return _had(jars.streams_classpath)


@pytest.fixture(scope="session")
def connect() -> str:
    """The class path of Kafka Connect and MirrorMaker 2; skips where it can't be had."""
    return _had(jars.connect_classpath)
