"""Clusters that are like managed ones: each starts with the limits of its rows in force, and beyond them happens what they say."""

import contextlib
import resource
import struct
from contextlib import ExitStack

import pytest
from batches import batch
from harness import admitted, connect, running, until
from request_bytes import answer, array, fetch, produce, produced, request, string

from turnstile.presets import presets, settings_like

CLUSTER, RATE = "turnstile.cluster.max.connections", "turnstile.cluster.max.connection.creation.rate"
IN, OUT = "kafka_throughput_limit_node_in_bps", "kafka_throughput_limit_node_out_bps"
_INVALID_SESSION_TIMEOUT, _MESSAGE_TOO_LARGE = 26, 10


@contextlib.contextmanager
def like(name, folder, *options, brokers=1, shards=1):
    """Its limits are in force, but those that `options` set."""
    with running(folder / "d", "--like", name, *options, brokers=brokers, shards=shards) as cluster:
        values = cluster.get("/v1/cluster_config")
        set_ = {each.partition("=")[0] for each in options}
        expected = {each: value for each, value in settings_like(name, brokers).items() if each not in set_}
        assert {setting: str(values[setting]) for setting in expected} == expected
        lists = f"turnstile presets {name} --brokers {brokers}" if brokers > 1 else f"turnstile presets {name}"
        assert f"`{lists}` lists all" in " ".join(cluster.started["notes"])
        yield cluster


@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


KINDS = {tuple(settings_like(name, 1)): name for name in presets()}
"""A preset for each set of settings; tests/turnstile/test_presets.py checks the values of all of them."""
STARTED_BELOW = {
    tuple(settings_like(name, 1)) for name in ("redpanda-tier-1", "warpstream-serverless", "huawei-2u4g", "ibm-lite")
}
"""Sets of settings with which tests below start a cluster, without one more setting."""


@pytest.mark.parametrize("name", [name for kind, name in KINDS.items() if kind not in STARTED_BELOW])
def test_a_preset_starts_with_its_limits_in_force(tmp_path, name):
    with like(name, tmp_path):
        pass


def test_what_is_set_goes_before_the_preset_and_each_broker_has_its_share(tmp_path):
    with like("msk-serverless", tmp_path, "--set", "kafka_connections_max_per_ip=7", brokers=3) as cluster:
        values = cluster.get("/v1/cluster_config")
        assert (values[CLUSTER], values[IN], values["kafka_connections_max_per_ip"]) == (3000, 66666666, 7)
    with like("msk-serverless", tmp_path, "--set", f"{CLUSTER}=5", "--override-stored") as cluster:
        assert cluster.get("/v1/cluster_config")[CLUSTER] == 5


def test_one_connection_more_than_the_brokers_is_refused(tmp_path, many_files):
    """refuse: kafka_connections_max."""
    with like("redpanda-tier-1", tmp_path, brokers=9) as cluster, ExitStack() as stack:
        address = cluster.listeners["PLAINTEXT"][1]
        opened = [stack.enter_context(connect(address)) for _ in range(1000)]
        assert all(map(admitted, opened))
        assert not admitted(stack.enter_context(connect(address)))
        assert admitted(stack.enter_context(connect(cluster.listeners["PLAINTEXT"][0])))


def test_one_connection_more_than_the_clusters_is_refused_by_each_broker(tmp_path, many_files):
    """refuse: turnstile.cluster.max.connections."""
    with like("warpstream-serverless", tmp_path, brokers=2) as cluster, ExitStack() as stack:
        addresses = cluster.listeners["PLAINTEXT"]
        opened = [stack.enter_context(connect(addresses[n % 3 % 2])) for n in range(2000)]
        assert all(map(admitted, opened))
        assert not any(admitted(stack.enter_context(connect(address))) for address in addresses)


def test_new_connections_beyond_the_clusters_rate_are_refused_by_each_broker(tmp_path):
    """refuse: turnstile.cluster.max.connection.creation.rate, lower than the row's: it lets ten seconds' worth through at once."""
    with like("msk-serverless", tmp_path, "--set", f"{RATE}=1", brokers=2) as cluster, ExitStack() as stack:
        addresses = cluster.listeners["PLAINTEXT"]
        opened = [stack.enter_context(connect(addresses[n % 2])) for n in range(16)]
        assert sum(map(admitted, opened)) == 10


def test_one_connection_more_than_an_addresss_is_refused(tmp_path, many_files):
    """refuse: kafka_connections_max_per_ip."""
    with like("huawei-2u4g", tmp_path) as cluster, ExitStack() as stack:
        opened = [stack.enter_context(connect(cluster.address, "127.0.0.2")) for _ in range(1000)]
        assert all(map(admitted, opened))
        assert not admitted(stack.enter_context(connect(cluster.address, "127.0.0.2")))
        assert admitted(stack.enter_context(connect(cluster.address, "127.0.0.3")))


def test_connections_beyond_their_rate_and_their_number_are_delayed_and_none_is_refused(tmp_path):
    """delay: max.connection.creation.rate, max.connections; both lower than the rows', for the sake of slow machines."""
    options = ("--set", "quota.window.num=2", "--set", "max.connection.creation.rate=10")
    with like("confluent-basic", tmp_path, *options) as cluster, ExitStack() as stack:
        with ExitStack() as storm:
            opened = [storm.enter_context(connect(cluster.address)) for _ in range(40)]
            assert all(map(admitted, opened))
        assert cluster.metric("vectorized_kafka_rpc_connections_wait_rate") > 0
        until(lambda: cluster.metric("turnstile_connections_open") == 0, what="closed")
        cluster.set("max.connections", 3)
        opened = [stack.enter_context(connect(cluster.address)) for _ in range(3)]
        assert all(map(admitted, opened))
        late = stack.enter_context(connect(cluster.address))
        late.settimeout(0.3)
        with pytest.raises(TimeoutError):
            admitted(late)
        opened[0].close()
        late.settimeout(60)
        assert answer(late)
        assert cluster.metric("turnstile_connections_refused_total") == 0


def test_bytes_beyond_their_rate_are_throttled_and_none_is_refused(tmp_path):
    """throttle: kafka_throughput_limit_node_in_bps, kafka_throughput_limit_node_out_bps (a lower one, for the sake of slow
    machines)."""
    with like("ibm-lite", tmp_path, "--topic", "t") as cluster, connect(cluster.address) as sock:
        for _ in range(2):
            sock.sendall(produce("c", "t", 0, batch(b"x" * 250_000)))  # a second's worth of it passes
            error, throttle_ms = produced(answer(sock))
            assert error == 0 and throttle_ms > 1000
        assert cluster.metric("turnstile_throttled_requests_total", quota=IN) == 2
    with like("confluent-basic", tmp_path, "--topic", "t", "--set", f"{OUT}=20000", "--override-stored") as cluster:
        with connect(cluster.address) as sock:
            delays = []
            for _ in range(2):  # what was sent delays the next one
                sock.sendall(fetch("c", "t", max_bytes=100_000))
                told = answer(sock)
                assert len(told) > 100_000
                delays.append(int.from_bytes(told[4:8], "big"))
        assert delays[0] == 0 and delays[1] > 1000
        assert cluster.metric("turnstile_throttled_requests_total", quota=OUT) == 1


def join(sock, timeout_ms):
    """The error of a JoinGroup 0 with this session timeout."""
    body = string("g") + struct.pack(">i", timeout_ms) + string("") + string("consumer")
    sock.sendall(request(11, 0, "c", body + array(string("range") + struct.pack(">i", 0))))
    return int.from_bytes(answer(sock)[4:6], "big")


def test_session_timeouts_beyond_their_bounds_are_refused_and_idle_connections_closed(tmp_path):
    """error:INVALID_SESSION_TIMEOUT, close: connections.max.idle.ms, shortened."""
    with like("event-hubs-standard", tmp_path, "--set", "connections.max.idle.ms=1000") as cluster:
        with connect(cluster.address) as sock:
            assert [join(sock, each) for each in (5999, 300_001)] == [_INVALID_SESSION_TIMEOUT] * 2
            assert join(sock, 6000) != _INVALID_SESSION_TIMEOUT
        with connect(cluster.address) as sock:
            assert admitted(sock)
            assert sock.recv(1) == b""


def test_messages_and_requests_that_are_too_large_end_as_the_notes_say(tmp_path):
    """unknown: message.max.bytes, socket.request.max.bytes, fetch.max.bytes (a lower one)."""
    options = ("--topic", "t", "--set", "fetch.max.bytes=5000")
    with like("confluent-basic", tmp_path, *options) as cluster:
        with connect(cluster.address) as sock:
            sock.sendall(produce("c", "t", 0, batch(b"x" * 8_000_000)))
            assert produced(answer(sock)).error == _MESSAGE_TOO_LARGE
            for _ in range(2):
                sock.sendall(produce("c", "t", 0, batch(b"x" * 4000)))
                assert produced(answer(sock)).error == 0
            sock.sendall(fetch("c", "t"))
            assert 4000 < len(answer(sock)) < 5500
        with connect(cluster.address) as sock, contextlib.suppress(ConnectionResetError):
            sock.sendall(struct.pack(">i", 100_000_001))
            assert sock.recv(1) == b""
