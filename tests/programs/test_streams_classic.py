"""Kafka Streams 4.3 on classic groups, exactly once: throttled, capped, a shard and an instance killed; counts stay exact."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness import Cluster, running, until
from programs import Desk, Program, capped, connections, last_count, throttled

from scripts.peers import jars

pytestmark = [pytest.mark.jars, pytest.mark.long]

JAVA = Path(__file__).parents[1] / "clients" / "java" / "CountWords.java"
CONNECTIONS = 16
"""The most that an instance of two stream threads has to its only broker: each thread 3 of its producer, 3 of its consumer, and
2 of the consumer that restores its state."""


def instance(classpath: str, cluster: Cluster, folder: Path) -> Program:
    command = ["java", *jars.JVM_FLAGS, *jars.WARNINGS, "-cp", classpath, str(JAVA)]
    return Program([*command, cluster.bootstrap, "count-words", "classic", str(folder)], folder.with_suffix(".log"))


def is_running(program: Program) -> bool:
    states = [line.split()[1] for line in program.log.splitlines() if line.startswith("state ")]
    return states[-1:] == ["RUNNING"]


def say(desk: Desk, count: int) -> None:
    for number in range(count):
        words = ["all", f"third-{number % 3}", f"seventh-{number % 7}"]
        desk.said.update(words)
        desk.produce("lines", " ".join(words), key=str(number))


def test_counts_are_exact_after_limits_and_kills(streams: str, tmp_path: Path) -> None:
    with (
        running(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0", shards=2) as cluster,
        Desk(cluster.bootstrap, {"lines": 4, "counts": 2}) as desk,
    ):
        first, second = (instance(streams, cluster, tmp_path / name) for name in ("first", "second"))
        try:
            until(lambda: is_running(first) and is_running(second), within_s=90, what="both instances")
            say(desk, 300)
            desk.until_exact("counts", last_count)
            assert connections(cluster)[0] <= 2 * CONNECTIONS
            with throttled(cluster, 400):
                say(desk, 300)
            desk.until_exact("counts", last_count)
            with capped(cluster, CONNECTIONS):
                for shard in (0, 1):
                    os.kill(cluster.shard_pid(shard), signal.SIGKILL)
                say(desk, 300)
            first.kill()
            say(desk, 300)
            desk.until_exact("counts", last_count, within_s=90)
        finally:
            second.end()
            first.kill()
        desk.until_exact("counts", last_count)
