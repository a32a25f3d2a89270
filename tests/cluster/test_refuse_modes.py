"""Refusals under each mode on real processes: what clients see, and that every refusal is counted and journaled once."""

import os
import re
import signal
import ssl
from pathlib import Path

import pytest
from announcing import v1
from certificates import make_certificate
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from harness import admitted, audited, connect, until

IP = "127.1.0.1"
MODE, HOLD_MS = "turnstile.refuse.mode", "turnstile.refuse.hold.ms"
FULL = "kafka_connections_max_per_ip"
FIN, RST, NOTHING = "FIN", "RST", "nothing"
SEEN = {"close": {FIN}, "reset": {RST}, "hold": {NOTHING}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusing")
    listeners = ["PLAIN=127.0.0.1:0", "EDGE=127.0.0.1:0,proxy=required,trusted=127.0.0.1"]
    certificate = make_certificate(folder)
    if certificate is not None:
        listeners.append(certificate.listener("TLS"))
    options = [word for each in listeners for word in ("--listener", each)]
    limits = ("--set", f"{FULL}=0", "--set", f"kafka_connections_max_overrides={IP}:1")
    with audited(folder / "d", *options, *limits) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def as_before(cluster):
    yield
    cluster.put("/v1/cluster_config", {"upsert": {}, "remove": [MODE, HOLD_MS]})


def refuse_as(cluster, mode, hold_ms=60_000):
    cluster.put("/v1/cluster_config", {"upsert": {MODE: mode, HOLD_MS: hold_ms}, "remove": []})


def refused(cluster):
    return cluster.metric("turnstile_connections_refused_total")


def counted(cluster, before, count):
    """The counters have exactly `count` refusals more than `before`."""
    until(lambda: refused(cluster) == before + count, what=f"{count} refusals counted")


def connection(cluster, listener):
    """One that sends what a proxy sends and nothing else; None where connect(2) met the RST already."""
    try:
        sock = connect(cluster.listeners[listener][0], "127.0.0.1")
    except ConnectionResetError:
        return None
    if listener == "EDGE":
        sock.sendall(v1("203.0.113.7", 4711))
    return sock


def end_of(sock):
    """How the broker has ended a connection, if it has."""
    sock.setblocking(False)
    try:
        return FIN if sock.recv(1) == b"" else "bytes"
    except ConnectionResetError:
        return RST
    except BlockingIOError:
        return NOTHING


def descriptors(cluster):
    return sum(len(list(Path(f"/proc/{cluster.shard_pid(shard)}/fd").iterdir())) for shard in range(2))


def resident_kib(cluster):
    status = [Path(f"/proc/{cluster.shard_pid(shard)}/status").read_text() for shard in range(2)]
    return sum(int(re.search(r"VmRSS:\s+(\d+)", each)[1]) for each in status)


@pytest.mark.parametrize("mode", SEEN)
@pytest.mark.parametrize("listener", ["PLAIN", "TLS", "EDGE"])
def test_clients_see_the_mode_and_each_refusal_is_counted_once(cluster, listener, mode):
    if listener not in cluster.listeners:
        pytest.skip("needs openssl")
    refuse_as(cluster, mode)
    before = refused(cluster)
    made = [connection(cluster, listener) for _ in range(20)]
    counted(cluster, before, 20)
    assert {RST if sock is None else end_of(sock) for sock in made} == SEEN[mode]
    for sock in filter(None, made):
        sock.close()


def test_a_tls_client_fails_its_handshake_when_the_time_is_over(cluster):
    if "TLS" not in cluster.listeners:
        pytest.skip("needs openssl")
    refuse_as(cluster, "hold", 300)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connect(cluster.listeners["TLS"][0], "127.0.0.1") as sock, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(sock)


def gets_in(cluster):
    """Whether librdkafka does; its client has ended when this returns, which a traceback that is kept would put off."""
    client = AdminClient({"bootstrap.servers": "{}:{}".format(*cluster.listeners["PLAIN"][0]), "log_level": 0})
    try:
        client.list_topics(timeout=1.5)
    except KafkaException:
        return False
    return True


@pytest.mark.parametrize("mode", SEEN)
def test_librdkafka_is_kept_out_under_each_mode(cluster, mode):
    refuse_as(cluster, mode, 300)
    before = refused(cluster)
    assert not gets_in(cluster)
    assert refused(cluster) > before


def test_two_thousand_are_held_within_bounds_and_keep_nothing_from_others(cluster):
    """Clients that never read, and send garbage, and a change of mode meanwhile."""
    address = cluster.listeners["PLAIN"][0]
    used_kib, before = resident_kib(cluster), refused(cluster)
    refuse_as(cluster, "hold")
    held = [connect(address, "127.0.0.1") for _ in range(2000)]
    counted(cluster, before, 2000)
    for sock in held:
        sock.setblocking(False)
        sock.send(b"\xff" * 1024)
    assert descriptors(cluster) >= 2000
    assert resident_kib(cluster) < used_kib + 32 * 1024
    with connect(address, IP) as let_in:  # they hold no token, and no place of another
        assert admitted(let_in)
    cluster.set(MODE, "close")
    before = refused(cluster)
    with connect(address, "127.0.0.1") as fresh:
        counted(cluster, before, 1)
        assert end_of(fresh) == FIN
    assert {end_of(sock) for sock in held} == {NOTHING}  # theirs is the time that was in force
    for sock in held:
        sock.close()


def test_shards_that_were_stopped_refuse_and_let_go_when_they_go_on(cluster):
    refuse_as(cluster, "hold", 2000)
    before = refused(cluster)
    made = [connect(cluster.listeners["PLAIN"][0], "127.0.0.1") for _ in range(20)]
    counted(cluster, before, 20)
    pids = [cluster.shard_pid(shard) for shard in range(2)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    made += [connect(cluster.listeners["PLAIN"][0], "127.0.0.1") for _ in range(20)]
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for sock in made:
        assert sock.recv(1) == b""
        sock.close()
    counted(cluster, before, 40)


@pytest.mark.parametrize("mode", SEEN)
def test_load_reconciles_under_each_mode(cluster, mode):
    refuse_as(cluster, mode, 300)
    host, port = cluster.listeners["PLAIN"][0]
    sources = f"{IP}/32,127.1.0.2/32"
    said = cluster.turnstile("load", "--bootstrap", f"{host}:{port}", "--sources", sources, "--connections", "200")
    assert "they agree" in said
