"""Transactions of real clients: librdkafka's, Kafka's Java console, and kafka-transactions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import admitted, connect, running, until

PARTITIONS = 4


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        made.result(timeout=30)


def producer(bootstrap: str, name: str, **settings: object) -> Producer:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, **settings})
    made.init_transactions(30)
    return made


@contextmanager
def consumer(bootstrap: str, group: str, topic: str, isolation: str = "read_committed") -> Iterator[Consumer]:
    with Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "isolation.level": isolation, "enable.auto.commit": False, "enable.partition.eof": True,
        }
    ) as made:  # fmt: skip
        made.subscribe([topic])
        yield made


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Everything in a topic that a consumer of that isolation level sees."""
    values: list[bytes] = []
    ended: set[int] = set()
    until_s = time.monotonic() + 60
    with consumer(bootstrap, f"{topic}-{isolation}", topic, isolation) as reader:
        while len(ended) < PARTITIONS:
            assert time.monotonic() < until_s, f"the end of these partitions alone was reached: {ended}"
            for message in reader.consume(500, timeout=0.1):
                if message.error():
                    ended.add(message.partition())
                else:
                    values.append(message.value())
    return sorted(values)


def test_commits_aborts_offsets_and_fencing(target, topic):
    bootstrap, out = target.bootstrap, f"{topic}-out"
    create(bootstrap, topic, out)
    one = producer(bootstrap, topic)
    for number in range(4):
        one.begin_transaction()
        for each in range(10):
            one.produce(topic, b"%d %d" % (number, each), key=b"%d" % each)
        assert one.flush(30) == 0
        (one.abort_transaction if number % 2 else one.commit_transaction)(30)
    expected = sorted(b"%d %d" % (number, each) for number in (0, 2) for each in range(10))
    until(lambda: read(bootstrap, topic) == expected, within_s=20, what="both committed transactions")
    assert len(read(bootstrap, topic, "read_uncommitted")) == 40

    with consumer(bootstrap, topic, topic) as reader:
        done = 0
        while done < 20:
            messages = [each for each in reader.consume(7, timeout=0.5) if not each.error()]
            if messages:
                one.begin_transaction()
                for each in messages:
                    one.produce(out, each.value(), key=each.key())
                places = reader.position(reader.assignment())
                one.send_offsets_to_transaction(places, reader.consumer_group_metadata(), 30)
                one.commit_transaction(30)
                done += len(messages)
        committed = reader.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], timeout=30)
        assert [each.offset for each in committed if each.offset >= 0] == [
            each.offset for each in reader.position(reader.assignment()) if each.offset >= 0
        ]
    assert read(bootstrap, out) == expected

    other = producer(bootstrap, topic)
    one.begin_transaction()
    one.produce(out, b"fenced")
    with pytest.raises(KafkaException) as fenced:
        one.commit_transaction(30)
    assert fenced.value.args[0].fatal()
    other.begin_transaction()
    other.produce(out, b"of the new one")
    other.commit_transaction(30)
    assert read(bootstrap, out) == sorted([*expected, b"of the new one"])


@pytest.mark.jars
def test_the_java_producer_and_kafka_transactions(tool, two_shards, topic):
    bootstrap = two_shards.bootstrap
    create(bootstrap, topic)
    ran = tool.run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "2000", "--record-size", "50", "--throughput", "-1",
        "--transactional-id", f"{topic}-java", "--transaction-duration-ms", "20",
        "--producer-props", f"bootstrap.servers={bootstrap}",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "2000 records sent" in ran.out
    assert len(read(bootstrap, topic)) == 2000

    def transactions(*args: str) -> str:
        """What kafka-transactions prints."""
        ran = tool.run("kafka-transactions", "--bootstrap-server", bootstrap, *args)
        assert ran.code == 0, ran.err
        return ran.out

    described = transactions("describe", "--transactional-id", f"{topic}-java")
    assert re.search(r"\sCompleteCommit\s", described)

    hanging = producer(bootstrap, f"{topic}-hanging")
    hanging.begin_transaction()
    hanging.produce(topic, b"hangs", partition=0)
    assert hanging.flush(30) == 0
    assert re.search(rf"{topic}-hanging\s+0\s+\d+\s+Ongoing", transactions("list"))
    assert f"{topic}-0" in transactions("describe", "--transactional-id", f"{topic}-hanging")
    producers = transactions("describe-producers", "--topic", topic, "--partition", "0").splitlines()
    starts = [line.split()[5] for line in producers[1:] if line.split()[5] != "None"]
    assert len(starts) == 1
    transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", starts[0])
    assert len(read(bootstrap, topic)) == 2000


def test_limits_hold_for_a_transactional_producer(tmp_path, topic):
    """A byte quota is told to it and slows it; a cap refuses its connections, a creation rate holds them."""
    told_s: list[float] = []
    with running(tmp_path / "data", brokers=1, shards=2) as cluster:
        create(cluster.bootstrap, topic)
        cluster.turnstile("quota", "set", "client-id=slow", "producer_byte_rate=50000")
        callback = {"client.id": "slow", "throttle_cb": lambda event: told_s.append(event.throttle_time)}
        slow = producer(cluster.bootstrap, f"{topic}-slow", **callback)
        slow.begin_transaction()
        for number in range(60):  # 600,000 bytes, of which the windows of the quota let 550,000 pass at once
            slow.produce(topic, b"%09d" % number * 1000)
            assert slow.flush(30) == 0
        slow.commit_transaction(30)
        slow.poll(0)
        del slow
        assert max(told_s) > 0.1, "the throttle time is told"
        assert cluster.metric("turnstile_throttled_requests_total", quota="producer_byte_rate") > 0

        until(lambda: cluster.metric("turnstile_connections_open") == 0, what="no connection")
        cluster.set("max.connections.per.ip", 1)
        with connect(cluster.address) as held:  # the one that the address may have
            assert admitted(held)
            capped = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"{topic}-capped"})
            with pytest.raises(KafkaException):
                capped.init_transactions(1)
            refused = "turnstile_connections_refused_total"
            until(lambda: cluster.metric(refused) > 0, within_s=30, what="a refusal")
        cluster.unset("max.connections.per.ip")
        commit(capped, topic, b"capped")

        cluster.turnstile("quota", "set", "ip=127.0.0.1", "connection_creation_rate=2")
        for sock in [connect(cluster.address) for _ in range(30)]:  # the rate of the whole window is used up
            sock.close()
        held = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"{topic}-held"})
        until(lambda: cluster.metric("turnstile_held") > 0, within_s=30, what="a connection that is held by the rate")
        cluster.turnstile("quota", "unset", "ip=127.0.0.1", "connection_creation_rate")
        commit(held, topic, b"held")
        del capped, held
        expected = sorted([b"capped", b"held", *(b"%09d" % number * 1000 for number in range(60))])
        assert read(cluster.bootstrap, topic) == expected, "each record once"


def commit(made: Producer, topic: str, value: bytes) -> None:
    """One transaction, of one record."""
    made.init_transactions(30)
    made.begin_transaction()
    made.produce(topic, value)
    made.commit_transaction(30)
