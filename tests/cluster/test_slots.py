"""`max.connections` (KIP-402) on real processes: a full broker lets wait, and the inter-broker listener gets in."""

import pytest
from harness import admitted, connect, running, until

LISTENERS = (
    "--listener", "EXTERNAL=127.0.0.1:0", "--listener", "INTERNAL=127.0.0.1:0",
    "--set", "inter.broker.listener.name=INTERNAL",
)  # fmt: skip
API_VERSIONS = bytes.fromhex("000000110012000000000001000774657374696e67")


@pytest.fixture(params=[1, 3])
def cluster(request, tmp_path):
    with running(tmp_path / "data", *LISTENERS, shards=request.param) as cluster:
        cluster.set("listener.name.internal.max.connections", 100)
        yield cluster


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
            sock.settimeout(10)
        assert head, "closed"
        rest = int.from_bytes(head, "big")
        while rest:
            rest -= len(sock.recv(rest))
        got.append(sock)
    return got


def test_who_finds_the_broker_full_waits_and_gets_in_when_somebody_leaves(cluster, clients):
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
        assert gone.recv(1) == b""
        clients.close(gone)
        assert all(map(admitted, by_use)), "nobody else was closed"
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
    assert all(map(admitted, outside)), "lowering closes nobody"
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


def test_a_limit_that_refuses_holds_for_the_inter_broker_listener_too(cluster, clients):
    cluster.set("max.connections", 3)
    cluster.set("kafka_connections_max", 6)
    socks = clients.more(12, "INTERNAL")
    assert sum(map(admitted, socks)) == 6
    refused = {row["reason"]: row["count"] for row in cluster.get("/v1/refusals?by=reason")["refusals"] if row["count"]}
    assert refused == {"broker_cap": 6}
    clients.close(*socks)
    until(lambda: clients.counted() == 0, what="all tokens are back")
    assert all(map(admitted, clients.more(6, "INTERNAL")))
