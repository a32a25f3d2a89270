"""A full request queue of a running broker: what it stalls, in which order it is served, and that it holds nobody for good.

A Produce keeps its handler busy for an hour: so the queue stays as it is until a test switches it off, or adds handlers.
"""

import contextlib
import fcntl
import os
import signal
import ssl
import termios
import threading
from contextlib import ExitStack

import pytest
from batches import batch, values_of
from certificates import make_certificate
from harness import admitted, connect, running, until
from request_bytes import answer, fetch, produce, produced, request, string
from users import add_users

QUEUE = "turnstile.request.queue"
ONE_HANDLER = ("--set", f"{QUEUE}=true", "--set", "num.io.threads=1", "--set", "queued.max.requests=2")
AN_HOUR = ("--set", "turnstile.request.cost=Produce=3600s")
QUEUED = "kafka_network_requestchannel_requestqueuesize"
API_VERSIONS = request(18, 0, "other", b"")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    listeners = ["PLAINTEXT=127.0.0.1:0", "SASL=127.0.0.1:0,sasl"]
    certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    if certificate is not None:
        listeners.append(certificate.listener("TLS"))
    options = [word for each in listeners for word in ("--listener", each)]
    topics = ("--topic", "t:20")
    with running(
        tmp_path_factory.mktemp("queue") / "d", *options, *ONE_HANDLER, *AN_HOUR, *topics, shards=1
    ) as cluster:
        add_users(cluster, ["alice"])
        yield cluster


@pytest.fixture
def cluster(shared):
    yield shared
    serve_all(shared)
    until(lambda: open_now(shared) == 0, what="all connections closed")
    shared.unset(QUEUE)


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


def open_now(cluster):
    return cluster.metric("turnstile_connections_open")


def serve_all(cluster):
    """All that waits is served at once."""
    cluster.set(QUEUE, False)


def asking(stack, cluster, frame, listener="PLAINTEXT"):
    """A connection that has sent a request."""
    sock = stack.enter_context(connect(cluster.listeners[listener][0]))
    sock.sendall(frame)
    return sock


def filling(stack, cluster, partition, count=3):
    """So many clients, one after the other: the first has the handler, those behind it the queue, a fourth finds no room."""
    clients = []
    for number in range(count):
        clients.append(asking(stack, cluster, produce("c", "t", partition, batch(b"%d" % number))))
        until(lambda: is_read(clients[-1]), what="read")
    return clients


def blocked(stack, cluster, partition):
    clients = filling(stack, cluster, partition, count=4)
    turn(cluster)
    return clients


def unread(sock):
    """The bytes that a client has sent and its broker has not read, as the kernel counts them."""
    local, remote = (f"{port:04X}" for port in (sock.getpeername()[1], sock.getsockname()[1]))
    with open("/proc/net/tcp") as table:
        for row in map(str.split, table):
            if row[1].endswith(f":{local}") and row[2].endswith(f":{remote}"):
                return int(row[4].partition(":")[2], 16)
    return 0


def has_arrived(sock):
    return fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)) == bytes(4)


def is_read(sock):
    return has_arrived(sock) and unread(sock) == 0


def turn(cluster):
    """The shard's loop has gone round since."""
    for _ in range(2):
        cluster.client.text("/metrics")


def is_stalled(cluster, sock):
    """What the client has sent is not read although the loop goes round."""
    until(lambda: has_arrived(sock), what="arrived")
    sent = unread(sock)
    turn(cluster)
    return 0 < sent == unread(sock)


def stored(stack, cluster, partition):
    answered = answer(asking(stack, cluster, fetch("f", "t", partition)))
    at = 4 + 4 + 4 + len(string("t")) + 4 + 4 + 2 + 8 + 8 + 4
    return values_of(answered[at + 4 :])


def test_a_full_queue_stalls_every_connection_of_the_shard_until_there_is_room(cluster, stack):
    clients = blocked(stack, cluster, 0)
    until(lambda: cluster.metric(QUEUED) == 2, what="full")
    assert cluster.metric("turnstile_request_handlers") == 1
    other = asking(stack, cluster, API_VERSIONS)
    assert is_stalled(cluster, other)
    serve_all(cluster)
    assert [produced(answer(client)).error for client in clients] == [0] * 4
    assert answer(other)
    assert stored(stack, cluster, 0) == [b"0", b"1", b"2", b"3"], "in the order in which they came"
    until(lambda: cluster.metric("turnstile_network_thread_blocked_seconds_total") > 0, what="counted")
    assert 0 <= cluster.metric("turnstile_request_handlers_busy_seconds_total") < 3600


def test_pipelined_requests_of_a_client_take_one_place_and_are_answered_in_their_order(cluster, stack):
    pipelining = stack.enter_context(connect(cluster.address))
    pipelining.sendall(b"".join(produce("c", "t", 1, batch(b"%d" % number)) for number in range(5)))
    until(lambda: is_read(pipelining), what="read")
    others = [asking(stack, cluster, produce("c", "t", 1, batch(b"other"))) for _ in range(2)]
    for other in others:
        until(lambda: is_read(other), what="there was a place for it")  # noqa: B023
    stalled = stack.enter_context(connect(cluster.address))
    until(lambda: cluster.metric(QUEUED) == 2, what="full")
    stalled.sendall(API_VERSIONS)
    serve_all(cluster)
    for _ in range(5):
        assert produced(answer(pipelining)).error == 0
    for other in others:
        answer(other)
    assert answer(stalled)
    assert [value for value in stored(stack, cluster, 1) if value != b"other"] == [
        b"%d" % number for number in range(5)
    ]


def test_more_handlers_take_up_what_waits_at_once(cluster, stack):
    clients = filling(stack, cluster, 2)
    cluster.set("num.io.threads", 2)
    until(lambda: cluster.metric(QUEUED) == 1, what="one is taken up")
    cluster.set("num.io.threads", 4)
    until(lambda: cluster.metric(QUEUED) == 0, what="all are")
    assert admitted(asking(stack, cluster, b"")), "and a handler is idle"
    for number in (2, 1):
        cluster.set("num.io.threads", number)
    serve_all(cluster)
    assert [produced(answer(client)).error for client in clients] == [0] * 3


def test_a_request_that_waits_is_served_although_its_client_has_left(cluster, stack):
    clients = filling(stack, cluster, 3)
    clients[1].close()
    until(lambda: open_now(cluster) == 2, what="the client is gone")
    until(lambda: cluster.metric(QUEUED) == 2, what="its request is not")
    serve_all(cluster)
    answer(clients[2])
    assert stored(stack, cluster, 3) == [b"0", b"1", b"2"]


def test_while_it_is_blocked_a_client_that_leaves_is_not_noticed(cluster, stack):
    clients = blocked(stack, cluster, 4)
    clients[2].close()
    turn(cluster)
    assert open_now(cluster) == 4
    serve_all(cluster)
    until(lambda: open_now(cluster) == 3, what="noticed")
    assert stored(stack, cluster, 4) == [b"0", b"1", b"2", b"3"]


def test_logins_and_handshakes_wait_while_it_is_blocked_and_get_through_then(cluster, stack):
    blocked(stack, cluster, 5)
    login = asking(stack, cluster, request(17, 1, "login", string("PLAIN")), "SASL")
    assert is_stalled(cluster, login)
    shaken = []
    if "TLS" in cluster.listeners:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        raw = stack.enter_context(connect(cluster.listeners["TLS"][0]))
        tls = stack.enter_context(context.wrap_socket(raw, do_handshake_on_connect=False))

        def shake():
            tls.do_handshake()
            tls.sendall(API_VERSIONS)
            shaken.append(answer(tls))

        shaking = threading.Thread(target=shake)
        shaking.start()
        until(lambda: unread(tls), what="its hello has arrived")
        assert is_stalled(cluster, tls) and not shaken
    serve_all(cluster)
    if "TLS" in cluster.listeners:
        shaking.join()
        assert shaken
    assert answer(login)[4:6] == b"\0\0"
    proof = b"\0alice\0alice-secret"
    login.sendall(request(36, 0, "login", len(proof).to_bytes(4, "big") + proof))
    assert answer(login)[4:6] == b"\0\0"


def test_a_request_over_tls_waits_as_any_other(cluster, stack):
    if "TLS" not in cluster.listeners:
        pytest.skip("no openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    [first] = filling(stack, cluster, 6, count=1)
    tls = context.wrap_socket(stack.enter_context(connect(cluster.listeners["TLS"][0])))
    stack.callback(tls.close)
    tls.sendall(produce("c", "t", 6, batch(b"1")) + API_VERSIONS)
    until(lambda: cluster.metric(QUEUED) == 1, what="in the queue")
    serve_all(cluster)
    assert produced(answer(tls)).error == 0 and answer(tls)
    answer(first)
    assert stored(stack, cluster, 6) == [b"0", b"1"]


def test_a_reset_drops_what_waits(cluster, stack):
    blocked(stack, cluster, 7)
    cluster.reset()
    add_users(cluster, ["alice"])
    until(lambda: cluster.metric(QUEUED) == 0, what="dropped")
    assert admitted(asking(stack, cluster, b""))
    assert stored(stack, cluster, 7) == []


def test_a_shard_that_is_killed_while_it_is_blocked_comes_back_with_an_empty_queue(cluster, stack):
    clients = blocked(stack, cluster, 8)
    os.kill(cluster.shard_pid(0), signal.SIGKILL)
    for client in clients:
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
    assert until(lambda: admitted(asking(stack, cluster, b"")), what="the shard is back")
    assert cluster.metric(QUEUED) == 0
    assert stored(stack, cluster, 8) == []


def test_a_broker_ends_cleanly_while_its_queue_is_full(tmp_path, stack):
    with running(tmp_path / "d", *ONE_HANDLER, *AN_HOUR, "--topic", "t:1", shards=1) as cluster:
        clients = blocked(stack, cluster, 0)
        clients.append(asking(stack, cluster, API_VERSIONS))
    for client in clients:
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_a_fault_that_delays_an_answer_keeps_no_handler(tmp_path, stack):
    cost = ("--set", "turnstile.request.cost=Produce=1ms")
    with running(tmp_path / "d", *ONE_HANDLER, *cost, "--topic", "t:1", shards=1) as cluster:
        cluster.turnstile("fault", "add", "delay", "--delay-ms", "3600000", "--client-id", "slow", "--name", "late")
        for number in range(5):
            asking(stack, cluster, produce("slow", "t", 0, batch(b"%d" % number)))
        until(lambda: cluster.metric("turnstile_requests_handled_total") >= 5, what="all five are served")
        assert produced(answer(asking(stack, cluster, produce("quick", "t", 0, batch(b"q"))))).error == 0
        assert len(stored(stack, cluster, 0)) == 6


def test_with_the_memory_for_requests_full_at_the_same_time_all_are_served(tmp_path, stack):
    """Five times the memory, and twenty requests for two places: neither waits for the other for good."""
    cost = ("--set", "turnstile.request.cost=Produce=5ms", "--set", "queued.max.request.bytes=300000")
    with running(tmp_path / "d", *ONE_HANDLER, *cost, "--topic", "t:1", shards=1) as cluster:
        large = produce("c", "t", 0, batch(os.urandom(150_000)))
        small = produce("c", "t", 0, batch(b"x"))
        clients = [asking(stack, cluster, large[:100_000]) for _ in range(10)]
        clients += [asking(stack, cluster, small) for _ in range(10)]
        for client in clients[:10]:
            client.sendall(large[100_000:])
        assert [produced(answer(client)).error for client in clients] == [0] * 20


def test_quotas_throttle_as_before(tmp_path, stack):
    cost = ("--set", "turnstile.request.cost=Produce=1ms", "--set", "quota.window.num=2")
    with running(tmp_path / "d", *ONE_HANDLER, *cost, "--topic", "t:1", shards=1) as cluster:
        cluster.put("/v1/quotas", {"alter": [{"entity": {"client-id": "c"}, "set": {"producer_byte_rate": 1000.0}}]})
        client = asking(stack, cluster, produce("c", "t", 0, batch(os.urandom(20_000))))
        assert produced(answer(client)).throttle_ms > 0
        until(lambda: cluster.metric("turnstile_muted") == 1, what="muted")
        client.sendall(API_VERSIONS)
        assert is_stalled(cluster, client), "it is not read while it is muted"
        assert admitted(asking(stack, cluster, b"")), "others are"


def test_handlers_and_queue_are_divided_among_shards(tmp_path):
    options = ("--set", f"{QUEUE}=true", "--set", "num.io.threads=5")
    with running(tmp_path / "d", *options, shards=2) as cluster:
        until(lambda: handlers_of(cluster) == [2, 3], what="both have counted")


def handlers_of(cluster):
    samples = [each for family in cluster.metrics() for each in family.samples]
    return sorted(each.value for each in samples if each.name == "turnstile_request_handlers")
