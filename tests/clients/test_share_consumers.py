"""Java's KafkaShareConsumer: members of one group over two shards, while the home of the group is killed, and under quotas."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import connect, running, until

from shards.ownership import home_of_coordinator_key

pytestmark = pytest.mark.jars

JAVA = Path(__file__).parent / "java" / "ShareConsume.java"
LIMIT = 5


class Member:
    """A Java process. `given` and `accepted`: how often, by (partition, offset); `most`: the largest delivery count."""

    def __init__(self, command: list[str]) -> None:
        self.given: Counter[tuple[str, str]] = Counter()
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.most = 0
        self.throttled_ms = 0
        self._java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._java.stdout is not None
        for line in self._java.stdout:
            what, *row = line.split()
            if what == "throttled":
                self.throttled_ms = int(row[0])
            elif what in ("given", "accepted"):
                partition, offset, deliveries = row
                getattr(self, what)[partition, offset] += 1
                self.most = max(self.most, int(deliveries))

    def end(self) -> None:
        assert self._java.stdin is not None and self._java.stdout is not None
        self._java.stdin.close()
        try:
            assert self._java.wait(timeout=60) == 0
        finally:
            self._java.kill()
            self._reader.join()
            self._java.stdout.close()


@pytest.fixture(scope="module")
def member(jvm, tmp_path_factory) -> Iterator[Callable[..., Member]]:
    """Starts members: (bootstrap, client id, group and topic, how many it releases); they are ended."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    from scripts.peers.jars import JVM_FLAGS, classpath

    classes = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-cp", classpath(), "-d", str(classes), str(JAVA)], check=True, timeout=120)

    def start(bootstrap: str, client_id: str, topic: str, release: int = 0) -> Member:
        words = [bootstrap, client_id, topic, topic, str(release)]
        return Member(["java", *JVM_FLAGS, "-cp", f"{classes}:{classpath()}", "ShareConsume", *words])

    return start


@pytest.fixture
def filled(topic, tmp_path):
    """A cluster of two shards with an empty topic of four partitions, whose group begins at the earliest."""
    with running(tmp_path / "data", brokers=1, shards=2) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(timeout=30)
        yield cluster


def produce(bootstrap: str, topic: str, count: int, size: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 20})
    for number in range(count):
        producer.produce(topic, b"x" * size, partition=number % 4)
    assert not producer.flush(60)


def test_each_record_is_accepted_once_while_homes_are_killed(filled, topic, member, jvm):
    jvm_set(jvm, filled.bootstrap, "groups", topic, "share.auto.offset.reset=earliest")
    produce(filled.bootstrap, topic, 300)
    members = [member(filled.bootstrap, f"member-{number}", topic, 20) for number in range(2)]
    first = 300
    until(lambda: len(given(members)) == first, within_s=90, what="the first records")
    while not all(each.given for each in members):  # one of them may have been there long before the other
        produce(filled.bootstrap, topic, 20)
        first += 20
        until(partial(lambda most: len(given(members)) == most, first), within_s=90, what="more records")
    home = home_of_coordinator_key(topic, 1, 2)
    for count, shard in ((first + 300, home), (first + 600, 1 - home)):
        os.kill(filled.shard_pid(shard), signal.SIGKILL)
        produce(filled.bootstrap, topic, 300)
        done = partial(lambda most: len(given(members)) == most, count)
        until(done, within_s=90, what=f"{count} records")
    until(lambda: start_offset(filled.bootstrap, jvm, topic) == count, within_s=90, what="all are done with")
    for each in members:
        each.end()
    accepted = sum((each.accepted for each in members), Counter())
    assert len(given(members)) == count, "each record was given"
    assert max(accepted.values()) == 1, "none was accepted twice"
    assert max(each.most for each in members) <= LIMIT
    lost = count - len(accepted)  # accepted, and the answer that said so was not heard: not many
    assert lost < 100


def given(members: list[Member]) -> set[tuple[str, str]]:
    return set().union(*(list(each.given) for each in members))


def start_offset(bootstrap: str, jvm, group: str) -> int:
    """Those of all partitions together, as kafka-share-groups tells them."""
    ran = jvm("kafka-share-groups", "--bootstrap-server", bootstrap, "--describe", "--offsets", "--group", group)
    rows = [line.split() for line in ran.out.splitlines() if line.startswith(group)]
    return sum(int(row[3]) for row in rows if row[3].isdigit())


def jvm_set(jvm, bootstrap: str, kind: str, name: str, config: str) -> None:
    place = ("--bootstrap-server", bootstrap, "--entity-type", kind, "--entity-name", name)
    ran = jvm("kafka-configs", "--alter", "--add-config", config, *place)
    assert ran.code == 0, ran.err


def test_quotas_caps_and_rates_hold_for_share_consumers(filled, topic, member, jvm):
    """By client-id the fetch rate, by address the connections and new ones a second: as for any other client."""
    bootstrap = filled.bootstrap
    jvm_set(jvm, bootstrap, "groups", topic, "share.auto.offset.reset=earliest")
    jvm_set(jvm, bootstrap, "clients", "slow", "consumer_byte_rate=100000")
    produce(bootstrap, topic, 160, size=10_000)
    began = time.monotonic()
    slow = member(bootstrap, "slow", topic)
    until(lambda: len(slow.accepted) == 160, within_s=120, what="all has come")
    took_s = time.monotonic() - began
    filled.set("kafka_connections_max_per_ip", 1)
    refused = filled.metric("turnstile_connections_refused_total")
    other = member(bootstrap, "other", topic)
    until(lambda: filled.metric("turnstile_connections_refused_total") > refused, within_s=60, what="a refusal")
    filled.unset("kafka_connections_max_per_ip")
    produce(bootstrap, topic, 40)
    until(lambda: len(given([slow, other])) == 200, within_s=60, what="the rest")
    filled.turnstile("quota", "set", "ip=127.0.0.1", "connection_creation_rate=2")
    for sock in [connect(filled.address) for _ in range(30)]:  # the rate of the whole window is used up
        sock.close()
    third = member(bootstrap, "third", topic)
    until(lambda: filled.metric("turnstile_held") > 0, within_s=30, what="a connection that is held by the rate")
    filled.turnstile("quota", "unset", "ip=127.0.0.1", "connection_creation_rate")
    produce(bootstrap, topic, 40)
    until(lambda: len(given([slow, other, third])) == 240, within_s=60, what="what came last")
    for each in (slow, other, third):
        each.end()
    assert slow.throttled_ms > 100, "it was told"
    assert took_s > (1_600_000 - 11 * 100_000) / 100_000 - 1, "more than the burst comes at the rate alone"
    assert max(slow.accepted.values()) == 1
    assert slow.most == 1, "what a quota withholds does not count as delivered"
    assert filled.metric("turnstile_throttled_requests_total", quota="consumer_byte_rate") > 0
