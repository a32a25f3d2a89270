"""A cluster in the place of another release: clients find that release's versions, and work with them."""

import socket

import pytest
from confluent_kafka import Consumer, Producer
from harness import running
from request_bytes import request

API_VERSIONS, UNSUPPORTED_VERSION = 18, 35


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("d"), "--as-version", "2.8", "--topic", "orders") as cluster:
        yield cluster


def answers(cluster, *frames):
    """The answers on a connection; b"" for the one at which the cluster ended it."""
    host, _, port = cluster.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock, sock.makefile("rb") as stream:
        for frame in frames:
            sock.sendall(frame)
            size = stream.read(4)
            yield stream.read(int.from_bytes(size, "big"))


def test_a_client_produces_and_consumes(cluster):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    producer.produce("orders", b"one", partition=0)
    assert producer.flush(10) == 0
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    with Consumer(settings) as consumer:
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        assert message is not None and message.value() == b"one"


def test_api_versions_are_those_of_the_release(cluster):
    (told,) = answers(cluster, request(API_VERSIONS, 0, "c", b""))
    keys = {int.from_bytes(told[at : at + 2], "big"): told[at + 5] for at in range(10, len(told), 6)}
    assert (keys[1], keys[API_VERSIONS]) == (12, 3) and 68 not in keys


def test_versions_that_the_release_does_not_have_are_refused_as_by_it(cluster):
    (told,) = answers(cluster, request(API_VERSIONS, 4, "c", b"\0\2c\2c\0"))
    assert int.from_bytes(told[4:6], "big") == UNSUPPORTED_VERSION
    (told,) = answers(cluster, request(1, 13, "c", b""))
    assert told == b"", "Fetch 13 came with 3.1; its connection is ended"


def test_an_unknown_release_is_refused_with_those_there_are(cluster):
    assert "'2.7' is not one of '2.8'" in cluster.turnstile("up", "--as-version", "2.7", expect=2)
