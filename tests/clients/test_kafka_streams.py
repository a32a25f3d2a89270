"""Kafka Streams 4.3 with `group.protocol=streams`, exactly once: an instance and the group's home are killed; counts stay exact."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, running, until

from scripts.peers import fetching, jars
from shards.ownership import home_of_coordinator_key

pytestmark = pytest.mark.jars

JAVA = Path(__file__).parent / "java" / "CountWords.java"
GROUP = "count-words"
SETTINGS = ("--set", "group.streams.min.heartbeat.interval.ms=200", "--set", "group.streams.heartbeat.interval.ms=300",
            "--set", "group.streams.min.session.timeout.ms=2000", "--set", "group.streams.session.timeout.ms=3000")  # fmt: skip


@pytest.fixture(scope="module")
def classpath() -> str:
    """Of Kafka Streams; skips where it can't be had."""
    try:
        return jars.streams_classpath()
    except fetching.Missing as missing:
        pytest.skip(str(missing))


class Application:
    """An instance: its states, as it tells them."""

    def __init__(self, classpath: str, cluster: Cluster, folder: Path) -> None:
        command = ["java", *jars.JVM_FLAGS, "-cp", classpath, str(JAVA)]
        self.states: list[str] = []
        self._java = subprocess.Popen(
            [*command, cluster.bootstrap, GROUP, "streams", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._java.stdout is not None
        for line in self._java.stdout:
            if line.startswith("state "):
                self.states.append(line.split()[1])

    def is_running(self) -> bool:
        return self.states[-1:] == ["RUNNING"]

    def kill(self) -> None:
        self._java.kill()
        self.end()

    def end(self) -> None:
        assert self._java.stdin is not None and self._java.stdout is not None
        self._java.stdin.close()
        try:
            self._java.wait(timeout=60)
        finally:
            self._java.kill()
            self._reader.join()
            self._java.stdout.close()


def say(bootstrap: str, said: Counter[str], count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        words = ["all", f"third-{number % 3}", f"seventh-{number % 7}"]
        said.update(words)
        producer.produce("lines", " ".join(words), key=str(number))
    assert producer.flush(30) == 0


def counts(consumer: Consumer, known: dict[str, int]) -> dict[str, int]:
    """The last count of each word that was committed so far."""
    for message in consumer.consume(1000, 0.5):
        assert message.error() is None
        known[message.key().decode()] = int(message.value())
    return known


def test_counts_are_exact_whichever_process_is_killed(classpath: str, tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    known: dict[str, int] = {}
    with running(tmp_path / "data", *SETTINGS, shards=2) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic("lines", 4), NewTopic("counts", 2)]).values():
            made.result()
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "isolation.level": "read_committed",
                             "auto.offset.reset": "earliest"})  # fmt: skip
        consumer.subscribe(["counts"])
        first, second = (Application(classpath, cluster, tmp_path / name) for name in ("first", "second"))
        try:
            until(lambda: first.is_running() and second.is_running(), within_s=60, what="both instances")
            say(cluster.bootstrap, said, 700)
            until(lambda: counts(consumer, known) == said, within_s=60, what="the first counts")
            os.kill(cluster.shard_pid(home_of_coordinator_key(GROUP, 1, 2)), signal.SIGKILL)
            say(cluster.bootstrap, said, 700)
            first.kill()
            say(cluster.bootstrap, said, 700)
            until(lambda: counts(consumer, known) == said, within_s=90, what="all counts, of one instance")
        finally:
            second.end()
            first.end()
            consumer.close()
        topics = set(admin.list_topics(timeout=10).topics)
        assert {f"{GROUP}-counts-changelog", f"{GROUP}-counts-repartition"} <= topics
