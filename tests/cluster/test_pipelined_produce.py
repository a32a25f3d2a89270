"""Produce requests that one connection sends without waiting for answers are stored in their order, however large they are."""

import pytest
from batches import batch, values_of
from harness import connect, running, until
from request_bytes import answer, fetch, produce_each, string

PARTITIONS = 600


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("pipelined") / "d", "--topic", f"t:{PARTITIONS}", shards=1) as cluster:
        yield cluster


def produce(value: bytes, *partitions: int, acks: int = 1) -> bytes:
    """Produce 7 of one record for each partition."""
    return produce_each("c", "t", partitions, batch(value), acks=acks)


def fetched(sock, partition: int) -> list[bytes]:
    sock.sendall(fetch("c", "t", partition))
    answered = answer(sock)
    at = 4 + 4 + 4 + len(string("t")) + 4 + 4 + 2 + 8 + 8 + 4
    return values_of(answered[at + 4 :])


@pytest.mark.parametrize("items", [PARTITIONS, 3 * PARTITIONS], ids=["appended in turns", "read in turns, too"])
def test_a_small_request_behind_a_large_one_does_not_overtake_it(cluster, items):
    last = PARTITIONS - 1
    large = produce(b"first", *(number % last for number in range(items)), last)
    with connect(cluster.address) as sock:
        before = len(fetched(sock, last))
        sock.sendall(large + produce(b"second", last))
        for _ in range(2):
            answer(sock)
        assert fetched(sock, last)[before:] == [b"first", b"second"]


def test_a_large_request_without_acknowledgement_is_stored_although_its_client_leaves_at_once(cluster):
    last = PARTITIONS - 2
    with connect(cluster.address) as sock:
        sock.sendall(produce(b"left", *(number % last for number in range(3 * PARTITIONS)), last, acks=0))
    with connect(cluster.address) as sock:
        until(lambda: fetched(sock, last)[-1:] == [b"left"], what="it is stored")
