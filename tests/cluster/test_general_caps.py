"""The cap of all addresses changes while some of them are in use, some cached elsewhere, and shards die: no change visits them."""

from __future__ import annotations

import os
import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Cluster, admitted, audited, connect, until

PER_IP = "kafka_connections_max_per_ip"
ADDRESSES = [f"127.3.0.{number}" for number in range(1, 13)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with audited(tmp_path / "data", shards=3) as cluster:
        yield cluster


class Clients:
    """The connections of all addresses."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.open: dict[str, list[socket.socket]] = {ip: [] for ip in ADDRESSES}

    def arrive(self, ip: str, count: int) -> int:
        """So many connections at once; those that are let in stay open."""
        fresh = [connect(self._cluster.address, ip) for _ in range(count)]
        in_ = [sock for sock in fresh if admitted(sock)]
        for sock in fresh:
            if sock not in in_:
                sock.close()
        self.open[ip] += in_
        return len(in_)

    def leave(self, ip: str, count: int) -> None:
        for _ in range(min(count, len(self.open[ip]))):
            self.open[ip].pop().close()

    def settle(self) -> None:
        """Until the cluster has seen what closed."""
        total = sum(map(len, self.open.values()))
        until(lambda: self._counted() == total, what=f"{total} open connections")

    def _counted(self) -> int:
        return sum(each["connections"] for each in self._cluster.get("/v1/shards")["shards"])

    def forget_the_dead(self) -> None:
        for socks in self.open.values():
            for sock in [sock for sock in socks if not admitted(sock)]:
                sock.close()
                socks.remove(sock)


@pytest.mark.parametrize("seed", range(int(os.environ.get("SEEDS", "1"))))
def test_no_address_is_above_a_cap_that_was_acknowledged(cluster: Cluster, seed: int) -> None:
    draw, clients, cap = random.Random(seed), Clients(cluster), 40
    cluster.set(PER_IP, cap)
    for step in range(12):
        for ip in ADDRESSES:
            clients.leave(ip, draw.randrange(6))
        clients.settle()
        for ip in draw.sample(ADDRESSES, 6):  # the others keep what they have cached for the next step
            before, asked = len(clients.open[ip]), draw.choice([1, 6, 12])
            assert clients.arrive(ip, asked) == min(asked, max(0, cap - before)), (step, ip, cap, before)
        if step in (4, 8):
            shard = draw.choice(cluster.get("/v1/shards")["shards"])
            os.kill(shard["pid"], signal.SIGKILL)
        cap = draw.choice([1, 2, 3, 12, 40])
        cluster.set(PER_IP, cap)
        if step in (4, 8):
            until(lambda: cluster.get("/healthz")["status"] == "ok", what="all shards")
            clients.forget_the_dead()
    for ip in ADDRESSES:
        clients.leave(ip, 40)
    clients.settle()
