"""Authentication: SASL PLAIN and SCRAM and TLS with librdkafka, users by kafka-configs and by `turnstile user`."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Cluster, running, until

DELAY_MS = 400
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key, made by the command that the README has for it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    home = tmp_path_factory.mktemp("tls")
    shown = README.read_text().replace("\\\n", "")
    (command,) = re.findall(r"^openssl .*$", shown, re.MULTILINE)
    subprocess.run(shlex.split(command, comments=True), cwd=home, check=True, capture_output=True)
    return home / "server.pem", home / "server.key"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Cluster]:
    cert, key = certificate
    listeners = (
        "PLAINTEXT=127.0.0.1:0", "SASL=127.0.0.1:0,sasl", f"TLS=127.0.0.1:0,tls,cert={cert},key={key}",
        f"BOTH=127.0.0.1:0,sasl,tls,cert={cert},key={key}",
    )  # fmt: skip
    options = [word for listener in listeners for word in ("--listener", listener)]
    options += ["--set", f"connection.failed.authentication.delay.ms={DELAY_MS}"]
    with running(tmp_path_factory.mktemp("sasl") / "data", *options, shards=2) as cluster:
        cluster.turnstile("user", "add", "alice", "--password", "alice-secret")
        yield cluster


def settings(cluster: Cluster, listener: str, **more: object) -> dict[str, object]:
    host, port = cluster.listeners[listener][0]
    return {"bootstrap.servers": f"{host}:{port}", **more}


def sasl(mechanism: str, user: str = "alice", password: str = "alice-secret") -> dict[str, object]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def works(client: dict[str, object], topic: str) -> None:
    """Asserts that the client produces a record and reads it back."""
    admin = AdminClient(client)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
    producer = Producer(client)
    producer.produce(topic, b"hello")
    assert producer.flush(30) == 0
    with Consumer({**client, "group.id": topic}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        (message,) = consumer.consume(1, timeout=30)
        assert message.value() == b"hello"


def failures(cluster: Cluster) -> float:
    return cluster.metric("turnstile_auth_failures_total")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in(cluster, topic, mechanism):
    works(settings(cluster, "SASL", **sasl(mechanism)), topic)


def test_a_wrong_password_gets_nowhere_and_is_counted(cluster):
    before = failures(cluster)
    errors = []
    wrong = sasl("SCRAM-SHA-512", password="guess")
    client = AdminClient(settings(cluster, "SASL", **wrong, error_cb=errors.append))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)

    def is_told() -> bool:
        client.poll(0.1)
        return any(error.name() == "_AUTHENTICATION" for error in errors)

    until(is_told, what="that the password is wrong")
    until(lambda: failures(cluster) > before, what="the failure is counted")


def test_a_wrong_password_is_answered_late(cluster):
    """KIP-306: the answer to a wrong password is delayed."""
    assert _plain(cluster, b"\0alice\0guess") >= DELAY_MS / 1000
    assert _plain(cluster, b"\0nobody\0guess") >= DELAY_MS / 1000


def _plain(cluster: Cluster, token: bytes) -> float:
    """Seconds until SaslAuthenticate with PLAIN is answered."""

    def frame(api_key: int, version: int, body: bytes) -> bytes:
        header = struct.pack(">hhih", api_key, version, 7, 4) + b"test"
        return struct.pack(">i", len(header) + len(body)) + header + body

    with socket.create_connection(cluster.listeners["SASL"][0], timeout=10) as sock:
        sock.sendall(frame(17, 1, struct.pack(">h", 5) + b"PLAIN"))
        assert sock.recv(1000)[8:10] == b"\0\0"
        began = time.monotonic()
        sock.sendall(frame(36, 0, struct.pack(">i", len(token)) + token))
        assert sock.recv(1000)[8:10] == struct.pack(">h", 58), "SASL_AUTHENTICATION_FAILED"
        took_s = time.monotonic() - began
        assert sock.recv(1) == b"", "and that was it"
    return took_s


def test_a_client_without_a_name_does_not_get_in(cluster):
    with pytest.raises(KafkaException):
        AdminClient(settings(cluster, "SASL")).list_topics(timeout=1)


def test_client_works_over_tls(cluster, certificate, topic):
    works(settings(cluster, "TLS", **{"security.protocol": "SSL", "ssl.ca.location": str(certificate[0])}), topic)


def test_client_works_with_sasl_over_tls(cluster, certificate, topic):
    both = {**sasl("SCRAM-SHA-512"), "security.protocol": "SASL_SSL", "ssl.ca.location": str(certificate[0])}
    works(settings(cluster, "BOTH", **both), topic)


@pytest.mark.jars
def test_kafka_configs_adds_describes_and_removes_a_users_password(cluster, jvm, topic):
    bootstrap = str(settings(cluster, "PLAINTEXT")["bootstrap.servers"])

    def configs(*args: str) -> str:
        ran = jvm("kafka-configs", "--bootstrap-server", bootstrap, *args, "--entity-type", "users",
                  "--entity-name", "bob")  # fmt: skip
        assert ran.code == 0, ran.err
        return ran.out + ran.err

    added = "SCRAM-SHA-256=[iterations=8192,password=bob-secret],SCRAM-SHA-512=[password=bob-secret]"
    assert "Completed updating config for user bob." in configs("--alter", "--add-config", added)
    described = configs("--describe")
    assert "SCRAM credential configs for user-principal 'bob' are " in described
    assert "SCRAM-SHA-256=iterations=8192" in described and "SCRAM-SHA-512=iterations=4096" in described
    works(settings(cluster, "SASL", **sasl("SCRAM-SHA-256", "bob", "bob-secret")), topic)
    configs("--alter", "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM-SHA-256" not in configs("--describe")
    works(settings(cluster, "SASL", **sasl("SCRAM-SHA-512", "bob", "bob-secret")), f"{topic}-again")


def test_a_quota_holds_for_its_user_alone(cluster, topic):
    """The principal of the connection decides: alice is throttled, ANONYMOUS with the same client-id is not."""
    cluster.turnstile("quota", "set", "user=alice", "producer_byte_rate=20000")
    told: dict[str, list[float]] = {"alice": [], "anonymous": []}
    admin = AdminClient(settings(cluster, "PLAINTEXT"))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
    for name, client in (
        ("alice", settings(cluster, "SASL", **sasl("PLAIN"))),
        ("anonymous", settings(cluster, "PLAINTEXT")),
    ):
        on_throttle = told[name].append
        producer = Producer(
            {**client, "client.id": "app", "throttle_cb": lambda event, on=on_throttle: on(event.throttle_time)}
        )
        for _ in range(25):
            producer.produce(topic, b"x" * 10_000)
            producer.flush(30)
        producer.poll(0)
    assert max(told["alice"]) > 0.1
    assert told["anonymous"] == []
    explained = cluster.turnstile("quota", "explain", "user=alice", "client-id=app")
    assert "producer_byte_rate" in explained and "user=alice" in explained
    cluster.turnstile("quota", "unset", "user=alice")
