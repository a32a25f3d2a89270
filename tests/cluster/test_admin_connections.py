"""Clients of the admin API that leave, stay or say nothing take no descriptor that the cluster needs. 256 a process here."""

import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest
from harness import Cluster, admitted, connect, until
from raw_http import ask

DESCRIPTORS = 256


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster") / "data", descriptors=DESCRIPTORS)
    yield running
    running.stop()


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def coordinator(cluster):
    return cluster.get("/v1/cluster")["coordinator_pid"]


def until_a_killed_shard_is_back(cluster):
    before = cluster.shard_pid(0)
    os.kill(before, signal.SIGKILL)
    until(
        lambda: cluster.shard_pid(0) != before and cluster.get("/healthz")["status"] == "ok", what="the shard is back"
    )


def test_connections_that_their_clients_have_closed_hold_nothing(cluster):
    pid = coordinator(cluster)
    before = descriptors(pid)
    for _ in range(2 * DESCRIPTORS):
        assert ask(cluster.admin, "GET", "/healthz").status == 200
    until(lambda: descriptors(pid) <= before + 1, what="no descriptor is kept for a client that has left")
    until_a_killed_shard_is_back(cluster)
    assert coordinator(cluster) == pid


@pytest.mark.parametrize(
    "said", [b"", b"GET /v1/sh", b"PUT /v1/quotas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"]
)
def test_beside_clients_that_stay_the_api_answers_and_shards_come_back(cluster, said):
    pid = coordinator(cluster)
    host, _, port = cluster.admin.removeprefix("http://").rpartition(":")
    with contextlib.ExitStack() as open_ones:
        for _ in range(2 * DESCRIPTORS):
            sock = open_ones.enter_context(socket.create_connection((host, int(port)), timeout=10))
            with contextlib.suppress(OSError):
                sock.sendall(said)
        assert ask(cluster.admin, "GET", "/v1/shards").status == 200
        until_a_killed_shard_is_back(cluster)
        with connect(cluster.address) as client:
            assert admitted(client)
        assert coordinator(cluster) == pid
    assert "Traceback" not in Path(cluster.errors).read_text()


def test_a_coordinator_that_is_killed_takes_the_kept_connection_along_and_the_next_call_has_another(cluster):
    for _ in range(3):
        pid = coordinator(cluster)
        os.kill(pid, signal.SIGKILL)
        assert until(lambda old=pid: coordinator(cluster) != old, what="another coordinator")
        cluster.set("kafka_connections_max_per_ip", 50)
