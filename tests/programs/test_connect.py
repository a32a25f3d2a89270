"""Kafka Connect 4.3 distributed: a file source exactly once and a file sink, throttled, capped, and the source's worker killed."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import Cluster, running, until
from programs import Desk, Program, capped, connections, copy, throttled, wrong

from scripts.peers import jars
from scripts.peers.servers import free_port

pytestmark = [pytest.mark.jars, pytest.mark.long]

CONNECTIONS = 50
"""The most that two workers have to their only broker, with one source task and one sink task."""
WORKER = {
    "group.id": "connect", "exactly.once.source.support": "enabled", "plugin.discovery": "service_load",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "500", "scheduled.rebalance.max.delay.ms": "0", "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000", "offset.storage.partitions": "2", "status.storage.partitions": "2",
    **{f"{name}.storage.topic": f"connect-{name}s" for name in ("config", "offset", "status")},
    **{f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")},
}  # fmt: skip


class Worker:
    """A worker of the group, and its REST API."""

    def __init__(self, classpath: str, cluster: Cluster, folder: Path, name: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        settings = WORKER | {
            "bootstrap.servers": cluster.bootstrap,
            "listeners": f"http://{self.address}",
            "client.id": name,
        }
        properties = folder / f"{name}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = ["java", *jars.JVM_FLAGS, *jars.WARNINGS, "-cp", classpath, main, str(properties)]
        self.program = Program(command, folder / f"{name}.log")

    def ask(self, path: str, body: Mapping[str, str] | None = None) -> Any:
        """PUT with a body, else GET. Raises OSError."""
        request = urllib.request.Request(f"http://{self.address}{path}", method="PUT" if body else "GET")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, None if body is None else json.dumps(body).encode(), timeout=30) as answer:
            return json.load(answer)

    def tasks(self, connector: str) -> list[str]:
        """Where its tasks run that are running: addresses of workers."""
        told = self.ask(f"/connectors/{connector}/status")["tasks"]
        return [task["worker_id"] for task in told if task["state"] == "RUNNING"]


def start_connectors(worker: Worker, source: Path, sink: Path) -> None:
    kind = "org.apache.kafka.connect.file.FileStream"
    until(lambda: worker.ask("/connectors") == [], within_s=90, what="the worker's REST API")
    until(lambda: worker.ask("/connectors/source/config", {
        "connector.class": f"{kind}SourceConnector", "file": str(source), "topic": "lines", "exactly.once.support": "required",
    }), within_s=60, what="the source")  # fmt: skip
    until(lambda: worker.ask("/connectors/sink/config", {
        "connector.class": f"{kind}SinkConnector", "file": str(sink), "topics": "lines",
        "consumer.override.isolation.level": "read_committed",
    }), within_s=60, what="the sink")  # fmt: skip
    until(lambda: worker.tasks("source") and worker.tasks("sink"), within_s=60, what="their tasks")


def test_records_are_exact_from_file_to_file(connect: str, tmp_path: Path) -> None:
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.touch()

    def say(desk: Desk, numbers: range) -> None:
        desk.said.update(f"record-{number}" for number in numbers)
        with source.open("a") as file:
            file.writelines(f"record-{number}\n" for number in numbers)

    def written() -> Counter[str]:
        return Counter(sink.read_text().splitlines())

    with (
        running(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0", shards=2) as cluster,
        Desk(cluster.bootstrap, {"lines": 2}) as desk,
    ):
        workers = [Worker(connect, cluster, tmp_path, name) for name in ("first", "second")]
        try:
            start_connectors(workers[0], source, sink)
            say(desk, range(300))
            desk.until_exact("lines", copy)
            until(lambda: not wrong(desk.said, written()), within_s=60, what="the sink's file")
            assert connections(cluster)[0] <= CONNECTIONS
            with throttled(cluster, 300):
                say(desk, range(300, 600))
            desk.until_exact("lines", copy)
            with capped(cluster, CONNECTIONS // 4):
                for shard in (0, 1):
                    os.kill(cluster.shard_pid(shard), signal.SIGKILL)
                say(desk, range(600, 900))
            desk.until_exact("lines", copy)
            # A sink writes a record again whose offset it could not commit, as its group began anew with its shard.
            until(lambda: desk.said.keys() <= written().keys(), within_s=60, what="the sink's file, after the kills")
            killed = next(each for each in workers if each.address in workers[0].tasks("source"))
            killed.program.kill()
            workers.remove(killed)
            say(desk, range(900, 1200))
            desk.until_exact("lines", copy, within_s=90)
            until(lambda: desk.said.keys() <= written().keys(), within_s=60, what="all records in the sink's file")
            assert written().keys() == desk.said.keys()
        finally:
            for each in workers:
                each.program.end(by_signal=True)
        desk.until_exact("lines", copy)
