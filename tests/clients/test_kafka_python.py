"""kafka-python, which shares no code with librdkafka or Java."""

from __future__ import annotations

import warnings

import pytest
from workload import PARTITIONS, RECORDS, Member, Members, assert_committed_to_the_end, value

with warnings.catch_warnings():
    # It reads its schemas through an interface of importlib.resources that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import NewTopic

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def produce(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, batch_size=65536)
    sent = [producer.send(topic, value(number), partition=number % PARTITIONS) for number in range(RECORDS)]
    producer.flush(timeout=60)
    producer.close(timeout=30)
    assert all(future.succeeded() for future in sent)


def test_topic_records_group_and_offsets(target, topic):
    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    group = f"{topic}-group"

    def member(me: Member) -> None:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=target.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        while not me.stop.is_set():
            records = consumer.poll(timeout_ms=500, max_records=5000)
            values = [record.value for batch in records.values() for record in batch]
            me.report((p.partition for p in consumer.assignment()), values)
        consumer.commit()
        consumer.close()

    members = Members(member)
    members.wait_until_shared_out()
    produce(target.bootstrap, topic)
    members.wait_until_consumed()
    members.finish()

    reader = KafkaConsumer(bootstrap_servers=target.bootstrap)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    ends = {p.partition: offset for p, offset in reader.end_offsets(partitions).items()}
    reader.close()
    committed = {p.partition: o.offset for p, o in admin.list_group_offsets(group)[group].items()}
    admin.close()
    assert_committed_to_the_end(committed, ends)


def test_a_topic_of_many_brokers_has_the_replicas_that_were_asked_for(three_brokers, topic):
    admin = KafkaAdminClient(bootstrap_servers=three_brokers.bootstrap)
    admin.create_topics([NewTopic(topic, 1, 3)])
    (found,) = admin.describe_topics([topic])
    (partition,) = found["partitions"]
    leader, replicas = partition["leader_id"], partition["replica_nodes"]
    assert sorted(replicas) == sorted(partition["isr_nodes"]) == [0, 1, 2]
    assert replicas[0] == leader
    producer = KafkaProducer(bootstrap_servers=three_brokers.bootstrap, acks="all")
    assert producer.send(topic, b"x").get(timeout=30).offset == 0
    producer.close(timeout=30)
    place = TopicPartition(topic, 0)
    assert admin.alter_partition_reassignments({place: [leader]}) == {place: None}
    (found,) = admin.describe_topics([topic])
    assert found["partitions"][0]["replica_nodes"] == [leader]
    admin.close()
