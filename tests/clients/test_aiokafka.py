"""aiokafka: asyncio, and a protocol code base of its own."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from workload import PARTITIONS, RECORDS, Member, Members, assert_committed_to_the_end, value


async def create(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    await admin.close()


async def produce(bootstrap: str, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, max_batch_size=65536)
    await producer.start()
    sent = [await producer.send(topic, value(number), partition=number % PARTITIONS) for number in range(RECORDS)]
    await producer.flush()
    await producer.stop()
    assert all(future.exception() is None for future in sent)


async def consume(bootstrap: str, topic: str, group: str, me: Member) -> None:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    while not me.stop.is_set():
        records = await consumer.getmany(timeout_ms=50, max_records=5000)
        values = [record.value for batch in records.values() for record in batch]
        me.report((p.partition for p in consumer.assignment()), values)
    await consumer.commit()
    await consumer.stop()


async def offsets(bootstrap: str, topic: str, group: str) -> tuple[dict[int, int], dict[int, int]]:
    """What the group has committed, and where the partitions end."""
    reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await reader.start()
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    ends = await reader.end_offsets(partitions)
    await reader.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    committed = await admin.list_consumer_group_offsets(group)
    await admin.close()
    return {p.partition: o.offset for p, o in committed.items()}, {p.partition: end for p, end in ends.items()}


def test_topic_records_group_and_offsets(target, topic):
    group = f"{topic}-group"
    asyncio.run(create(target.bootstrap, topic))
    members = Members(lambda me: asyncio.run(consume(target.bootstrap, topic, group, me)))
    members.wait_until_shared_out()
    asyncio.run(produce(target.bootstrap, topic))
    members.wait_until_consumed()
    members.finish()
    assert_committed_to_the_end(*asyncio.run(offsets(target.bootstrap, topic, group)))
