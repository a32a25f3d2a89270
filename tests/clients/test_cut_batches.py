"""Every client library reads on behind a batch that Fetch has cut, and sees each record once."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka import TopicPartition as PlainPartition

COUNT, MOST_BYTES = 60, 50_000
VALUES = [b"%04d" % number + b"x" * 30_000 for number in range(COUNT)]
"""A batch each, of which a fetch has one and a piece of the next."""


@pytest.fixture
def filled(target, topic):
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": target.bootstrap})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
    return topic


def test_librdkafka_reads_all_of_cut_batches(target, filled):
    with Consumer(
        {"bootstrap.servers": target.bootstrap, "group.id": filled, "fetch.message.max.bytes": MOST_BYTES}
    ) as consumer:
        consumer.assign([TopicPartition(filled, 0, 0)])
        values: list[bytes | None] = []
        while len(values) < COUNT:
            message = consumer.poll(30)
            assert message is not None and message.error() is None
            values.append(message.value())
    assert values == VALUES


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_reads_all_of_cut_batches(target, filled):
    consumer = KafkaConsumer(
        bootstrap_servers=target.bootstrap,
        max_partition_fetch_bytes=MOST_BYTES,
        consumer_timeout_ms=30_000,
        auto_offset_reset="earliest",
    )
    consumer.assign([PlainPartition(filled, 0)])
    values = [message.value for _, message in zip(VALUES, consumer, strict=False)]
    consumer.close()
    assert values == VALUES


def test_aiokafka_reads_all_of_cut_batches(target, filled):
    async def consume() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=target.bootstrap,
            max_partition_fetch_bytes=MOST_BYTES,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.assign([AioPartition(filled, 0)])
        await consumer.start()
        values = [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in VALUES]
        await consumer.stop()
        return values

    assert asyncio.run(consume()) == VALUES


@pytest.mark.jars
def test_java_reads_all_of_cut_batches(jvm, target, filled):
    ran = jvm(
        "kafka-console-consumer", "--bootstrap-server", target.bootstrap, "--topic", filled, "--from-beginning",
        "--max-messages", str(COUNT), "--timeout-ms", "30000",
        "--command-property", f"max.partition.fetch.bytes={MOST_BYTES}",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert [line.encode() for line in ran.out.splitlines()][:COUNT] == VALUES
