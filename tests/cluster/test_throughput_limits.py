"""Redpanda's throughput limits of a broker over the wire: told at once, held at the next request, one bucket for all shards."""

import time
from contextlib import ExitStack
from functools import partial

import pytest
from harness import connect, running, until
from request_bytes import answer, request
from throttle_times import SIZE, read, write

from broker.journal.reader import events
from shards.limits.node_throughput import NODE_IN, NODE_OUT

RATE = 100_000
CONNECTIONS = 4
API_VERSIONS = partial(request, 18, 0, body=b"")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    control = ("--set", 'kafka_throughput_control=[{"name": "own", "client_id": "exempt-.*"}]')
    with running(tmp_path_factory.mktemp("throughput") / "data", "--topic", "t", *control, shards=2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def unlimited_again(cluster):
    yield
    for name in (NODE_IN, NODE_OUT, "max_kafka_throttle_delay_ms", "kafka_throughput_controlled_api_keys"):
        cluster.unset(name)


def throttled_by(cluster, limit):
    return cluster.metric("turnstile_throttled_requests_total", quota=limit)


@pytest.mark.timed  # a home that does not answer within 250 ms leaves each shard to a bucket of its own
def test_all_connections_of_all_shards_share_one_limit_and_a_client_that_does_not_wait_is_held(cluster):
    began_s = time.monotonic()
    cluster.set(NODE_IN, RATE)
    with ExitStack() as opened:
        socks = [opened.enter_context(connect(cluster.address)) for _ in range(CONNECTIONS)]
        delays = [write(sock) for sock in socks[:-1]]
        hasty, wrote_s = socks[-1], time.monotonic()
        delays.append(write(hasty))
        took_s = time.monotonic() - began_s
        assert delays[-1] / 1000 >= CONNECTIONS * SIZE / RATE - took_s - 0.1, "it is told what all before it owe, too"
        socks[0].sendall(API_VERSIONS("c"))
        assert answer(socks[0]), "what is not controlled is not held"
        write(hasty, size=10)
        assert time.monotonic() - wrote_s >= delays[-1] / 1000
        exempt = opened.enter_context(connect(cluster.address))
        assert write(exempt, "exempt-1") == write(exempt, "exempt-1") == 0
    told = set(delays) - {0}
    assert told
    until(lambda: told_in_the_journal(cluster) >= told, what="the journal's rows")
    assert throttled_by(cluster, NODE_IN) >= len(told)


def told_in_the_journal(cluster):
    rows = events(cluster.data_dir / "journal")
    return {row["throttle_ms"] for row in rows if row["kind"] == "throttled" and row["limit"] == NODE_IN}


def test_what_was_sent_delays_the_next_fetch_which_keeps_its_records(cluster):
    with connect(cluster.address) as sock:
        assert write(sock) == 0
        cluster.set("max_kafka_throttle_delay_ms", 40)
        cluster.set(NODE_OUT, 1000)
        assert read(sock)[0] == 0, "an answer is charged when it is there"
        throttle_ms, size = read(sock)
        assert throttle_ms == 40, "a minute is owed, and no delay is longer than the setting"
        assert size > SIZE
        assert write(sock, size=10) == 40, "the longer of both directions, whichever the request's is"
    assert throttled_by(cluster, NODE_OUT) >= 2


def test_apis_are_controlled_by_name_and_a_client_that_leaves_while_held_is_gone(cluster):
    cluster.set(NODE_IN, 1)
    cluster.set("kafka_throughput_controlled_api_keys", ["api_versions"])
    with connect(cluster.address) as sock:
        assert write(sock) == 0
        sock.sendall(API_VERSIONS("c") * 2)
        answer(sock)
    until(lambda: cluster.metric("turnstile_connections_open") == 0, what="the held connection's end")
    for name, value, why in (
        ("kafka_throughput_controlled_api_keys", "produce,nothing", "each entry must be one of"),
        ("kafka_throughput_control", '[{"client_id": "("}]', "RE2"),
        ("kafka_quota_balancer_window_ms", "5000", "not a setting"),
    ):
        assert why in cluster.turnstile("config", "set", name, value, expect=1), name
