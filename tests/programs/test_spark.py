"""Spark's structured streaming from Kafka to Kafka: throttled, capped, a shard and its JVM killed; counts stay exact."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Cluster, running
from programs import Desk, Program, capped, connections, last_count, throttled

from scripts.peers import environments, fetching, jars

pytestmark = [pytest.mark.jars, pytest.mark.long]

CONNECTIONS = 14
"""The most that a query of four partitions has to its only broker."""
PROGRAM = Path(__file__).parent / "count_words_spark.py"


@pytest.fixture(scope="module")
def command() -> list[str]:
    """A Python with pyspark; skips where it or the connector can't be had."""
    try:
        return [environments.python("spark"), str(PROGRAM), *jars.spark_kafka_jars()]
    except fetching.Missing as missing:
        pytest.skip(str(missing))


@contextmanager
def query(command: list[str], cluster: Cluster, folder: Path, name: str) -> Iterator[int]:
    """A run of the query, as the process id of its JVM, which ends with the Python that drives it. The next one in the same
    folder goes on from its checkpoint."""
    python, program, *connector = command
    log = folder / f"{name}.log"
    with Program([python, program, cluster.bootstrap, str(folder / "query"), *connector], log) as run:
        run.until_said("jvm ", within_s=180)
        yield next(int(line.split()[1]) for line in run.log.splitlines() if line.startswith("jvm "))


def say(desk: Desk, count: int) -> None:
    for number in range(count):
        words = ["all", f"third-{number % 3}", f"seventh-{number % 7}"]
        desk.said.update(words)
        desk.produce("lines", " ".join(words), key=str(number))


def test_counts_are_exact_after_limits_and_kills(command: list[str], tmp_path: Path) -> None:
    with (
        running(tmp_path / "data", shards=2) as cluster,
        Desk(cluster.bootstrap, {"lines": 4, "counts": 2}) as desk,
    ):
        with query(command, cluster, tmp_path, "first") as jvm:
            say(desk, 300)
            desk.until_exact("counts", last_count, within_s=180)
            assert connections(cluster)[0] <= CONNECTIONS
            with throttled(cluster, 100):  # of each client id, and each partition is read by one of its own
                say(desk, 300)
            desk.until_exact("counts", last_count, within_s=180)
            with capped(cluster, 1):  # the one is the desk's
                for shard in (0, 1):
                    os.kill(cluster.shard_pid(shard), signal.SIGKILL)
                say(desk, 300)
            desk.until_exact("counts", last_count, within_s=180)
            say(desk, 300)
            os.kill(jvm, signal.SIGKILL)
        with query(command, cluster, tmp_path, "second"):
            say(desk, 300)
            desk.until_exact("counts", last_count, within_s=180)
        desk.until_exact("counts", last_count)
