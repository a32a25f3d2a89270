"""Real clients in groups of the consumer protocol (KIP-848), librdkafka's and Java's, and the limits that hold for them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, connect, running, until

from scripts.peers import jars

PARTITIONS = 4
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 8000,
}


@pytest.fixture(scope="module", params=[(1, 2), (3, 1)], ids=["two shards", "three brokers"])
def quick(request, tmp_path_factory) -> Iterator[Cluster]:
    """Members heartbeat five times a second."""
    brokers, shards = request.param
    options = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    with running(tmp_path_factory.mktemp("groups") / "data", *options, brokers=brokers, shards=shards) as cluster:
        yield cluster


class Member:
    """A librdkafka consumer, polled by a thread until `close`; a context manager. It must be closed while its cluster is there:
    librdkafka never ends a member of a KIP-848 group that can't leave it, but spins."""

    def __init__(self, cluster: Cluster, topic: str, **settings: object) -> None:
        self.owned: set[int] = set()
        self.values: Counter[bytes] = Counter()
        self.faults: list[KafkaError] = []
        self.told_s: list[float] = []
        self.rebalances = 0  # partitions were given to it or taken from it so often
        self._stop = threading.Event()
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap, "group.id": topic, "group.protocol": "consumer",
                "auto.offset.reset": "earliest", "enable.auto.commit": False, "topic.metadata.refresh.interval.ms": 500,
                "throttle_cb": lambda event: self.told_s.append(event.throttle_time), **settings,
            }
        )  # fmt: skip
        self.consumer.subscribe([topic], on_assign=self._rebalanced, on_revoke=self._rebalanced)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stop.is_set():
            for message in self.consumer.consume(500, timeout=0.05):
                if message.error():
                    self.faults.append(message.error())
                else:
                    self.values[message.value()] += 1
            self.owned = {each.partition for each in self.consumer.assignment()}

    def _rebalanced(self, *_: object) -> None:
        self.rebalances += 1

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(commit=False)

    def close(self, *, commit: bool = True) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if commit:
            self.consumer.commit(asynchronous=False)
        self.consumer.close()


def create(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
    return admin


def produce(bootstrap: str, topic: str, first: int, last: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(first, last):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def described(admin: AdminClient, group: str):
    return admin.describe_consumer_groups([group])[group].result(timeout=30)


@pytest.fixture
def member(quick) -> Iterator[Callable[..., Member]]:
    """Starts members: (topic, settings); they are closed."""
    with ExitStack() as members:
        yield lambda topic, **settings: members.enter_context(Member(quick, topic, **settings))


def test_members_share_and_come_and_go_and_commit(quick, member, topic):
    admin = create(quick.bootstrap, topic)
    one = member(topic)
    until(lambda: len(one.owned) == 4, within_s=30, what="one has all")
    two = member(topic, **{"group.instance.id": "i"})
    until(
        lambda: len(one.owned) == len(two.owned) == 2 and not one.owned & two.owned, within_s=30, what="both have two"
    )
    produce(quick.bootstrap, topic, 0, 400)
    until(lambda: (one.values + two.values).total() == 400, within_s=30, what="all has come")
    until(lambda: described(admin, topic).state.name == "STABLE", within_s=30, what="a stable group")
    members = described(admin, topic).members
    assert sorted(len(each.assignment.topic_partitions) for each in members) == [2, 2]
    assert {each.group_instance_id for each in members} == {None, "i"}
    had = two.owned
    two.close()  # as a static member: it keeps its place
    three = member(topic, **{"group.instance.id": "i"})
    until(lambda: three.owned == had, within_s=30, what="the static member is back")
    assert one.owned == set(range(4)) - had
    one.close()
    until(lambda: len(three.owned) == 4, within_s=30, what="the other has all")
    produce(quick.bootstrap, topic, 400, 500)
    until(lambda: three.values.total() == 100, within_s=30, what="the rest has come")
    three.close()
    assert set(one.values + two.values + three.values) == {b"%d" % n for n in range(500)}
    assert (one.values + two.values + three.values).total() == 500  # what was committed did not come again
    reader = Consumer({"bootstrap.servers": quick.bootstrap, "group.id": topic})
    committed = reader.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], timeout=30)
    reader.close()
    assert [each.offset for each in committed] == [125] * 4
    assert [each.faults for each in (one, two, three)] == [[], [], []]


def test_an_expression_finds_topics_that_come_later(quick, topic):
    create(quick.bootstrap, f"{topic}-a", 2)
    settings = {"bootstrap.servers": quick.bootstrap, "group.id": topic, "topic.metadata.refresh.interval.ms": 300}
    with Consumer({**settings, "group.protocol": "consumer"}) as consumer:
        consumer.subscribe([f"^{topic}-[ab]$"])

        def owned() -> set[str]:
            consumer.poll(0.05)
            return {each.topic for each in consumer.assignment()}

        until(lambda: owned() == {f"{topic}-a"}, within_s=30, what="the first topic")
        create(quick.bootstrap, f"{topic}-b", 2)
        create(quick.bootstrap, f"{topic}-c", 2)
        until(lambda: owned() == {f"{topic}-a", f"{topic}-b"}, within_s=30, what="both topics")


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_members_go_on_after_their_shard_was_killed(quick, member, topic, protocol):
    admin = create(quick.bootstrap, topic)
    one, two = (member(topic, **{"group.protocol": protocol}) for _ in range(2))
    until(lambda: len(one.owned) == len(two.owned) == 2, within_s=30, what="both have two")
    rebalances = one.rebalances, two.rebalances
    before = {each.member_id for each in described(admin, topic).members}
    for each in quick.get("/v1/shards")["shards"]:
        pid, place = each["pid"], (each["shard"], each["broker"])
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid, place=place: quick.shard_pid(*place) not in (0, pid), within_s=30, what="another process")
    produce(quick.bootstrap, topic, 0, 400)
    until(lambda: len(one.values + two.values) == 400, within_s=60, what="all has come")
    admin = AdminClient({"bootstrap.servers": quick.bootstrap})  # the other one does not get over its lost connection
    assert {each.member_id for each in described(admin, topic).members} == before  # nobody had to join again
    assert len(one.owned) == len(two.owned) == 2
    assert (one.rebalances, two.rebalances) == rebalances


@pytest.mark.jars
@pytest.mark.parametrize("quick", [(3, 1)], ids=["three brokers"], indirect=True)
def test_javas_consumer_and_tools(quick, member, topic, jvm):
    create(quick.bootstrap, topic)
    produce(quick.bootstrap, topic, 0, 40)
    command = [
        "java", *jars.JVM_FLAGS, "-cp", jars.classpath(), jars.MAINS["kafka-console-consumer"],
        "--bootstrap-server", quick.bootstrap, "--topic", topic, "--group", topic, "--from-beginning",
        "--command-property", "group.protocol=consumer",
    ]  # fmt: skip
    java = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert java.stdout is not None
        assert {java.stdout.readline().strip() for _ in range(40)} == {str(n) for n in range(40)}
        librdkafka = member(topic)
        until(lambda: len(librdkafka.owned) == 2, within_s=60, what="both have two")

        def groups(*args: str) -> str:
            done = jvm("kafka-consumer-groups", "--bootstrap-server", quick.bootstrap, *args)
            assert done.code == 0, done
            return done.out

        assert topic in groups("--list").splitlines()
        assert re.search(rf"^{topic}\s+Consumer\b", groups("--list", "--type"), re.MULTILINE)
        assert topic in groups("--list", "--type", "consumer")
        assert topic not in groups("--list", "--type", "classic")
        assert re.search(rf"{topic}\s+Consumer\s+Stable|{topic}\s+Stable", groups("--list", "--state", "Stable"))
        rows = [line.split() for line in groups("--describe", "--group", topic).splitlines() if line.startswith(topic)]
        assert sorted(int(row[2]) for row in rows) == [0, 1, 2, 3]
        assert "uniform" in groups("--describe", "--group", topic, "--state", "--verbose")
        assert groups("--describe", "--group", topic, "--members", "--verbose").count(topic) >= 2
        librdkafka.close(commit=False)
    finally:
        java.terminate()
        java.communicate(timeout=30)
    until(lambda: "Empty" in groups("--describe", "--group", topic, "--state"), within_s=30, what="an empty group")
    assert "Deletion of requested consumer groups" in groups("--delete", "--group", topic)
    assert topic not in groups("--list")


def test_limits_hold_for_members(tmp_path, topic):
    """An address has so many connections, and so many new ones a second; a fetch quota is told to the member and delays it."""
    options = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    with running(tmp_path / "data", *options, brokers=1, shards=2) as cluster, ExitStack() as members:
        create(cluster.bootstrap, topic)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(60):
            producer.produce(topic, b"%09d" % number * 1000, partition=number % PARTITIONS)
            assert producer.flush(30) == 0
        del producer
        quota = ("quota", "set", "client-id=slow", "consumer_byte_rate=40000")
        cluster.turnstile(*quota)
        slow = {"client.id": "slow", "fetch.message.max.bytes": 20_000}
        one = members.enter_context(Member(cluster, topic, **slow))
        until(lambda: any(told > 0.05 for told in one.told_s), within_s=30, what="a throttled member")
        assert one.values.total() < 60
        cluster.turnstile("quota", "set", "client-id=slow", "consumer_byte_rate=10000000")
        until(lambda: len(one.values) == 60, within_s=60, what="all has come")
        assert one.rebalances == 1, "throttling moves no partition"
        cluster.set("max.connections.per.ip", 1)
        refused = cluster.metric("turnstile_connections_refused_total")
        two = members.enter_context(Member(cluster, topic))
        until(lambda: cluster.metric("turnstile_connections_refused_total") > refused + 2, within_s=30, what="refusals")
        assert not two.owned and len(one.owned) == PARTITIONS
        cluster.unset("max.connections.per.ip")
        cluster.turnstile("quota", "set", "ip=127.0.0.1", "connection_creation_rate=2")
        for sock in [connect(cluster.address) for _ in range(30)]:  # the rate of the whole window is used up
            sock.close()
        three = members.enter_context(Member(cluster, topic))
        until(lambda: cluster.metric("turnstile_held") > 0, within_s=30, what="a connection that is held by the rate")
        cluster.turnstile("quota", "unset", "ip=127.0.0.1", "connection_creation_rate")
        until(lambda: len(two.owned) + len(three.owned) >= 2, within_s=60, what="others are let in")
