"""Where the suite's clients connect to, and what each part of the session takes.

SUITE_BROKER is turnstile (the pytest plugin, reset before each test), kfake, or kafka (one process for the session, as a
suite with testcontainers has it). SUITE_TIMES is the file for the times, SUITE_REPEAT how often the suite is repeated.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

BROKER = os.environ.get("SUITE_BROKER", "turnstile")
PARTITIONS = 4
SPENT = {"start": 0.0, "reset": 0.0, "client": 0.0, "tests": 0.0}
"""Seconds: of the cluster's start, of all resets, of what clients did, and tests that passed."""


class Place(NamedTuple):
    """The address for a test's clients, a topic of 4 partitions, and a group that no other test has."""

    bootstrap: str
    topic: str
    group: str

    def client(self, **more: Any) -> dict[str, Any]:
        """Settings of librdkafka that every client of the suite has."""
        settings = {"bootstrap.servers": self.bootstrap, "log_level": 0, "fetch.wait.max.ms": 20}
        return {**settings, **{name.replace("_", "."): value for name, value in more.items()}}


@pytest.fixture(scope="session")
def turnstile_options() -> dict[str, Any]:
    return {"limits": {"group.initial.rebalance.delay.ms": 0}}


@pytest.fixture(scope="session")
def peer() -> Iterator[str]:
    from scripts.peers import servers

    started = {"kfake": servers.kfake, "kafka": servers.kafka}[BROKER]
    with started() as server:
        yield server.bootstrap


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The first test starts the cluster, and every test resets it; a peer is started, and nothing else."""
    if BROKER != "turnstile":
        with timed("start"):
            return str(request.getfixturevalue("peer"))
    with timed("start"):
        request.getfixturevalue("turnstile_cluster")
    with timed("reset"):
        return str(request.getfixturevalue("turnstile").bootstrap)


@pytest.fixture
def place(bootstrap: str) -> Place:
    with timed("client"):
        name = uuid4().hex[:12]
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(f"orders-{name}", PARTITIONS, 1)])[f"orders-{name}"].result(30)
    return Place(bootstrap, f"orders-{name}", f"group-{name}")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Adds the time of a block to SPENT."""
    began = time.perf_counter()
    yield
    SPENT[what] += time.perf_counter() - began


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    repeat = int(os.environ.get("SUITE_REPEAT", "1"))
    if repeat > 1:
        metafunc.fixturenames.append("round_of_suite")
        metafunc.parametrize("round_of_suite", range(repeat))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        SPENT["client"] += report.duration
        SPENT["tests"] += report.passed


def pytest_sessionfinish() -> None:
    if "SUITE_TIMES" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        Path(os.environ["SUITE_TIMES"]).write_text(json.dumps(SPENT))
