"""Limits by Redpanda's names that Kafka has, too: the tighter of both rules, and those that Redpanda changes live change live."""

import contextlib
import struct

import pytest
from batches import batch
from confluent_kafka import KafkaException, Producer
from harness import connect, running
from request_bytes import (
    THROTTLING_QUOTA_EXCEEDED,
    answer,
    array,
    create_topics,
    created,
    produce,
    produced,
    request,
    string,
)

from broker.wire import wire
from turnstile.admin_client import AdminRefused

INVALID_PARTITIONS, INVALID_SESSION_TIMEOUT, MESSAGE_TOO_LARGE, POLICY_VIOLATION = 37, 26, 10, 44


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = ("--topic", "t", "--set", "kafka_request_max_bytes=100000", "--set", "group_min_session_timeout_ms=6000")
    with running(tmp_path_factory.mktemp("d"), *options, shards=1) as cluster:
        yield cluster


def join(sock, timeout_ms):
    """The error of a JoinGroup 0 with this session timeout."""
    body = string("g") + struct.pack(">i", timeout_ms) + string("") + string("consumer")
    sock.sendall(request(11, 0, "c", body + array(string("range") + struct.pack(">i", 0))))
    return int.from_bytes(answer(sock)[4:6], "big")


def produce_error(sock, size):
    sock.sendall(produce("c", "t", 0, batch(b"x" * size)))
    return produced(answer(sock)).error


def test_a_larger_request_closes_its_connection(cluster):
    with connect(cluster.address) as sock:
        assert produce_error(sock, 90_000) == 0
    with connect(cluster.address) as sock, contextlib.suppress(ConnectionResetError):
        sock.sendall(struct.pack(">i", 100_001))
        assert sock.recv(1) == b""


def test_a_larger_batch_is_refused_live(cluster):
    with connect(cluster.address) as sock:
        cluster.set("kafka_batch_max_bytes", 5000)
        assert [produce_error(sock, size) for size in (4000, 6000)] == [0, MESSAGE_TOO_LARGE]
        cluster.set("kafka_batch_max_bytes", None)
        assert produce_error(sock, 6000) == 0


def test_session_timeouts_lie_between_the_tighter_bounds(cluster):
    cluster.set("group_max_session_timeout_ms", 10_000)
    with connect(cluster.address) as sock:
        assert [join(sock, each) for each in (5999, 10_001)] == [INVALID_SESSION_TIMEOUT] * 2
        assert join(sock, 6000) != INVALID_SESSION_TIMEOUT


def test_there_are_no_more_topics_and_partitions_than_may_be_also_of_those_that_clients_ask_for(cluster):
    cluster.set("kafka_topics_max", 2)
    with connect(cluster.address) as sock:
        for name, error in (("u", 0), ("v", POLICY_VIOLATION)):
            sock.sendall(create_topics("c", {name: 1}, strict=False))
            assert created(answer(sock), strict=False).errors == {name: error}
        sock.sendall(request(3, 1, "c", array(string("w"))))
        told = wire.parse_response(answer(sock), 3, 1).body
        assert [each.error_code for each in told.topics] == [POLICY_VIOLATION]
        cluster.unset("kafka_topics_max")
        cluster.set("topic_partitions_per_shard", 4)
        sock.sendall(create_topics("c", {"v": 3, "w": 2}, strict=False))
        assert created(answer(sock), strict=False).errors == {"v": INVALID_PARTITIONS, "w": 0}
    cluster.unset("topic_partitions_per_shard")


def transactional(cluster, name):
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": name, "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", name)
    producer.flush(30)
    return producer


def test_a_transactional_id_too_many_ends_the_one_used_least_recently(cluster):
    cluster.set("max_transactions_per_coordinator", 2)
    oldest, second = transactional(cluster, "oldest"), transactional(cluster, "second")
    newest = transactional(cluster, "newest")
    with pytest.raises(KafkaException):
        oldest.commit_transaction(30)
    second.commit_transaction(30)
    newest.commit_transaction(30)
    cluster.unset("max_transactions_per_coordinator")
    again = transactional(cluster, "oldest")
    again.commit_transaction(30)


def test_beyond_the_controllers_rates_topics_are_refused_one_by_one_and_the_admin_api_says_429(tmp_path):
    rates = [f"rps_limit_{group}_operations=1" for group in ("topic", "configuration")]
    options = [word for each in ("enable_controller_log_rate_limiting=true", *rates) for word in ("--set", each)]
    names = [f"t{number}" for number in range(4)]
    with running(tmp_path / "d", *options, "--topic", "a", "--topic", "b", shards=1) as cluster:
        with connect(cluster.address) as sock:
            sock.sendall(create_topics("c", dict.fromkeys(names, 1), strict=True))
            errors = created(answer(sock), strict=True).errors
        assert [errors[name] for name in names] == [0, *[THROTTLING_QUOTA_EXCEEDED] * 3]
        with pytest.raises(AdminRefused, match="rps_limit_configuration_operations") as refused:
            for cap in range(50, 200):
                cluster.set("kafka_connections_max", cap)
        assert refused.value.status == 429
        assert cluster.get("/v1/cluster_config")["kafka_connections_max"] >= 50
