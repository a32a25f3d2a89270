"""Clients that close their side together with what they send, or while a request waits: their tokens are free at once."""

import ssl
import struct

import pytest
from batches import batch
from certificates import make_certificate
from confluent_kafka import Consumer, TopicPartition
from harness import admitted, connect, running, until
from request_bytes import fetch, produce

HALF_A_FRAME = struct.pack(">i", 1000) + b"x" * 500


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    if certificate is None:
        pytest.skip("openssl is not installed")
    return certificate


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, certificate):
    listeners = ("PLAIN=127.0.0.1:0", certificate.listener("TLS"))
    options = [word for listener in listeners for word in ("--listener", listener)]
    options += ["--topic", "t:6", "--topic", "empty:1"]
    with running(tmp_path_factory.mktemp("vanished") / "d", *options, shards=3) as cluster:
        pids = cluster.processes()
        yield cluster
        assert cluster.processes() == pids, "a process died"


def nothing_is_open(cluster):
    until(lambda: sum(each["connections"] for each in cluster.get("/v1/shards")["shards"]) == 0, what="all are closed")


def open_tls(cluster):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connect(cluster.listeners["TLS"][0]), server_hostname="localhost")


FETCH = fetch("consumer", "empty", max_wait_ms=30_000)  # it waits


def stored(cluster, partition):
    """The number of records that were written to a partition."""
    host, port = cluster.listeners["PLAIN"][0]
    consumer = Consumer({"bootstrap.servers": f"{host}:{port}", "group.id": "g"})
    try:
        return consumer.get_watermark_offsets(TopicPartition("t", partition), timeout=10)[1]
    finally:
        consumer.close()


def test_half_a_frame_and_the_end_in_one_packet(cluster):
    for _ in range(100):
        with connect(cluster.listeners["PLAIN"][0]) as sock:
            sock.sendall(HALF_A_FRAME)
    nothing_is_open(cluster)


def test_a_record_that_asks_for_no_answer_and_the_end_are_stored_and_closed(cluster):
    one = batch(b"x")
    before = [stored(cluster, partition) for partition in range(6)]
    for number in range(90):
        with connect(cluster.listeners["PLAIN"][0]) as sock:
            sock.sendall(produce("p", "t", number % 6, one, acks=0))
            if number % 3 == 0:  # behind one that waits for another shard, perhaps
                sock.sendall(produce("p", "t", (number + 1) % 6, one, acks=0))
    nothing_is_open(cluster)
    until(
        lambda: sum(stored(cluster, partition) for partition in range(6)) == sum(before) + 120,
        what="every record is there",
    )


@pytest.mark.parametrize("more", [b"", FETCH, HALF_A_FRAME], ids=["alone", "pipelined", "half"])
def test_a_long_poll_of_a_client_that_has_left(cluster, more):
    for _ in range(20):
        with connect(cluster.listeners["PLAIN"][0]) as sock:
            assert admitted(sock)
            sock.sendall(FETCH + more)
    nothing_is_open(cluster)


def test_a_long_poll_over_tls_of_a_client_that_has_left(cluster):
    for _ in range(10):
        with open_tls(cluster) as sock:
            assert admitted(sock)
            sock.sendall(FETCH)
            sock.sendall(HALF_A_FRAME)
    nothing_is_open(cluster)
