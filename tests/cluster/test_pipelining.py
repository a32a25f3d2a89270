"""A client that pipelines without end does not keep its shard from others, nor the shard from its coordinator."""

import pytest
from batches import batch
from harness import admitted, connect, running, until
from pipelining import flooding
from request_bytes import produce

_API_VERSIONS = bytes.fromhex("000000110012000000000001000774657374696e67")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipelining")
    listeners = ("--listener", "PLAIN=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl")
    with running(folder / "d", *listeners, "--topic", "t:1") as cluster:
        yield cluster


FLOODS = {
    "ApiVersions": ("PLAIN", _API_VERSIONS),
    "ApiVersions before authentication": ("SASL", _API_VERSIONS),
    "Produce, acks=0": ("PLAIN", produce("x", "t", 0, batch(b"x"), acks=0)),
    "Produce, acks=1": ("PLAIN", produce("x", "t", 0, batch(b"x"))),
}


@pytest.mark.parametrize("api", FLOODS)
def test_beside_a_client_that_pipelines_on_two_connections_others_are_served(cluster, api):
    """Eight others, so on every shard, are answered again and again, and no shard is ended or does not answer."""
    listener, frame = FLOODS[api]
    processes = cluster.processes()

    def requests():
        return cluster.metric("turnstile_requests_total")

    others = [connect(cluster.listeners["PLAIN"][0]) for _ in range(8)]
    with flooding(cluster.listeners[listener][0], frame, connections=2):
        for _ in range(20):
            before = requests()
            assert all(admitted(other) for other in others)
            until(lambda before=before: requests() > before + 500, what="it goes on pipelining")
        assert [shard["state"] for shard in cluster.get("/v1/shards")["shards"]] == ["up", "up"]
    for other in others:
        other.close()
    assert cluster.processes() == processes
