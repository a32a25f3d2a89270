"""Users whose passwords are "NAME-secret", on Turnstile and on a real Kafka, and connections on which they have logged in."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from harness import Cluster
from wired import Wired

from broker.wire import codes

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def add_users(cluster: Cluster, names: Iterable[str]) -> None:
    for name in names:
        cluster.turnstile("user", "add", name, "--password", f"{name}-secret")


def plain_jaas(names: Iterable[str], broker: str | None = None) -> str:
    """What Kafka is told of users who log in by PLAIN; its brokers log in as `broker`, if they have to."""
    own = [] if broker is None else [f'username="{broker}" password="{broker}-secret"']
    return " ".join([_PLAIN, *own, *(f'user_{name}="{name}-secret"' for name in names)]) + ";"


def kafka_settings(names: Sequence[str], scram: Iterable[str]) -> dict[str, str]:
    """Of a Kafka whose one listener for clients asks for a login, by PLAIN or these mechanisms; its brokers are the first user."""
    listener = "listener.name.plaintext"
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(["PLAIN", *scram]),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{listener}.plain.sasl.jaas.config": plain_jaas(names, names[0]),
        **{f"{listener}.{mechanism.lower()}.sasl.jaas.config": SCRAM_JAAS for mechanism in scram},
    }


def login(connection: Wired, user: str) -> Wired:
    """The connection, on which the user has proven the password by PLAIN."""
    assert connection.ask("sasl_handshake", 1, mechanism="PLAIN").error_code == codes.NONE
    token = f"\0{user}\0{user}-secret".encode()
    assert connection.ask("sasl_authenticate", 1, auth_bytes=token).error_code == codes.NONE
    return connection


def is_served(connection: Wired) -> bool:
    """Whether a request is answered; the connection is closed otherwise."""
    try:
        connection.ask("list_groups", 4, states_filter=())
        return True
    except (ConnectionError, struct.error, AssertionError):
        return False
