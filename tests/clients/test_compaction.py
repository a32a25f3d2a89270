"""Compacted topics with real clients: the last value of each key is read at its offset, and a shard that is killed costs none."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, running, until

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka import TopicPartition as PlainPartition

KEYS, ROUNDS = 20, 15
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIGS = {
    "cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
}  # fmt: skip
Left = dict[bytes, tuple[int, bytes | None]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("compaction") / "data", "--set", "log.cleaner.backoff.ms=100") as cluster:
        yield cluster


def filled(cluster: Cluster, topic: str, codecs: Sequence[str], rounds: int = ROUNDS) -> Left:
    """Where the last record of each key is; values that no codec makes small."""
    left: Left = {}

    def placed(error, message):
        assert error is None
        before = left.get(message.key(), (-1, None))
        left[message.key()] = max(before, (message.offset(), message.value()), key=lambda each: each[0])

    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 50}
    producers = {codec: Producer(settings | {"compression.type": codec}) for codec in codecs}
    for turn in range(rounds):
        for codec, producer in producers.items():
            for key in range(KEYS):
                value = None if turn == rounds - 2 and key % 3 == 0 else os.urandom(900)
                if turn < rounds - 1 or key % 3 == 1:
                    producer.produce(topic, value, f"{codec} {key}", partition=0, on_delivery=placed)
            assert producer.flush(60) == 0
    for _ in range(1300):  # what comes last stays in the active segment
        producer.produce(topic, os.urandom(900), "filler", partition=0, on_delivery=placed)
    assert producer.flush(60) == 0
    return left


def by_librdkafka(cluster: Cluster, topic: str) -> list[tuple[int, bytes, bytes | None]]:
    """Everything there is to read."""
    found = []
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "enable.partition.eof": True}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                return found
            found.append((message.offset(), message.key(), message.value()))


def is_clean(cluster: Cluster, topic: str) -> bool:
    directory = Path(cluster.data_dir) / "b0" / "topics" / f"{topic}-0"
    closed = sorted(path.name for path in directory.glob("*.log"))[:-1]
    return all("-" in name for name in closed)


def test_the_last_value_of_each_key_is_read_at_its_offset(cluster, topic):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=CONFIGS)])[topic].result(30)
    left = filled(cluster, topic, CODECS)
    until(lambda: is_clean(cluster, topic), within_s=60, what="a cleaning")
    read = by_librdkafka(cluster, topic)
    assert {key: (offset, value) for offset, key, value in read} == left
    offsets = [offset for offset, _, _ in read]
    assert offsets == sorted(offsets)
    assert len([key for _, key, _ in read if key != b"filler"]) == KEYS * len(CODECS)
    assert asyncio.run(by_aiokafka(cluster, topic, len(read))) == offsets


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def by_kafka_python(cluster: Cluster, topic: str, count: int) -> list[int]:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, consumer_timeout_ms=30_000, auto_offset_reset="earliest"
    )
    consumer.assign([PlainPartition(topic, 0)])
    offsets = [message.offset for _, message in zip(range(count), consumer, strict=False)]
    consumer.close()
    return offsets


async def by_aiokafka(cluster: Cluster, topic: str, count: int) -> list[int]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.assign([AioPartition(topic, 0)])
    await consumer.start()
    offsets = [(await asyncio.wait_for(consumer.getone(), 30)).offset for _ in range(count)]
    await consumer.stop()
    return offsets


def test_shards_that_are_killed_again_and_again_cost_no_value(cluster, topic):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=CONFIGS)])[topic].result(30)
    left: Left = {}
    for turn in range(2):
        left |= filled(cluster, topic, ["gzip"])
        os.kill(cluster.shard_pid(turn % 2), signal.SIGKILL)
    until(lambda: is_clean(cluster, topic), within_s=60, what="a cleaning")
    read = by_librdkafka(cluster, topic)
    assert {key: (offset, value) for offset, key, value in read} == left
    assert by_kafka_python(cluster, topic, len(read)) == [offset for offset, _, _ in read]
    assert cluster.get("/v1/damaged")["damaged"] == []
