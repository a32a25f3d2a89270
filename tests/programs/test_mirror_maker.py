"""MirrorMaker 2 of Kafka 4.3, exactly once, between two clusters: throttled, capped, shards of both and its workers killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Message, TopicPartition
from harness import Cluster, running, until
from programs import Desk, Program, capped, connections, copy, throttled

from scripts.peers import jars
from scripts.peers.servers import free_port

pytestmark = [pytest.mark.jars, pytest.mark.long]

COPIES, GROUP = "source.lines", "readers"
FROM_SOURCE, TO_TARGET = 12, 72
"""The most connections that two workers have to the only broker of the source, and to that of the target."""
SETTINGS = {
    "clusters": "source, target",
    "source->target.enabled": "true", "target->source.emit.heartbeats.enabled": "false",
    "topics": "lines", "groups": GROUP, "replication.factor": "1",
    "target.exactly.once.source.support": "enabled", "dedicated.mode.enable.internal.rest": "true",
    "source.consumer.isolation.level": "read_committed", "sync.topic.acls.enabled": "false",
    "sync.group.offsets.enabled": "true", "offset.lag.max": "0", "offset.flush.interval.ms": "500",
    "target.scheduled.rebalance.max.delay.ms": "0",
    "offset.storage.partitions": "2", "status.storage.partitions": "2",
    **{f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")},
    **{f"{name}.topic.replication.factor": "1" for name in ("checkpoints", "heartbeats", "offset-syncs")},
    **{f"{name}.interval.seconds": "1" for name in
       ("refresh.topics", "refresh.groups", "emit.checkpoints", "emit.heartbeats", "sync.group.offsets")},
}  # fmt: skip


def worker(classpath: str, source: Cluster, target: Cluster, folder: Path, name: str) -> Program:
    ends = {"source.bootstrap.servers": source.bootstrap, "target.bootstrap.servers": target.bootstrap}
    settings = SETTINGS | ends | {"listeners": f"http://127.0.0.1:{free_port()}"}
    properties = folder / f"{name}.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = ["java", *jars.JVM_FLAGS, *jars.WARNINGS, "-cp", classpath, main, str(properties)]
    return Program(command, folder / f"{name}.log")


class Positions:
    """After the last record of each partition that was read, its copies counted."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}

    def take(self, got: Counter[str], message: Message) -> None:
        copy(got, message)
        self.next[message.partition()] = message.offset() + 1


def say(desk: Desk, numbers: range) -> None:
    for number in numbers:
        desk.said[f"record-{number}"] += 1
        desk.produce("lines", f"record-{number}", key=str(number))


def commit(desk: Desk, positions: Mapping[int, int]) -> None:
    """As an operator sets the offsets of a group without members."""
    offsets = [TopicPartition("lines", *each) for each in positions.items()]
    (altered,) = desk.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, offsets)]).values()
    altered.result(timeout=30)


def committed(desk: Desk) -> dict[int, int]:
    """What the group has of the copies, by partition."""
    (listed,) = desk.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)]).values()
    return {each.partition: each.offset for each in listed.result(timeout=30).topic_partitions if each.topic == COPIES}


def test_copies_and_offsets_of_groups_are_exact_in_another_cluster(connect: str, tmp_path: Path) -> None:
    options, originals, positions = ("--set", "group.initial.rebalance.delay.ms=0"), Positions(), Positions()
    with (
        running(tmp_path / "source", *options, shards=2) as source,
        running(tmp_path / "target", *options, shards=2) as target,
        Desk(source.bootstrap, {"lines": 2}) as desk,
        Desk(target.bootstrap, {}) as copies,
    ):
        copies.said = desk.said
        workers = {name: worker(connect, source, target, tmp_path, name) for name in ("first", "second")}
        try:
            say(desk, range(300))
            copies.until_exact(COPIES, positions.take, within_s=180)
            assert connections(source)[0] <= FROM_SOURCE and connections(target)[0] <= TO_TARGET
            with throttled(source, 300), throttled(target, 300):
                say(desk, range(300, 600))
            copies.until_exact(COPIES, positions.take, within_s=180)
            with capped(source, 1, refusals=5), capped(target, TO_TARGET // 4):  # the one is the desk's
                for cluster in (source, target):
                    for shard in (0, 1):
                        os.kill(cluster.shard_pid(shard), signal.SIGKILL)
                say(desk, range(600, 900))
            copies.until_exact(COPIES, positions.take, within_s=180)
            for killed, started in (("first", "third"), ("second", "fourth")):  # one of them has the task that copies
                workers[started] = worker(connect, source, target, tmp_path, started)
                workers.pop(killed).kill()
                say(desk, range(900, 1200))
                copies.until_exact(COPIES, positions.take, within_s=180)
            desk.until_exact("lines", originals.take)
            commit(desk, originals.next)
            until(lambda: committed(copies) == positions.next, within_s=60, what="the group's offsets in the target")
        finally:
            for each in workers.values():
                each.end(by_signal=True)
        copies.until_exact(COPIES, positions.take)
