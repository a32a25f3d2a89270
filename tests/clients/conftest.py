"""Clusters and Kafka's tools for the tests with real clients.

CLIENTS_PEER=kafka or CLIENTS_PEER=kfake runs the same tests against a real Kafka 4.1 or kfake instead, which shows
that a test asks for what Kafka does, and not for what Turnstile does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from harness import running

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from scripts.peers import fetching, jars, servers  # noqa: E402 - importable only from here on

PEER = os.environ.get("CLIENTS_PEER")


class Target(NamedTuple):
    """Where the clients of a test connect to."""

    bootstrap: str
    brokers: int


@pytest.fixture(scope="session")
def two_shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One broker of two shards, for the whole session."""
    if PEER is not None:
        with servers.kafka() if PEER == "kafka" else servers.kfake() as server:
            yield Target(server.bootstrap, 1)
        return
    with running(tmp_path_factory.mktemp("two-shards") / "data", brokers=1, shards=2) as cluster:
        yield Target(cluster.bootstrap, 1)


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Three brokers of one shard each, for the whole session."""
    if PEER == "kafka":
        pytest.skip("the real Kafka has one broker here")
    if PEER == "kfake":
        with servers.kfake(3) as server:
            yield Target(server.bootstrap, 3)
        return
    with running(tmp_path_factory.mktemp("three-brokers") / "data", brokers=3, shards=1) as cluster:
        yield Target(cluster.bootstrap, 3)


@pytest.fixture(params=["two_shards", "three_brokers"])
def target(request: pytest.FixtureRequest) -> Target:
    """The test runs on each kind of cluster."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def jvm() -> Iterator[jars.Tools]:
    """Kafka's tools, in one JVM; the test is skipped where Maven or a JDK is missing."""
    try:
        with jars.Tools() as tools:
            yield tools
    except fetching.Missing as missing:
        pytest.skip(str(missing))


class Tool(NamedTuple):
    """Runs Kafka's tools against one cluster."""

    run: Callable[..., jars.Ran]
    bootstrap: str

    def __call__(self, tool: str, *args: str, stdin: str = "", expect: int = 0) -> str:
        """What the tool printed; asserts its exit code."""
        option = ("--bootstrap-server", self.bootstrap)
        ran = self.run(tool, *args, *(() if tool == "kafka-producer-perf-test" else option), stdin=stdin)
        assert ran.code == expect, f"{tool} {' '.join(args)}: exit {ran.code}\n{ran.out}\n{ran.err}"
        return ran.out + ran.err


@pytest.fixture
def tool(jvm: jars.Tools, two_shards: Target) -> Tool:
    """Kafka's tools against the cluster of two shards."""
    return Tool(jvm, two_shards.bootstrap)


@pytest.fixture
def topic() -> str:
    """A name no other test uses."""
    return f"topic-{uuid4().hex[:12]}"
