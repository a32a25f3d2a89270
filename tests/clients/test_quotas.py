"""Real clients under quotas: the throttle times they are told, and no record lost or doubled while quotas change."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.jars

JAVA = Path(__file__).parent / "java" / "CreateTopics.java"


@pytest.fixture
def client_id(tool):
    """A client-id no other test uses; its quotas are taken back."""
    name = f"client-{uuid4().hex[:8]}"
    yield name
    described = tool("kafka-configs", "--describe", *_client(name)).strip()
    quotas = [each.partition("=")[0].strip() for each in described.rpartition(" are ")[2].split(",") if "=" in each]
    if quotas:
        tool("kafka-configs", "--alter", "--delete-config", ",".join(quotas), *_client(name))


def _client(name: str) -> tuple[str, ...]:
    return "--entity-type", "clients", "--entity-name", name


def limit(tool, client_id: str, config: str) -> None:
    tool("kafka-configs", "--alter", "--add-config", config, *_client(client_id))


def create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(timeout=30)


class Throttles:
    """What throttle_cb was told, in seconds."""

    def __init__(self) -> None:
        self.told_s: list[float] = []

    def __call__(self, event) -> None:
        assert event.broker_name
        self.told_s.append(event.throttle_time)


def test_a_producer_is_told_how_long_it_is_throttled(tool, topic, client_id):
    create(tool.bootstrap, topic)
    limit(tool, client_id, "producer_byte_rate=50000")
    throttles = Throttles()
    producer = Producer({"bootstrap.servers": tool.bootstrap, "client.id": client_id, "throttle_cb": throttles})
    began = time.monotonic()
    for _ in range(55):  # 550,000 bytes, of which ten windows' worth passes at once
        producer.produce(topic, b"x" * 10_000, partition=0)
        producer.flush(30)
    took_s = time.monotonic() - began
    producer.poll(0)
    assert max(throttles.told_s) > 0.1
    assert 0.3 < sum(throttles.told_s[:-1]) < took_s, "each delay but the last was waited for"


def test_a_consumer_is_told_how_long_it_is_throttled(tool, topic, client_id):
    create(tool.bootstrap, topic)
    filler = Producer({"bootstrap.servers": tool.bootstrap})
    for _ in range(70):
        filler.produce(topic, b"x" * 10_000, partition=0)
        assert filler.flush(30) == 0  # a batch each: one that is larger than the whole window would never come
    limit(tool, client_id, "consumer_byte_rate=50000")
    throttles = Throttles()
    settings = {"group.id": topic, "throttle_cb": throttles, "fetch.message.max.bytes": 50_000}
    with Consumer({"bootstrap.servers": tool.bootstrap, "client.id": client_id, **settings}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[object] = []
        while max(throttles.told_s, default=0.0) <= 0.1:  # the first may be of a few ms, by where the burst ends
            values += [message for message in consumer.consume(1, timeout=0.1) if not message.error()]
        assert len(values) < 70
        tool("kafka-configs", "--alter", "--delete-config", "consumer_byte_rate", *_client(client_id))
        while len(values) < 70:
            values += [message for message in consumer.consume(1, timeout=30) if not message.error()]
            assert values, "nothing came within 30 s"
    assert [message.offset() for message in values] == list(range(70)), "each record once, in order"


@pytest.fixture(scope="session")
def create_topics(jvm, tmp_path_factory):
    """Runs CreateTopics.java: [(topic, "created" or "throttled", milliseconds)]."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    from scripts.peers.jars import JVM_FLAGS, classpath

    classes = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-cp", classpath(), "-d", str(classes), str(JAVA)], check=True, timeout=120)

    def run(bootstrap: str, client_id: str, retry: bool, partitions: int, *names: str) -> list[tuple[str, str, int]]:
        command = ["java", *JVM_FLAGS, "-cp", f"{classes}:{classpath()}", "CreateTopics", bootstrap, client_id]
        command += ["true" if retry else "false", str(partitions), *names]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=90)
        assert ran.returncode == 0, ran.stderr
        rows = [line.split() for line in ran.stdout.splitlines()]
        return [(name, what, int(ms)) for name, what, ms in rows]

    return run


def test_an_admin_client_that_retries_gets_its_topic_in_the_end(tool, topic, client_id, create_topics):
    limit(tool, client_id, "controller_mutation_rate=10")  # a burst of 110 partitions
    names = [f"{topic}-{number}" for number in range(2)]
    done = create_topics(tool.bootstrap, client_id, True, 140, *names)
    assert [(name, what) for name, what, _ in done] == [(name, "created") for name in names]
    assert 1500 < done[1][2] < 10_000, "the first goes through at once and leaves the bucket at -30: 3 s to wait"
    listed = AdminClient({"bootstrap.servers": tool.bootstrap}).list_topics(timeout=30).topics
    assert set(names) <= listed.keys()


def test_an_admin_client_that_does_not_retry_is_told_the_delay(tool, topic, client_id, create_topics):
    limit(tool, client_id, "controller_mutation_rate=1")  # a burst of 11 partitions
    first, second = f"{topic}-first", f"{topic}-second"
    done = create_topics(tool.bootstrap, client_id, False, 31, first, second)
    assert [each[:2] for each in done] == [(first, "created"), (second, "throttled")]
    assert 10_000 < done[1][2] <= 20_000, "20 partitions too many, at one a second"
    assert second not in AdminClient({"bootstrap.servers": tool.bootstrap}).list_topics(timeout=30).topics


def test_a_quota_that_comes_and_goes_during_traffic_loses_nothing_and_doubles_nothing(tool, topic, client_id):
    create(tool.bootstrap, topic)
    keys = [b"%d" % number for number in range(4000)]
    seen: Counter[bytes] = Counter()
    over = threading.Event()

    def consume() -> None:
        with Consumer({"bootstrap.servers": tool.bootstrap, "client.id": client_id, "group.id": topic}) as consumer:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
            while not over.is_set() or len(seen) < len(keys):
                for message in consumer.consume(500, timeout=0.1):
                    if message.error() is None:
                        seen[message.key()] += 1
                if failed:
                    break

    failed: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    consuming = threading.Thread(target=consume, daemon=True)
    consuming.start()
    producer = Producer({"bootstrap.servers": tool.bootstrap, "client.id": client_id, "linger.ms": 1})
    quotas = "producer_byte_rate=200000,consumer_byte_rate=200000"
    for number, key in enumerate(keys):
        if number % 500 == 0:  # set, removed, set again, ...
            if number % 1000 == 0:
                limit(tool, client_id, quotas)
            else:
                tool("kafka-configs", "--alter", "--delete-config", "producer_byte_rate,consumer_byte_rate",
                     *_client(client_id))  # fmt: skip
        producer.produce(topic, b"x" * 1000, key=key, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(60) == 0
    over.set()
    consuming.join(60)
    assert not consuming.is_alive(), f"{len(seen)} of {len(keys)} records arrived"
    assert failed == []
    assert seen == Counter(dict.fromkeys(keys, 1))
