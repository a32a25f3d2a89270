"""Pools that shards know to be full (shards/tokens/full_pools.py), on real processes: no home is asked in a storm, and no token
is forgotten, whatever ends the connections that use them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from harness import Cluster, admitted, audited, connect, until

from shards.tokens.full_pools import ASKING

IP = "127.1.0.1"
PER_IP = "kafka_connections_max_per_ip"
CAP = 12
SHARDS = 3
KNOWING = 2 * ASKING
"""Refusals of a shard after which it knows that the pool is full, as it asks no more."""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with audited(tmp_path_factory.mktemp("full") / "d", shards=SHARDS) as cluster:
        cluster.set(PER_IP, CAP)
        yield cluster


class Held(NamedTuple):
    """As many connections as the cap lets in, and how many it refused until each shard knew that this is all."""

    socks: list[socket.socket]
    refused: int


@pytest.fixture
def held(cluster: Cluster) -> Iterator[Held]:
    socks: list[socket.socket] = []
    try:
        socks += [connect(cluster.address, IP) for _ in range(CAP)]
        assert all(map(admitted, socks))
        refused = 0
        while not all_know(cluster):
            assert storm(cluster, 50) == 0
            refused += 50
        yield Held(socks, refused)
    finally:
        for sock in socks:
            sock.close()


def storm(cluster: Cluster, count: int) -> int:
    """So many connections, one after the other; how many got in. They are closed."""
    let_in = 0
    for _ in range(count):
        with connect(cluster.address, IP) as sock:
            let_in += admitted(sock)
    return let_in


def all_know(cluster: Cluster) -> bool:
    """How many come to each shard is up to the kernel: under load, one may get three times as many as another."""
    by_shard = [row["count"] for row in cluster.get("/v1/refusals?by=shard")["refusals"]]
    return len(by_shard) == SHARDS and min(by_shard) >= KNOWING


def borrows_after(cluster: Cluster, decisions: int) -> float:
    """How often homes were asked, when the shards have told that so many connections were decided: both are told together."""
    until(lambda: cluster.metric("turnstile_decisions_total") == decisions, what=f"{decisions} decisions")
    return cluster.metric("turnstile_borrows_total")


def reasons(cluster: Cluster) -> set[str]:
    """Why connections were refused."""
    return {row["reason"] for row in cluster.get("/v1/refusals")["refusals"] if row["count"]}


def open_now(cluster: Cluster) -> int:
    return sum(row["connections"] for row in cluster.get("/v1/shards")["shards"])


def shard_with(cluster: Cluster, least: int) -> int:
    rows = cluster.get("/v1/shards")["shards"]
    return next(row["shard"] for row in rows if row["connections"] >= least)


def test_in_a_storm_no_home_is_asked(cluster: Cluster, held: Held) -> None:
    before = borrows_after(cluster, CAP + held.refused)
    assert storm(cluster, 300) == 0
    assert borrows_after(cluster, CAP + held.refused + 300) == before
    assert reasons(cluster) == {"ip_cap"}


def test_each_connection_that_closes_lets_one_in(cluster: Cluster, held: Held) -> None:
    for _ in range(6):
        held.socks.pop(0).close()
        until(lambda: open_now(cluster) == CAP - 1, what="seen as closed")
        fresh = [connect(cluster.address, IP) for _ in range(10)]
        let_in = [sock for sock in fresh if admitted(sock)]
        assert len(let_in) == 1
        held.socks.extend(let_in)
        for sock in fresh:
            if sock not in let_in:
                sock.close()


def test_the_tokens_of_a_shard_that_is_killed_are_free(cluster: Cluster, held: Held) -> None:
    shard = shard_with(cluster, 1)
    lost = cluster.get("/v1/shards")["shards"][shard]["connections"]
    os.kill(cluster.shard_pid(shard), signal.SIGKILL)
    with ExitStack() as stack:
        until(lambda: open_now(cluster) == CAP - lost, what="seen as dead")
        let_in = 0

        def one_more() -> bool:
            nonlocal let_in
            sock = stack.enter_context(connect(cluster.address, IP))
            let_in += admitted(sock)
            return let_in == lost

        until(one_more, what="as many let in as were lost")
        assert storm(cluster, 60) == 0


def test_while_a_shard_is_stopped_the_others_refuse_by_the_cap(cluster: Cluster, held: Held) -> None:
    """Its connections are open, so the pool is full; asked by a probe, it would not answer."""
    stopped = cluster.shard_pid(shard_with(cluster, 1))
    os.kill(stopped, signal.SIGSTOP)
    try:
        seen = 0
        while seen < 40:  # those that the stopped one would accept wait in its backlog
            with connect(cluster.address, IP) as sock:
                sock.settimeout(0.05)
                try:
                    assert sock.recv(1) == b""
                    seen += 1
                except TimeoutError:
                    pass
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert reasons(cluster) == {"ip_cap"}


def test_a_cap_that_is_raised_or_lifted_is_in_force_when_it_is_answered(cluster: Cluster, held: Held) -> None:
    for raised in range(CAP + 1, CAP + 6):
        cluster.set(PER_IP, raised)
        sock = connect(cluster.address, IP)
        assert admitted(sock)
        held.socks.append(sock)
        assert storm(cluster, 20) == 0
    cluster.unset(PER_IP)
    assert storm(cluster, 20) == 20
