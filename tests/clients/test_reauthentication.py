"""SASL sessions that end (KIP-368), in raw frames and with librdkafka and Java: a client proves again who it is, or goes.

With CLIENTS_PEER=kafka the frames are asked of a real Kafka 4.1.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from conftest import PEER
from harness import Cluster, running, until
from users import add_users, is_served, kafka_settings
from wired import Wired, wired

from broker.wire import codes
from scripts.peers import servers

LIFETIME_MS = 1500
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-256"
USERS = ("alice", "bob")
_KAFKA = {**kafka_settings(USERS, [SCRAM]), "connections.max.reauth.ms": str(LIFETIME_MS)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if PEER is not None:
        pytest.skip("its metrics are Turnstile's")
    options = ("--listener", "SASL=127.0.0.1:0,sasl", "--topic", "t:1")
    with running(
        tmp_path_factory.mktemp("reauth") / "data", *options, "--set", f"connections.max.reauth.ms={LIFETIME_MS}"
    ) as cluster:
        add_users(cluster, USERS)
        yield cluster


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    if PEER == "kafka":
        with servers.kafka(_KAFKA) as server:
            yield server.bootstrap
    else:
        yield request.getfixturevalue("cluster").bootstrap


@pytest.fixture
def connection(bootstrap: str) -> Iterator[Wired]:
    with wired(bootstrap) as connection:
        yield connection


def shake(connection: Wired, mechanism: str = PLAIN) -> int:
    return connection.ask("sasl_handshake", 1, mechanism=mechanism).error_code


def prove(connection: Wired, user: str = "alice", password: str | None = None, version: int = 1) -> Any:
    token = f"\0{user}\0{password or f'{user}-secret'}".encode()
    return connection.ask("sasl_authenticate", version, auth_bytes=token)


def login(connection: Wired) -> None:
    assert shake(connection) == codes.NONE
    assert prove(connection).error_code == codes.NONE


def wait_until_over(connection: Wired) -> None:
    """Nothing is asked meanwhile: the next request is one of a session that is over."""
    time.sleep(LIFETIME_MS / 1000 + 0.1)  # what is tested is the broker's clock: there is nothing to wait for


@pytest.mark.parametrize("version", [1, 2])
def test_the_answer_says_how_long_the_session_lasts(connection, version):
    shake(connection)
    assert prove(connection, version=version).session_lifetime == timedelta(milliseconds=LIFETIME_MS)
    assert is_served(connection)


def test_a_request_of_a_session_that_is_over_ends_its_connection(connection):
    login(connection)
    until(lambda: not is_served(connection), within_s=LIFETIME_MS / 1000 + 5, what="the connection is closed")


def test_a_client_that_proves_again_goes_on(connection):
    login(connection)
    wait_until_over(connection)
    login(connection)
    assert is_served(connection)


def test_a_second_handshake_within_a_second_is_of_a_wrong_state(connection):
    login(connection)
    login(connection)
    assert shake(connection) == codes.ILLEGAL_SASL_STATE
    assert is_served(connection)


def test_the_user_stays_the_same(connection):
    login(connection)
    assert shake(connection) == codes.NONE
    answered = prove(connection, "bob")
    assert answered.error_code == codes.SASL_AUTHENTICATION_FAILED
    assert answered.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert not is_served(connection)


def test_a_wrong_password_ends_the_connection(connection):
    login(connection)
    shake(connection)
    assert prove(connection, "alice", "guess").error_code == codes.SASL_AUTHENTICATION_FAILED
    assert not is_served(connection)


def test_the_mechanism_stays_the_same(connection):
    login(connection)
    assert shake(connection, SCRAM) == codes.NONE
    with contextlib.suppress(AssertionError, ConnectionError, struct.error):
        pytest.fail(f"answered {prove(connection)}")
    assert not is_served(connection)


def test_nothing_else_is_served_between_handshake_and_proof(connection):
    login(connection)
    shake(connection)
    is_served(connection)  # Kafka answers an error and closes
    assert not is_served(connection)


# --- clients ----------------------------------------------------------------------------------------------------------


def counted(cluster: Cluster, name: str) -> float:
    return cluster.metric(f"turnstile_{name}_total")


def test_librdkafka_proves_again_on_the_same_connections(cluster):
    before = counted(cluster, "reauthentications"), counted(cluster, "sessions_expired")
    errors: list[Any] = []
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": SCRAM,
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        "error_cb": errors.append,
    }
    producer = Producer(settings)

    def proved_again() -> bool:
        producer.produce("t", b"x")
        assert producer.flush(10) == 0
        return counted(cluster, "reauthentications") >= before[0] + 3

    until(proved_again, within_s=20, what="it proves again")
    assert counted(cluster, "sessions_expired") == before[1] and not errors


@pytest.mark.jars
def test_java_proves_again_on_the_same_connections(cluster, jvm, tmp_path: Path):
    before = counted(cluster, "reauthentications"), counted(cluster, "sessions_expired")
    config = tmp_path / "client.properties"
    config.write_text(
        f"bootstrap.servers={cluster.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism={PLAIN}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="alice-secret";\n'
    )
    records = ("--num-records", "40", "--record-size", "10", "--throughput", "10")
    ran = jvm("kafka-producer-perf-test", "--topic", "t", *records, "--producer.config", str(config))
    assert "40 records sent" in ran.out, ran.out + ran.err
    assert counted(cluster, "reauthentications") > before[0]
    assert counted(cluster, "sessions_expired") == before[1]
