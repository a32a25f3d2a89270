"""Programs that stand on Kafka clients, run as they come from their packages, while limits come and go.

exact_by_key  What a program has made of its records is held against what it was given, key by key: `wrong` names each key
    that is lost, doubled or has another value. A copy counts once for each time it was read, so a doubled one stays.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, until

DESK = "desk"
"""The client id of the test's own clients: no quota holds them up, and they are not counted as the program's."""


class Wrong(NamedTuple):
    """How often a key should be there, or what its count should be, and what was found."""

    expected: int
    found: int


def wrong(expected: Mapping[str, int], found: Mapping[str, int]) -> dict[str, Wrong]:
    """The keys that are not as they should be; a key that is not in a mapping is there 0 times."""
    keys = sorted(expected.keys() | found.keys())
    pairs = {key: Wrong(expected.get(key, 0), found.get(key, 0)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair.expected != pair.found}


class Program:
    """A process whose output is in `log`; it is told to end by the end of its standard input, or by SIGTERM. A context
    manager, after which it runs no more."""

    def __init__(self, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env={**os.environ, **(env or {})}
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def until_said(self, text: str, *, within_s: float = 60) -> None:
        until(lambda: text in self.log or not self.is_alive(), within_s=within_s, what=f"{text!r} in {self._log.name}")
        assert text in self.log, f"it ended:\n{self.log[-3000:]}"

    def write(self, text: str) -> None:
        """To its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def kill(self) -> None:
        """By SIGKILL."""
        self._process.kill()
        self._close()

    def end(self, *, by_signal: bool = False) -> None:
        """Waits for it; one that takes longer than 30 s is killed, and is an error."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if by_signal:
            self._process.terminate()
        try:
            self._process.wait(timeout=30)
        finally:
            self._process.kill()
            self._close()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Desk:
    """What a test gives a program, and what it gets back. A context manager; its topics are made at once.

    `said`: how often each key should be there; `got`: how often it is, or its last count, as `take` says.
    """

    def __init__(self, bootstrap: str, topics: Mapping[str, int]) -> None:
        """`topics`: their numbers of partitions."""
        self._common = {"bootstrap.servers": bootstrap, "client.id": DESK, "log_level": 0}
        self.admin = AdminClient(self._common)
        if topics:
            for made in self.admin.create_topics([NewTopic(*each) for each in topics.items()]).values():
                made.result(timeout=30)
        self._producer = Producer({**self._common, "enable.idempotence": True})
        self.said: Counter[str] = Counter()
        self.got: Counter[str] = Counter()
        self._consumer: Consumer | None = None

    def produce(self, topic: str, value: str, key: str | None = None) -> None:
        self._producer.produce(topic, value, key=key)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def read(self, topic: str, take: Callable[[Counter[str], Message], None]) -> None:
        """Takes what is committed in a topic and was not read yet."""
        if self._consumer is None:
            self._consumer = self._reader(topic)
        for message in self._consumer.consume(1000, 0.5):
            if message.error() is None:
                take(self.got, message)

    def _reader(self, topic: str) -> Consumer:
        """A consumer of all partitions from their first record; the topic is awaited: the program may be about to make it."""
        consumer = Consumer({**self._common, "group.id": DESK, "isolation.level": "read_committed",
                             "enable.auto.commit": False})  # fmt: skip
        found = until(
            lambda: consumer.list_topics(topic, timeout=10).topics[topic].partitions,
            within_s=180,
            what=f"topic {topic}",
        )
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in found])
        return consumer

    def until_exact(self, topic: str, take: Callable[[Counter[str], Message], None], *, within_s: float = 60.0) -> None:
        """Reads until all that was said is there, exactly. Raises AssertionError, which names the first wrong keys."""
        deadline = time.monotonic() + within_s
        while True:
            self.read(topic, take)
            found = wrong(self.said, self.got)
            if not found:
                return
            assert time.monotonic() < deadline, f"{len(found)} keys are wrong: {dict([*found.items()][:5])}"

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def copy(got: Counter[str], message: Message) -> None:
    """Each record is one more copy of its value."""
    got[message.value().decode()] += 1


def last_count(got: Counter[str], message: Message) -> None:
    """A record is a word and its count, which replaces the one before."""
    got[message.key().decode()] = int(message.value())


def connections(cluster: Cluster) -> Counter[int]:
    """How many connections all clients but the desk have to each broker, by its number."""
    asked = {"filter": "", "orderBy": "", "pageSize": 1000}
    told = cluster.client.post("/redpanda.core.admin.v2.ClusterService/ListKafkaConnections", asked)
    return Counter(each["nodeId"] for each in told["connections"] if each["clientId"] != DESK)


@contextmanager
def throttled(cluster: Cluster, bytes_per_s: float) -> Iterator[None]:
    """A quota of produced and one of fetched bytes for each client id but the desk's; they are lifted once a request was
    throttled, or by an error."""
    rates = {"producer_byte_rate": bytes_per_s, "consumer_byte_rate": bytes_per_s}
    unlimited = {"entity": {"client-id": DESK}, "set": dict.fromkeys(rates, 1e12)}
    cluster.put("/v1/quotas", {"alter": [unlimited, {"entity": {"client-id": None}, "set": rates}]})
    before = cluster.metric("turnstile_throttled_requests_total")
    try:
        yield
        until(
            lambda: cluster.metric("turnstile_throttled_requests_total") > before,
            within_s=60,
            what="a throttled request",
        )
    finally:
        cluster.put("/v1/quotas", {"alter": [{"entity": {"client-id": None}, "remove": list(rates)}]})


@contextmanager
def capped(cluster: Cluster, most: int, *, refusals: int = 10) -> Iterator[None]:
    """A cap of connections for each address; it is lifted once so many connections were refused, or by an error. Connections
    that are open stay."""
    before = cluster.metric("turnstile_connections_refused_total")
    cluster.set("max.connections.per.ip", most)
    try:
        yield
        until(
            lambda: cluster.metric("turnstile_connections_refused_total") >= before + refusals,
            within_s=60, what=f"{refusals} refused connections",
        )  # fmt: skip
    finally:
        cluster.unset("max.connections.per.ip")
