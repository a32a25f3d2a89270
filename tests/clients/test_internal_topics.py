"""__consumer_offsets and __transaction_state as clients see them: listed as internal, and read with Kafka's own formatters."""

from __future__ import annotations

import json
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from harness import running, until

from shards.ownership import java_abs_hash

with warnings.catch_warnings():
    # It reads its schemas through an interface of importlib.resources that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
    from kafka.admin import NewTopic
    from kafka.structs import OffsetAndMetadata

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # kafka-python may leave a socket to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
FORMATTERS = "org.apache.kafka.tools.consumer"


def make(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()


def commit(bootstrap: str, topic: str, offset: int) -> None:
    """Of a group with the name of the topic, which has no members."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "why", -1)})
    consumer.close()


def of_group(bootstrap: str, group: str) -> Iterator[tuple[bytes, bytes | None]]:
    """The records of a group, read once to the end as it was at the beginning."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    count = len(consumer.partitions_for_topic(OFFSETS))
    place = TopicPartition(OFFSETS, java_abs_hash(group) % count)
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    while consumer.position(place) < end:
        for record in consumer.poll(timeout_ms=1000).get(place, ()):
            if group.encode() in record.key:
                yield record.key, record.value
    consumer.close()


def committed_in(records: Iterator[tuple[bytes, bytes | None]]) -> list[int]:
    return [int.from_bytes(value[2:10], "big") for key, value in records if key[:2] == b"\x00\x01" and value]


def test_the_offsets_of_a_group_are_in_its_partition(target, topic):
    make(target.bootstrap, topic)
    commit(target.bootstrap, topic, 5)
    found = [*of_group(target.bootstrap, topic)]
    ((key, value),) = [each for each in found if each[0][:2] == b"\x00\x01"]
    name = len(topic).to_bytes(2, "big") + topic.encode()
    assert key == b"\x00\x01" + name + name + bytes(4)
    assert value is not None
    assert (value[:14], value[14:18]) == (b"\x00\x04" + (5).to_bytes(8, "big") + b"\xff" * 4, b"\x04why")
    assert value[26:] == b"\x00"
    commit(target.bootstrap, topic, 6)
    assert committed_in(of_group(target.bootstrap, topic))[-1] == 6


def test_consumers_of_everything_see_them_if_they_want_to(target, topic):
    make(target.bootstrap, topic)
    commit(target.bootstrap, topic, 1)
    for excluded, wanted in ((True, {topic}), (False, {topic, OFFSETS})):
        consumer = KafkaConsumer(
            bootstrap_servers=target.bootstrap, group_id=f"{topic}-{excluded}", exclude_internal_topics=excluded
        )
        consumer.subscribe(pattern=f"{OFFSETS}|{topic}")
        until(
            lambda consumer=consumer, wanted=wanted: (
                consumer.poll(timeout_ms=200) is not None and {each.topic for each in consumer.assignment()} == wanted
            ),
            within_s=30,
            what="an assignment of what its metadata has in the end",
        )
        consumer.close()


@pytest.mark.jars
def test_topics_are_listed_and_described(tool, topic):
    make(tool.bootstrap, topic)
    commit(tool.bootstrap, topic, 1)
    assert {OFFSETS, topic} <= {*tool("kafka-topics", "--list").splitlines()}
    listed = tool("kafka-topics", "--list", "--exclude-internal").splitlines()
    assert topic in listed
    assert OFFSETS not in listed
    assert "cleanup.policy=compact" in tool("kafka-topics", "--describe", "--topic", OFFSETS)
    assert OFFSETS not in tool("kafka-topics", "--describe", "--exclude-internal")


def formatted(tool: Any, topic: str, formatter: str, group: str) -> list[Any]:
    """What Kafka's formatter makes of the records that name a group or a transactional id."""
    consumer = KafkaConsumer(bootstrap_servers=tool.bootstrap)
    place = TopicPartition(topic, java_abs_hash(group) % len(consumer.partitions_for_topic(topic)))
    count = consumer.end_offsets([place])[place]
    consumer.close()
    said = tool(
        "kafka-console-consumer", "--topic", topic, "--partition", str(place.partition), "--offset", "earliest",
        "--max-messages", str(count), "--timeout-ms", "20000", "--formatter", f"{FORMATTERS}.{formatter}",
    )  # fmt: skip
    found, at = [], said.find("{")
    while at >= 0:  # one behind the other, in one line
        each, end = json.JSONDecoder().raw_decode(said, at)
        found += [each] if group in json.dumps(each["key"]) else []
        at = said.find("{", end)
    return found


@pytest.mark.jars
def test_kafkas_formatters_read_offsets_and_groups(tool, topic):
    make(tool.bootstrap, topic)
    consumer = KafkaConsumer(topic, bootstrap_servers=tool.bootstrap, group_id=topic, enable_auto_commit=False)
    # kafka-python may join before it knows of the topic's partitions, assigns none of them then, and leaves it at that.
    assert consumer.partitions_for_topic(topic) == {0}
    until(lambda: consumer.poll(timeout_ms=200) or consumer.assignment(), within_s=30, what="an assignment")
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(3, "", -1)})
    found = formatted(tool, OFFSETS, "OffsetsMessageFormatter", topic)[-1]
    assert found["key"] == {"type": 1, "data": {"group": topic, "topic": topic, "partition": 0}}
    assert found["value"]["version"] == 4
    del found["value"]["data"]["commitTimestamp"]
    assert found["value"]["data"] == {"offset": 3, "leaderEpoch": -1, "metadata": ""}
    found = formatted(tool, OFFSETS, "GroupMetadataMessageFormatter", topic)[-1]
    assert (found["key"], found["value"]["version"]) == ({"type": 2, "data": {"group": topic}}, 3)
    group = found["value"]["data"]
    assert (group["protocolType"], group["protocol"]) == ("consumer", "range")
    assert group["generation"] >= 1
    (member,) = group["members"]
    assert member["memberId"] == group["leader"]
    assert (member["groupInstanceId"], member["clientHost"]) == (None, "/127.0.0.1")
    consumer.close()


@pytest.mark.jars
def test_kafkas_formatter_reads_transactions(tool, topic):
    make(tool.bootstrap, topic)
    producer = Producer(
        {"bootstrap.servers": tool.bootstrap, "transactional.id": topic, "transaction.timeout.ms": 9000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.commit_transaction(30)
    found = formatted(tool, TRANSACTIONS, "TransactionLogMessageFormatter", topic)[-1]
    assert found["key"] == {"type": 0, "data": {"transactionalId": topic}}
    assert found["value"]["version"] == 1
    data = found["value"]["data"]
    assert (data["transactionTimeoutMs"], data["transactionStatus"], data["transactionPartitions"]) == (9000, 4, [])


@pytest.mark.skipif("CLIENTS_PEER" in os.environ, reason="kills a shard of Turnstile")
def test_what_was_committed_is_read_after_shards_were_killed(tmp_path: Path, topic: str) -> None:
    with running(tmp_path / "data", shards=2) as cluster:
        make(cluster.bootstrap, topic)
        commit(cluster.bootstrap, topic, 5)
        assert committed_in(of_group(cluster.bootstrap, topic)) == [5]
        commit(cluster.bootstrap, topic, 6)
        killed = [cluster.shard_pid(shard) for shard in range(2)]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not {*killed} & {cluster.shard_pid(shard) for shard in range(2)}, what="other shards")
        assert committed_in(of_group(cluster.bootstrap, topic)) == [5, 6]
        commit(cluster.bootstrap, topic, 7)
        assert committed_in(of_group(cluster.bootstrap, topic)) == [5, 6, 7]
