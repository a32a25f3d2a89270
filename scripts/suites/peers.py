"""The clusters a suite is run against: Turnstile of two shards, Turnstile of three brokers, Apache Kafka; all with SETTINGS."""

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


class Peer(NamedTuple):
    """`start` is a context manager whose value is the target."""

    name: str
    shown: str
    start: Callable[[], AbstractContextManager[Target]]


@contextmanager
def _turnstile(brokers: int, shards: int) -> Iterator[Target]:
    with (
        tempfile.TemporaryDirectory(prefix="suite-") as folder,
        turnstile.Cluster(limits=SETTINGS, brokers=brokers, shards=shards) as cluster,
    ):
        yield Target(cluster.bootstrap, brokers, Path(folder))


@contextmanager
def _kafka() -> Iterator[Target]:
    kafka_jars()
    with tempfile.TemporaryDirectory(prefix="suite-") as folder, servers.kafka(SETTINGS) as server:
        yield Target(server.bootstrap, 1, Path(folder))


PEERS = (
    Peer("kafka", f"Kafka {jars.VERSION}", _kafka),
    Peer("shards", "Turnstile, 2 shards", lambda: _turnstile(1, 2)),
    Peer("brokers", "Turnstile, 3 brokers", lambda: _turnstile(3, 1)),
)
