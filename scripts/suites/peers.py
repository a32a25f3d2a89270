"""The clusters a suite is run against: Apache Kafka and Turnstile, of one broker and of three; all with SETTINGS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import turnstile
from scripts.peers import jars, servers
from scripts.suites.sources import kafka_jars
from scripts.suites.suite import Target

SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Tests of ACLs need something that obeys them; all others may do everything.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


LIMITS = {
    "max.connections": "2000",
    "max.connections.per.ip": "1000",
    "max.connection.creation.rate": "500",
    "kafka_connection_rate_limit": "500",
}
QUOTAS = {
    "ip=<default>": {"connection_creation_rate": 400.0},
    "client-id=<default>": {
        "producer_byte_rate": 50e6, "consumer_byte_rate": 100e6, "request_percentage": 200.0, "controller_mutation_rate": 500.0
    },
}  # fmt: skip


class Peer(NamedTuple):
    """`start` is a context manager whose value is the target. `oracle`: whose results are what this one has to reach, "" if it
    is one itself."""

    name: str
    shown: str
    start: Callable[[], AbstractContextManager[Target]]
    oracle: str = ""


@contextmanager
def _turnstile(brokers: int, shards: int, *, limited: bool = False) -> Iterator[Target]:
    limits = {**SETTINGS, **(LIMITS if limited else {})}
    with (
        tempfile.TemporaryDirectory(prefix="suite-") as folder,
        turnstile.Cluster(limits=limits, quotas=QUOTAS if limited else None, brokers=brokers, shards=shards) as cluster,
    ):
        yield Target(cluster.bootstrap, brokers, Path(folder))


@contextmanager
def _kafka(brokers: int) -> Iterator[Target]:
    kafka_jars()
    with tempfile.TemporaryDirectory(prefix="suite-") as folder, servers.kafka(SETTINGS, brokers=brokers) as server:
        yield Target(server.bootstrap, brokers, Path(folder))


PEERS = (
    Peer("kafka", f"Kafka {jars.VERSION}", lambda: _kafka(1)),
    Peer("shards", "Turnstile, 2 shards", lambda: _turnstile(1, 2), "kafka"),
    Peer("limited", "Turnstile, 2 shards, limits on", lambda: _turnstile(1, 2, limited=True), "kafka"),
    Peer("kafka-brokers", f"Kafka {jars.VERSION}, 3 brokers", lambda: _kafka(3)),
    Peer("brokers", "Turnstile, 3 brokers", lambda: _turnstile(3, 1), "kafka-brokers"),
)
