"""Java's share consumer and Kafka's tools with share groups (KIP-932), also after their shards were killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import IO

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, running, until

from scripts.peers import jars

pytestmark = pytest.mark.jars
PARTITIONS = 2
QUICK = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.session.timeout.ms": 8000,
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Iterator[Cluster]:
    """Three brokers; members heartbeat five times a second."""
    options = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    with running(tmp_path_factory.mktemp("shares") / "data", *options, brokers=3, shards=1) as cluster:
        yield cluster


class Members:
    """Console share consumers, whose lines are read as they come."""

    def __init__(self, cluster: Cluster, topic: str, count: int) -> None:
        command = [
            "java", *jars.JVM_FLAGS, "-cp", jars.classpath(), jars.MAINS["kafka-console-share-consumer"],
            "--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group", topic,
        ]  # fmt: skip
        self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]

    @property
    def lines(self) -> IO[str]:
        out = self.processes[0].stdout
        assert out is not None
        return out

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.communicate(timeout=30)


def produce(bootstrap: str, topic: str, first: int, last: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(first, last):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_javas_consumer_and_tools_and_shards_that_die(quick, topic, jvm):
    def tool(name: str, *args: str) -> str:
        done = jvm(name, "--bootstrap-server", quick.bootstrap, *args)
        assert done.code == 0, done
        return done.out

    def groups(*args: str) -> str:
        return tool("kafka-share-groups", *args)

    def offsets() -> list[tuple[str, ...]]:
        """(partition, start offset, lag or nothing) of each row of --describe."""
        rows = [line.split() for line in groups("--describe", "--group", topic).splitlines() if line.startswith(topic)]
        return sorted(tuple(row[2:4]) for row in rows)

    admin = AdminClient({"bootstrap.servers": quick.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(timeout=30)
    of_group = ("--entity-type", "groups", "--entity-name", topic)
    tool("kafka-configs", "--alter", *of_group, "--add-config", "share.auto.offset.reset=earliest")
    assert "share.auto.offset.reset=earliest" in tool("kafka-configs", "--describe", *of_group)
    produce(quick.bootstrap, topic, 0, 40)
    member = Members(quick, topic, 1)
    try:
        assert {member.lines.readline().strip() for _ in range(40)} == {str(n) for n in range(40)}
        assert topic in groups("--list").splitlines()
        assert re.search(rf"^{topic}\s+Share\s+share\b", tool("kafka-groups", "--list"), re.MULTILINE)
        assert re.search(rf"{topic}\s.*Stable\s+1", groups("--describe", "--group", topic, "--state"))
        assert f"{topic}:0,1" in groups("--describe", "--group", topic, "--members")
        until(lambda: offsets() == [("0", "20"), ("1", "20")], within_s=30, what="all was acknowledged")
        for each in quick.get("/v1/shards")["shards"]:
            pid, place = each["pid"], (each["shard"], each["broker"])
            os.kill(pid, signal.SIGKILL)
            until(
                lambda pid=pid, place=place: quick.shard_pid(*place) not in (0, pid),
                within_s=30,
                what="another process",
            )
        epoch = re.search(rf"{topic}\s.*Stable\s+1", groups("--describe", "--group", topic, "--state"))
        assert epoch is not None  # the member is known
        produce(quick.bootstrap, topic, 40, 80)
        assert {member.lines.readline().strip() for _ in range(40)} == {str(n) for n in range(40, 80)}
    finally:
        member.close()
    until(lambda: "Empty" in groups("--describe", "--group", topic, "--state"), within_s=30, what="an empty group")
    groups("--delete-offsets", "--group", topic, "--topic", topic)
    assert offsets() == []
    groups("--delete", "--group", topic)
    assert topic not in groups("--list").splitlines()
