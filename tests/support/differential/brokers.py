"""The two brokers that are asked, with the same settings: an authorizer, a listener for everyone and one for users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from harness import running
from users import SCRAM_JAAS, add_users, plain_jaas

from scripts.peers import jars, servers

KAFKA = jars.VERSION
"""The release that is compared with."""
USERS = ("alice", "bob")
SETTINGS = {
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "delegation.token.secret.key": "of-all-brokers",
}


class Addresses(NamedTuple):
    """ "host:port" where everyone may do everything, and where a user proves who it is by SASL."""

    everyone: str
    users: str


AT_ONCE = {f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share", "streams")}
"""Groups are assigned at each change, so that an answer does not depend on the time since the last one. Not known before 4.3."""


@contextmanager
def turnstile(folder: Path) -> Iterator[Addresses]:
    options = ["--listener", "PLAINTEXT=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl"]
    options += [word for key, value in {**SETTINGS, **AT_ONCE}.items() for word in ("--set", f"{key}={value}")]
    with running(folder, *options, brokers=1, shards=2) as cluster:
        add_users(cluster, USERS)
        plain, sasl = (cluster.listeners[name][0] for name in ("PLAINTEXT", "SASL"))
        yield Addresses(f"{plain[0]}:{plain[1]}", f"{sasl[0]}:{sasl[1]}")


@contextmanager
def kafka(version: str = KAFKA) -> Iterator[Addresses]:
    """Raises scripts.peers.fetching.Missing."""
    plain, sasl, controller = (servers.free_port() for _ in range(3))
    settings = {
        **SETTINGS,
        **(AT_ONCE if version >= "4.3" else {}),
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl.plain.sasl.jaas.config": plain_jaas(USERS),
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
    }
    with servers.kafka(settings, port=plain, version=version):
        yield Addresses(f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}")
