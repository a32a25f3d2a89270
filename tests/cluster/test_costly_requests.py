"""Small requests that would cost everybody much, and answers that nobody reads: what they may take is bounded."""

import socket
import struct
from contextlib import ExitStack

import pytest
from batches import batch
from harness import admitted, connect, running, until
from request_bytes import answer, array, fetch, produce, produced, request, string

PRODUCE, DESCRIBE_CONFIGS, DELETE_GROUPS = 0, 32, 42
BATCH, BATCHES = 100_000, 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = ("--topic", "t:1", "--set", f"turnstile.queued.max.response.bytes={BATCH * BATCHES}")
    with running(tmp_path_factory.mktemp("costly") / "d", *options, shards=1) as cluster:
        pids = cluster.processes()
        yield cluster
        assert cluster.processes() == pids, "a process died"


def null_batches(count: int) -> bytes:
    partition = struct.pack(">ii", 0, -1)
    return request(PRODUCE, 7, "c", struct.pack(">hhi", -1, 1, 1000) + array(string("t") + array(*[partition] * count)))


def delete_groups(count: int) -> bytes:
    return request(DELETE_GROUPS, 1, "c", array(*(string(f"group-{number}") for number in range(count))))


@pytest.mark.parametrize(
    "frame", [null_batches(1_000_000), delete_groups(200_000)], ids=["1,000,000 null batches", "200,000 groups"]
)
def test_a_request_of_more_items_than_there_may_be_closes_its_connection_and_no_other(cluster, frame):
    with connect(cluster.address) as good, connect(cluster.address) as bad:
        bad.sendall(frame)
        assert admitted(good)
        assert bad.recv(1) == b""
        assert admitted(good)


def tagged(tags: int) -> bytes:
    """A DeleteGroups 2 of no group, with so many tagged fields in its header."""
    count = bytes((tags & 0x7F | 0x80, tags >> 7))
    header = struct.pack(">hhi", DELETE_GROUPS, 2, 7) + string("c") + count + b"\5\0" * tags
    return struct.pack(">i", len(header) + 2) + header + b"\1\0"


def test_a_structure_of_more_than_10000_tagged_fields_closes_its_connection_and_no_other(cluster):
    with connect(cluster.address) as good, connect(cluster.address) as bad:
        good.sendall(tagged(10_000))
        assert answer(good)[:4] == (7).to_bytes(4, "big")
        bad.sendall(tagged(10_001))
        assert bad.recv(1) == b""
        assert admitted(good)


def test_an_array_of_more_than_a_million_items_closes_its_connection_where_a_request_may_have_more(tmp_path):
    options = ("--set", "turnstile.request.max.items=3000000")
    with running(tmp_path / "d", *options, shards=1) as cluster, connect(cluster.address) as bad:
        group = string("g") + array(string("t") + struct.pack(">i", 1_000_001) + bytes(4 * 1_000_001))
        bad.sendall(request(9, 1, "c", group))
        assert bad.recv(1) == b""
        with connect(cluster.address) as good:
            assert admitted(good)


def test_a_resource_that_is_named_thousands_of_times_is_told_once(cluster):
    resource = struct.pack(">b", 4) + string("0") + struct.pack(">i", -1)
    with connect(cluster.address) as sock:
        sock.sendall(request(DESCRIBE_CONFIGS, 1, "c", array(*[resource] * 8000) + b"\1"))
        described = answer(sock)
    assert int.from_bytes(described[8:12], "big") == 1
    assert len(described) < 200_000


FETCH_ALL = fetch("c", "t", max_bytes=50 << 20)
FETCH_LEAST = fetch("c", "t", max_bytes=1)  # one batch, which is read into memory


def test_while_others_read_nothing_a_fetch_is_answered_with_one_batch(cluster):
    """turnstile.queued.max.response.bytes: what their kernels don't take waits in the shard, unless it stays in its file."""
    with ExitStack() as stack, connect(cluster.address) as good:
        for _ in range(BATCHES):
            good.sendall(produce("c", "t", 0, batch(b"x" * BATCH)))
            assert produced(answer(good)).error == 0

        def fetched() -> int:
            good.sendall(FETCH_ALL)
            return len(answer(good)) // BATCH

        def one_more_reads_nothing(asked: bytes) -> int:
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(cluster.address)
            sock.sendall(asked * 40)
            return fetched()

        assert [one_more_reads_nothing(FETCH_ALL) for _ in range(20)] == [BATCHES] * 20
        until(lambda: one_more_reads_nothing(FETCH_LEAST) == 1, what="there is no room for more than one batch")
        stack.close()
        until(lambda: fetched() == BATCHES, what="there is room again")
