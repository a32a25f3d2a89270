"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from workload import PARTITIONS, RECORDS, Member, Members, assert_committed_to_the_end, value


def produce(bootstrap: str, topic: str, **settings: object) -> None:
    failures: list[object] = []
    delivered = 0

    def on_delivery(error: object, _message: object) -> None:
        nonlocal delivered
        delivered += error is None
        if error is not None:
            failures.append(error)

    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": RECORDS, **settings}
    )
    for number in range(RECORDS):
        producer.produce(topic, value(number), key=b"%d" % number, on_delivery=on_delivery)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    assert (failures, delivered) == ([], RECORDS)


def test_topic_records_group_and_offsets(target, topic):
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(timeout=30)
    described = admin.list_topics(topic, timeout=30).topics[topic]
    assert described.error is None
    assert sorted(described.partitions) == list(range(PARTITIONS))
    assert len({p.leader for p in described.partitions.values()}) >= min(2, target.brokers)

    def member(me: Member) -> None:
        with Consumer(
            {
                "bootstrap.servers": target.bootstrap,
                "group.id": f"{topic}-group",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        ) as consumer:
            consumer.subscribe([topic])
            while not me.stop.is_set():
                messages = consumer.consume(5000, timeout=0.05)
                assert [m.error() for m in messages if m.error()] == []
                me.report((p.partition for p in consumer.assignment()), [m.value() for m in messages])
            consumer.commit(asynchronous=False)

    members = Members(member)
    members.wait_until_shared_out()
    produce(target.bootstrap, topic)
    members.wait_until_consumed()
    members.finish()

    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    asked = [ConsumerGroupTopicPartitions(f"{topic}-group", partitions)]
    (answer,) = admin.list_consumer_group_offsets(asked).values()
    committed = {p.partition: p.offset for p in answer.result(timeout=30).topic_partitions}
    latest = admin.list_offsets({p: OffsetSpec.latest() for p in partitions})
    ends = {p.partition: future.result(timeout=30).offset for p, future in latest.items()}
    assert_committed_to_the_end(committed, ends)


def test_an_idempotent_producer_is_taken(two_shards, topic):
    admin = AdminClient({"bootstrap.servers": two_shards.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
    produce(two_shards.bootstrap, topic, **{"enable.idempotence": True, "compression.type": "lz4"})
    with Consumer({"bootstrap.servers": two_shards.bootstrap, "group.id": topic}) as consumer:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    assert (low, high) == (0, RECORDS)


def test_a_users_credentials_come_and_go(two_shards, topic):
    """librdkafka writes a byte behind the end of this request."""
    admin = AdminClient({"bootstrap.servers": two_shards.bootstrap})
    known = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    altered = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(topic, known, b"secret", b"salt")])
    assert altered[topic].result(timeout=30) is None
    told = admin.describe_user_scram_credentials([topic])[topic].result(timeout=30)
    assert [each.iterations for each in told.scram_credential_infos] == [8192]
    deletion = UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_256)
    assert admin.alter_user_scram_credentials([deletion])[topic].result(timeout=30) is None
