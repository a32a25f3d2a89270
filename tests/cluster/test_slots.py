"""`max.connections` (KIP-402) on real processes: a full broker lets wait, and the inter-broker listener gets in."""

import os
import select
import signal
from collections import Counter
from contextlib import ExitStack, suppress

import pytest
from harness import admitted, connect, running, until

from broker.journal.reader import events
from shards.ownership import home_of

LISTENERS = (
    "--listener", "EXTERNAL=127.0.0.1:0", "--listener", "INTERNAL=127.0.0.1:0",
    "--set", "inter.broker.listener.name=INTERNAL",
)  # fmt: skip
API_VERSIONS = bytes.fromhex("000000110012000000000001000774657374696e67")


@pytest.fixture(scope="module", params=[1, 3])
def used(request, tmp_path_factory):
    with running(tmp_path_factory.mktemp("slots") / "data", *LISTENERS, shards=request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(used):
    used.reset()
    until(lambda: used.metric("turnstile_connections_open") == 0, what="those of the test before are gone")
    used.set("listener.name.internal.max.connections", 100)
    return used


class Clients:
    """Connections in the order in which they were made."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.open = []

    def more(self, count, listener="EXTERNAL"):
        fresh = [connect(self._cluster.listeners[listener][0]) for _ in range(count)]
        self.open += fresh
        return fresh

    def close(self, *socks):
        for sock in socks:
            sock.close()
            self.open.remove(sock)

    def counted(self):
        return sum(each["connections"] for each in self._cluster.get("/v1/shards")["shards"])


@pytest.fixture
def clients(cluster):
    clients = Clients(cluster)
    yield clients
    clients.close(*list(clients.open))


def ask(socks):
    for sock in socks:
        sock.sendall(API_VERSIONS)


def answered(socks):
    """Those that have an answer, which is taken from them."""
    got = []
    for sock in socks:
        sock.settimeout(0)
        try:
            head = sock.recv(4)
        except BlockingIOError:
            continue
        finally:
            sock.settimeout(60)
        assert head, "closed"
        rest = int.from_bytes(head, "big")
        while rest:
            rest -= len(sock.recv(rest))
        got.append(sock)
    return got


def test_a_connection_to_a_full_broker_waits_and_gets_in_when_another_leaves(cluster, clients):
    cluster.set("max.connections", 10)
    first = clients.more(10)
    assert all(map(admitted, first))
    waiting = clients.more(6)
    ask(waiting)
    in_now = []
    for count in range(1, 4):
        clients.close(first.pop())
        until(lambda count=count: in_now.extend(answered(waiting)) or len(in_now) == count, what="one who waits")
        assert clients.counted() == 10
    cluster.set("max.connections", 12)
    until(lambda: in_now.extend(answered(waiting)) or len(in_now) == 5, what="two more")
    cluster.unset("max.connections")
    until(lambda: in_now.extend(answered(waiting)) or len(in_now) == 6, what="the last one")


def test_a_listener_that_is_full_hinders_no_other(cluster, clients):
    cluster.set("listener.name.external.max.connections", 3)
    assert all(map(admitted, clients.more(3)))
    ask(clients.more(2))
    assert all(map(admitted, clients.more(20, "INTERNAL")))
    assert clients.counted() == 23


def test_the_inter_broker_listener_gets_in_and_the_connection_idle_longest_goes(cluster, clients):
    cluster.set("max.connections", 8)
    outside = clients.more(8)
    assert all(map(admitted, outside))
    by_use = [outside[index] for index in (3, 5, 0, 7, 1, 6, 2, 4)]
    for sock in by_use:  # one after the other: from now on the first is idle longest
        assert admitted(sock)
    for count in range(1, 4):
        assert admitted(*clients.more(1, "INTERNAL"))
        gone = by_use.pop(0)
        closed, _, _ = select.select([gone, *by_use], [], [], 10)
        assert closed == [gone] and gone.recv(1) == b"", [outside.index(each) for each in closed]
        clients.close(gone)
        assert all(map(admitted, by_use)), "no other connection was closed"
        assert clients.counted() == 8, f"after {count}"
    # Those outside still can't get in.
    ask(clients.more(1))
    assert clients.counted() == 8


def test_room_is_made_only_when_there_is_none(cluster, clients):
    cluster.set("max.connections", 8)
    outside = clients.more(6)
    assert all(map(admitted, outside))
    assert all(map(admitted, clients.more(2, "INTERNAL")))
    cluster.set("max.connections", 5)
    assert all(map(admitted, outside)), "lowering closes no connection"
    cluster.set("max.connections", 20)
    assert all(map(admitted, clients.more(5, "INTERNAL")))
    assert all(map(admitted, outside))
    assert clients.counted() == 13


def test_the_inter_broker_listener_has_its_own_limit(cluster, clients):
    cluster.set("listener.name.internal.max.connections", 2)
    inside = clients.more(2, "INTERNAL")
    assert all(map(admitted, inside))
    third = clients.more(1, "INTERNAL")
    ask(third)
    clients.close(inside[0])
    until(lambda: answered(third), what="the third")


def refused(cluster):
    """How many were refused since the start, by reason."""
    return Counter({row["reason"]: row["count"] for row in cluster.get("/v1/refusals?by=reason")["refusals"]})


def test_a_limit_that_refuses_holds_for_the_inter_broker_listener_too(cluster, clients):
    cluster.set("max.connections", 3)
    cluster.set("kafka_connections_max", 6)
    before = refused(cluster)
    socks = clients.more(12, "INTERNAL")
    assert sum(map(admitted, socks)) == 6
    assert refused(cluster) - before == {"broker_cap": 6}
    clients.close(*socks)
    until(lambda: clients.counted() == 0, what="all tokens are back")
    assert all(map(admitted, clients.more(6, "INTERNAL")))


def test_a_connection_that_waits_for_its_listeners_slot_leaves_the_brokers_to_the_other_listener(tmp_path):
    listeners = ("--listener", "EXTERNAL=127.0.0.1:0", "--listener", "OTHER=127.0.0.1:0")
    with running(tmp_path / "data", *listeners, shards=3) as cluster:
        cluster.set("listener.name.external.max.connections", 2)
        cluster.set("kafka_connections_max", 10)
        clients = Clients(cluster)
        assert all(map(admitted, clients.more(2)))
        waiting = clients.more(9)  # one at least on each shard, most likely
        ask(waiting)
        other = clients.more(9, "OTHER")
        assert sum(map(admitted, other)) == 8
        assert not answered(waiting)
        clients.close(*clients.open[:2])
        until(lambda: answered(waiting), what="one that waited")
        clients.close(*list(clients.open))


def test_a_stopped_shard_pauses_no_listener_for_a_pool_that_lets_nobody_wait(tmp_path):
    """Each address at home there is refused after a second, while its listener goes on with the next ones."""
    stopped = next(shard for shard in range(3) if shard not in (home_of("broker", 3), home_of("listener:EXTERNAL", 3)))
    options = ("--set", "max.connections=1000", "--set", "kafka_connections_max_per_ip=5")
    with running(tmp_path / "data", *LISTENERS[:2], *options, shards=3) as cluster:
        pid = cluster.shard_pid(stopped)
        addresses = [f"127.2.{number // 200}.{number % 200 + 1}" for number in range(90)]
        elsewhere = [ip for ip in addresses if home_of(f"ip:{ip}", 3) != stopped]
        with ExitStack() as stack:
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
            socks = {ip: stack.enter_context(connect(cluster.listeners["EXTERNAL"][0], ip)) for ip in addresses}
            ask(socks.values())
            decided = set()

            def look():
                for ip in socks.keys() - decided:
                    try:
                        if answered([socks[ip]]):
                            decided.add(ip)
                    except (AssertionError, ConnectionResetError):  # refused
                        decided.add(ip)
                return (
                    len(decided) >= len(addresses) // 3 and len(decided.intersection(elsewhere)) >= len(elsewhere) // 3
                )

            until(look, what="those that the other shards have accepted are decided")


def test_at_the_end_of_a_shard_none_of_those_that_wait_gets_in(tmp_path):
    with running(tmp_path / "data", *LISTENERS, shards=3) as cluster:
        cluster.set("max.connections", 4)
        clients = Clients(cluster)
        assert all(map(admitted, clients.more(4)))
        waiting = clients.more(12)
        ask(waiting)
        until(lambda: cluster.metric("turnstile_waiting") > 0, what="some wait")
        cluster.stop()
        for sock in waiting:
            with suppress(ConnectionResetError):
                assert sock.recv(1) == b"", "closed without an answer"
        journaled = list(events(cluster.data_dir / "journal"))
        admitted_then = [event for event in journaled if event["kind"] == "admitted"]
        refused = [event for event in journaled if event["kind"] == "refused"]
        assert len(admitted_then) == 4
        assert refused and {event["reason"] for event in refused} == {"shard_unavailable"}
        clients.close(*list(clients.open))
