"""The PROXY protocol in front of a cluster: the announced address counts everywhere, a wrong one nowhere, and nothing is left."""

import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import request_bytes
from acls import ALLOWED_UNLESS_DENIED, deny_host
from announcing import CRC32C, LOCAL, PROXY, binary, tlv, v1, v2
from certificates import make_certificate
from confluent_kafka import Consumer, Producer
from forwarding import forwarded
from harness import TURNSTILE, admitted, audited, connect, running, until

from broker.accept.proxy_listener import MOST_WAITING
from broker.serve.call import Call
from broker.wire import apis, wire

PROXY_IP = "127.0.0.1"
EDGE = f"EDGE=127.0.0.1:0,proxy=required,trusted={PROXY_IP}+::1"
PLAIN = "PLAIN=127.0.0.1:0"
HONEST = "203.0.113.7"
_METADATA = next(key for key, api in apis.APIS.items() if api.name == "metadata")
_TOPIC_AUTHORIZATION_FAILED = 29


def serving(folder: Path, *options: str, **size: int):
    """A cluster with a listener behind proxies and one without, whose journal holds in the audit when it has ended."""
    return audited(folder / "d", "--listener", EDGE, "--listener", PLAIN, *options, **size)


def announced(cluster, header, listener="EDGE"):
    """A connection of a proxy that has sent its header."""
    sock = connect(cluster.listeners[listener][0], PROXY_IP)
    sock.sendall(header)
    return sock


def sources(cluster):
    return cluster.get("/v1/sources")["sources"]


def headers(cluster, kind):
    return cluster.metric("turnstile_proxy_headers_total", header=kind)


def descriptors(cluster, shards=2):
    """What each shard has open besides the segment of its journal, which ends when nothing happens."""
    return [sorted(_opened(cluster.shard_pid(shard))) for shard in range(shards)]


def _opened(pid):
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            what = str(fd.readlink())
            if not what.endswith(".live"):
                yield what.partition(":")[0]


def idle(cluster):
    """Whether no connection is open or waits, and no token is in use."""
    return (
        cluster.metric("turnstile_connections_open") == 0
        and cluster.metric("turnstile_proxy_waiting") == 0
        and cluster.get("/v1/tokens")["totals"]["in_use"] == 0
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("proxied")) as cluster:
        yield cluster


@pytest.fixture
def limits(cluster):
    """Sets limits, and unsets them at the end."""
    names = []

    def set_limit(name, value):
        names.append(name)
        cluster.set(name, value)

    yield set_limit
    for name in names:
        cluster.unset(name)
    until(lambda: idle(cluster), what="idle")


def test_an_address_counts_once_whichever_listener_it_comes_by(cluster, limits):
    limits("kafka_connections_max_per_ip", 2)
    ip = "127.9.0.1"
    with ExitStack() as stack:
        for header in (v1(ip, 1), v2(ip, 2, crc=True)):
            assert admitted(stack.enter_context(announced(cluster, header)))
        assert not admitted(stack.enter_context(announced(cluster, v2(ip, 3))))
        assert not admitted(stack.enter_context(connect(cluster.listeners["PLAIN"][0], ip)))
        assert admitted(stack.enter_context(announced(cluster, v2("127.9.0.2", 3))))
        assert admitted(stack.enter_context(connect(cluster.listeners["PLAIN"][0], PROXY_IP)))
        assert sources(cluster)[ip] == {"admitted": 2, "ip_cap": 2}
        explained = cluster.get(f"/v1/explain?ip={ip}")["brokers"][0]["connections"]
        assert [each["in_use"] for each in explained if each["pool"] == f"ip:{ip}"] == [2]
        endpoints = {(each["proxy"], each["endpoint"]): each["open"] for each in cluster.get("/v1/proxies")["proxies"]}
        assert endpoints == {(PROXY_IP, None): 3}
        limits("kafka_connections_max_per_ip", 3)
        assert admitted(stack.enter_context(announced(cluster, v1(ip, 4))))
        limits("kafka_connections_max_per_ip", 1)
        assert not admitted(stack.enter_context(announced(cluster, v1(ip, 5))))


def test_the_rate_of_an_address_is_that_of_the_announced_one(cluster):
    entity = {"ip": "203.0.113.99"}
    cluster.put("/v1/quotas", {"alter": [{"entity": entity, "set": {"connection_creation_rate": 1}}]})
    with ExitStack() as stack:
        for port in range(1, 31):
            stack.enter_context(announced(cluster, v2(entity["ip"], port)))
        assert admitted(stack.enter_context(announced(cluster, v2(HONEST, 1))))
        until(lambda: sources(cluster).get(entity["ip"], {}).get("ip_rate", 0) > 0, what="held, then refused")
        assert "ip_rate" not in sources(cluster).get(PROXY_IP, {})
    cluster.put("/v1/quotas", {"alter": [{"entity": entity, "remove": ["connection_creation_rate"]}]})
    until(lambda: idle(cluster), what="idle")


def test_a_listener_that_waits_for_a_slot_lets_announced_clients_wait(cluster, limits):
    limits("max.connections", 2)
    with ExitStack() as stack:
        open_now = [stack.enter_context(announced(cluster, v1(HONEST, port))) for port in (1, 2)]
        assert all(map(admitted, open_now))
        late = stack.enter_context(announced(cluster, v1("203.0.113.8", 3)))
        late.settimeout(0.3)
        with pytest.raises(TimeoutError):
            admitted(late)
        open_now[0].close()
        late.settimeout(60)
        assert len(request_bytes.answer(late)) > 4
        assert "203.0.113.8" in sources(cluster)


@pytest.mark.parametrize("header", [binary(LOCAL, 0, b""), b"PROXY UNKNOWN\r\n", binary(PROXY, 0x31, bytes(216))])
def test_a_header_that_announces_no_client_counts_as_the_proxy(cluster, header):
    before = sources(cluster).get(PROXY_IP, {}).get("admitted", 0)
    with announced(cluster, header) as sock:
        assert admitted(sock)
    until(lambda: sources(cluster)[PROXY_IP]["admitted"] == before + 1, what="counted")


def test_a_private_endpoint_is_shown(cluster):
    vpce = "aws:vpce-08d2bf15fac5001c9"
    with announced(cluster, v2(HONEST, 1, tlvs=tlv(0xEA, b"\1" + vpce[4:].encode()), crc=True)) as sock:
        assert admitted(sock)
        assert {"proxy": PROXY_IP, "endpoint": vpce, "open": 1} in cluster.get("/v1/proxies")["proxies"]


# ---- attacks


def malformed_headers(chance):
    """Without end: a header that no receiver may take, of an address that nobody has; whether its sender then leaves."""
    while True:
        forged = f"198.18.{chance.randrange(256)}.{chance.randrange(256)}"
        port = chance.randrange(1, 65536)
        line, good = v1(forged, port), v2(forged, port, crc=True)
        ends = good[16:28]
        crc = bytearray(good)
        crc[chance.randrange(16, 28)] ^= 1 << chance.randrange(8)
        wrong = [
            (line.replace(b"\r\n", b"\n") + b"\0\0", False),
            (line.replace(b"PROXY ", b"PROXY  "), False),
            (line.replace(b"TCP4", b"TCP6"), False),
            (line.replace(b"TCP4", b"UDP4"), False),
            (line.replace(b" 9092", b" 09092"), False),
            (line.replace(b" 9092", b" 70000"), False),
            (line.replace(b"192.0.2.1", b"192.0.2.01"), False),
            (line.replace(b" 9092\r\n", b"\r\n"), False),
            (line.replace(b"\r\n", b" " * 80 + b"\r\n"), False),
            (bytes(crc), False),
            (binary(0x11, 0x11, ends), False),
            (binary(0x2F, 0x11, ends), False),
            (binary(PROXY, 0x51, ends), False),
            (binary(PROXY, 0x14, ends), False),
            (binary(PROXY, 0x21, ends), False),
            (binary(PROXY, 0x11, ends[:-1]), False),
            (binary(PROXY, 0x11, ends, b"\x04\xff\xff"), False),
            (binary(PROXY, 0x11, ends, tlv(CRC32C, chance.randbytes(4))), False),
            (binary(PROXY, 0x11, ends, tlv(4, bytes(17_000))), False),
            (b"\0" + chance.randbytes(40), False),
            (line[: chance.randrange(len(line) - 1)], True),
            (good[: chance.randrange(len(good))], True),
        ]
        yield chance.choice(wrong)


def ended_by_peers(cluster):
    return sum(headers(cluster, f"PRX_{kind}") for kind in ("EMPTY", "ABORT", "TRUNCATED"))


def test_ten_thousand_malformed_headers_count_no_wrong_address_and_leave_nothing(cluster):
    chance = random.Random(7)
    wrong = malformed_headers(chance)
    until(lambda: idle(cluster), what="idle")
    with announced(cluster, v1(HONEST, 1)) as honest:
        assert admitted(honest)
    until(lambda: idle(cluster), what="idle")
    before, open_before = sources(cluster), descriptors(cluster)
    counted, by_peer = cluster.metric("turnstile_proxy_headers_total"), ended_by_peers(cluster)
    for _ in range(10_000):
        header, leaves = next(wrong)
        cut = chance.randrange(len(header) + 1)
        sock = connect(cluster.listeners["EDGE"][0], PROXY_IP)
        with sock, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for piece in (header[:cut], header[cut:]):
                sock.sendall(piece)
            if not leaves:
                assert sock.recv(1) == b"", header
    until(lambda: cluster.metric("turnstile_proxy_headers_total") == counted + 10_000, what="all counted")
    until(lambda: idle(cluster), what="idle")
    after = sources(cluster)
    refused = after[PROXY_IP].pop("proxy_header") - before.get(PROXY_IP, {}).pop("proxy_header", 0)
    assert refused > 5000 and refused + ended_by_peers(cluster) - by_peer == 10_000
    assert after == {PROXY_IP: {}, **before}, "no other address has anything more"
    until(lambda: descriptors(cluster) == open_before, what="all descriptors closed")
    with announced(cluster, v2(HONEST, 1, crc=True)) as honest:
        assert admitted(honest)


def test_forged_headers_of_networks_that_are_not_trusted_count_as_their_senders(cluster):
    until(lambda: idle(cluster), what="idle")
    before = sources(cluster)
    for number in range(600):
        sender, forged = f"127.0.9.{number % 3 + 1}", f"198.18.1.{number % 250}"
        with connect(cluster.listeners["EDGE"][0], sender) as sock, contextlib.suppress(ConnectionResetError):
            sock.sendall(v2(forged, 1, crc=True) if number % 2 else v1(forged, 1))
            assert sock.recv(1) == b""
    until(lambda: idle(cluster), what="idle")
    after = sources(cluster)
    assert {ip: after[ip] for ip in after.keys() - before.keys()} == {
        f"127.0.9.{each}": {"admitted": 200} for each in (1, 2, 3)
    }
    with connect(cluster.listeners["EDGE"][0], "127.0.9.1") as sock:
        assert admitted(sock), "it is a client, with an address of its own"


def test_a_header_at_a_listener_without_proxies_announces_no_client(cluster):
    before = set(sources(cluster))
    for header in (v1("198.18.2.2", 1), v2("198.18.2.2", 1)):
        with connect(cluster.listeners["PLAIN"][0], "127.0.9.9") as sock, contextlib.suppress(ConnectionResetError):
            sock.sendall(header)
            assert sock.recv(1) == b""
    assert set(sources(cluster)) - before <= {"127.0.9.9"}
    until(
        lambda: "a PROXY header, which this listener does not take" in cluster.errors.read_text(),
        what="said in the log",
    )


@pytest.mark.timed
def test_slow_headers_are_bounded_in_number_and_time_and_hold_up_nobody(cluster):
    """More silent connections than may wait at a time, of a trusted peer, and slow ones: none holds a token."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    until(lambda: idle(cluster), what="idle")
    cluster.set("kafka_connections_max", 3)
    timeouts, open_before = headers(cluster, "PRX_TIMEOUT"), descriptors(cluster)
    shards, silent = 2, 2 * MOST_WAITING + 400
    with ExitStack() as stack:
        waiting = [stack.enter_context(announced(cluster, b"")) for _ in range(silent - 10)]
        slow = [stack.enter_context(announced(cluster, v1("198.18.3.3", 1)[:-1])) for _ in range(10)]
        assert 0 < until(lambda: cluster.metric("turnstile_proxy_waiting"), what="waiting") <= shards * MOST_WAITING
        assert cluster.get("/v1/tokens")["totals"]["in_use"] == 0
        for port in (1, 2, 3):
            assert admitted(stack.enter_context(announced(cluster, v1(HONEST, port))))
        assert not admitted(stack.enter_context(announced(cluster, v1(HONEST, 4)))), "the broker's cap holds"
        for sock in (waiting[0], waiting[-1], *slow):
            assert sock.recv(1) == b""
        until(lambda: headers(cluster, "PRX_TIMEOUT") == timeouts + silent, what="all ended")
    until(lambda: idle(cluster), what="idle")
    cluster.unset("kafka_connections_max")
    until(lambda: descriptors(cluster) == open_before, what="all descriptors closed")
    assert "198.18.3.3" not in sources(cluster)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- real proxies and clients


def produce_and_consume(bootstrap):
    delivered = []
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce("orders", str(number), on_delivery=lambda fault, message: delivered.append(fault))
    assert producer.flush(20) == 0 and delivered == [None] * 100
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found = []
    while len(found) < 100:
        found += [int(message.value()) for message in consumer.consume(100, timeout=20) if message.error() is None]
    consumer.close()
    assert sorted(found) == list(range(100))


def test_a_real_client_behind_a_relay_is_told_the_relays_address(tmp_path):
    """advertise=auto: the header's destination, so the client's further connections come by the relay, too."""
    edge = f"EDGE=127.0.0.1:0,proxy=required,trusted={PROXY_IP},advertise=auto"
    with running(tmp_path / "d", "--listener", edge, "--topic", "orders:3") as cluster:

        def greeting(near):
            return v2(HONEST, near.getpeername()[1], *near.getsockname(), crc=True)

        with forwarded(cluster.address, greeting) as port:
            produce_and_consume(f"127.0.0.1:{port}")
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                assert {tuple(each) for each in brokers_told(sock)} == {("127.0.0.1", port)}
        assert sources(cluster).keys() == {HONEST}
        assert cluster.metric("turnstile_connections_refused_total") == 0


def brokers_told(sock, topics=()):
    call = Call(_METADATA, 9, 7)
    asked = wire.request_types(_METADATA, 9).top(
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    sock.sendall(wire.encode_request(call, asked, "test"))
    told = wire.parse_response(request_bytes.answer(sock), _METADATA, 9).body
    return [(each.host, each.port) for each in told.brokers]


def test_the_brokers_beside_one_have_the_ports_beside_its_proxys(tmp_path):
    edge = f"EDGE=127.0.0.1:0,proxy=required,trusted={PROXY_IP},advertise=auto"
    with (
        running(tmp_path / "d", "--listener", edge, brokers=3, shards=1) as cluster,
        connect(cluster.listeners["EDGE"][1], PROXY_IP) as sock,
    ):
        sock.sendall(v1(HONEST, 1, "192.0.2.10", 9093))
        assert brokers_told(sock) == [("192.0.2.10", 9092), ("192.0.2.10", 9093), ("192.0.2.10", 9094)]


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
@pytest.mark.parametrize("send", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"])
def test_haproxy_announces_its_clients(tmp_path, send):
    with running(tmp_path / "d", "--listener", EDGE + ",advertise=auto", "--topic", "orders") as cluster:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = tmp_path / "haproxy.cfg"
        config.write_text(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"
            f"listen kafka\n  bind 127.0.0.1:{port}\n  unique-id-format %{{+X}}o%ci%cp\n  server b {cluster.bootstrap} {send}\n"
        )
        with subprocess.Popen(["haproxy", "-db", "-f", config]) as haproxy:
            try:
                until(lambda: connect(("127.0.0.1", port)).close() is None, what="haproxy")
                with connect(("127.0.0.1", port), "127.8.8.8") as sock:
                    assert admitted(sock)
                produce_and_consume(f"127.0.0.1:{port}")
            finally:
                haproxy.terminate()
        assert sources(cluster)["127.8.8.8"] == {"admitted": 1}
        assert not any("proxy_header" in counts for counts in sources(cluster).values())


def test_the_header_comes_before_tls(tmp_path):
    certificate = make_certificate(tmp_path)
    if certificate is None:
        pytest.skip("needs openssl")
    listener = certificate.listener("EDGE") + f",proxy=required,trusted={PROXY_IP}"
    with running(tmp_path / "d", "--listener", listener) as cluster:
        context = ssl.create_default_context(cafile=certificate.cert)
        context.check_hostname = False
        for header in (v1(HONEST, 1), v2("2001:db8::7", 1, "::1", crc=True)):
            plain = connect(cluster.address, PROXY_IP)
            plain.sendall(header)
            with context.wrap_socket(plain) as sock:
                assert admitted(sock)
        with connect(cluster.address, PROXY_IP) as plain, pytest.raises(OSError):
            context.wrap_socket(plain)
        assert sources(cluster).keys() == {HONEST, "2001:db8::7", PROXY_IP}


def test_ipv6_proxies_announce_clients_of_both_families(tmp_path):
    edge = "EDGE=[::1]:0,proxy=required,trusted=::1"
    with running(tmp_path / "d", "--listener", edge, "--set", "kafka_connections_max_per_ip=1") as cluster:
        with ExitStack() as stack:
            outcomes = []
            for header in (
                v1("2001:DB8::1", 1, "2001:db8::2"),
                v2("2001:db8:0:0::1", 2, "2001:db8::2"),
                v2("::ffff:203.0.113.7", 3, "::1"),
                v1("203.0.113.7", 4),
                v1("2001:db8::9", 5, "::1"),
            ):
                sock = stack.enter_context(socket.create_connection(cluster.address[:2], timeout=10))
                sock.sendall(header)
                outcomes.append(admitted(sock))
        assert outcomes == [True, False, True, False, True]
        assert sources(cluster) == {
            "2001:db8::1": {"admitted": 1, "ip_cap": 1},
            "203.0.113.7": {"admitted": 1, "ip_cap": 1},
            "2001:db8::9": {"admitted": 1},
        }


def test_acls_see_the_announced_host(tmp_path):
    with serving(tmp_path, "--topic", "orders", *ALLOWED_UNLESS_DENIED) as cluster:
        host, port = cluster.listeners["PLAIN"][0]
        deny_host(f"{host}:{port}", "orders", HONEST)
        errors = {}
        for ip in (HONEST, "203.0.113.8"):
            with announced(cluster, v2(ip, 1)) as sock:
                sock.sendall(request_bytes.fetch("c", "orders"))
                errors[ip] = int.from_bytes(request_bytes.answer(sock)[28:30], "big")
        assert errors == {HONEST: _TOPIC_AUTHORIZATION_FAILED, "203.0.113.8": 0}


# ---- restarts, and the driver


def test_a_shard_that_is_killed_leaves_nothing_of_those_that_wait_and_the_journal_has_the_proxies(tmp_path):
    with serving(tmp_path, "--set", "kafka_connections_max_per_ip=4", "--journal", "parquet") as cluster:
        with ExitStack() as stack:
            open_now = [stack.enter_context(announced(cluster, v2(HONEST, port))) for port in range(1, 5)]
            assert all(map(admitted, open_now))
            silent = [stack.enter_context(announced(cluster, b"PROXY TCP4 ")) for _ in range(20)]
            until(lambda: cluster.metric("turnstile_proxy_waiting") == 20, what="waiting")
            for shard in (0, 1):
                os.kill(cluster.shard_pid(shard), signal.SIGKILL)
            until(lambda: cluster.get("/healthz")["status"] == "ok" and idle(cluster), what="well again")
            assert cluster.metric("turnstile_connections_lost_total") == 4
            again = [stack.enter_context(announced(cluster, v1(HONEST, port))) for port in range(5, 10)]
            assert sorted(map(admitted, again)) == [False, True, True, True, True]
            for sock in silent:
                with contextlib.suppress(ConnectionResetError):
                    assert sock.recv(1) == b""
        until(lambda: idle(cluster), what="idle")
    rows = [row for row in journal(tmp_path / "d") if row["kind"] in ("admitted", "refused")]
    assert {row["ip"] for row in rows} == {HONEST}
    assert {row["detail"] for row in rows} == {f'{{"proxy": "{PROXY_IP}"}}'}


def journal(data_dir):
    import pyarrow.parquet

    parts = sorted((data_dir / "journal").glob("*.parquet"))
    return [row for part in parts for row in pyarrow.parquet.read_table(part).to_pylist()]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_load_driver_plays_a_proxy_and_reconciles(cluster, limits, version):
    limits("kafka_connections_max_per_ip", 3)
    host, port = cluster.listeners["EDGE"][0]
    network = {"v1": "100.64.1.0/28", "v2": "2001:db8:1::/124"}[version]
    cluster.turnstile(
        "load", "--bootstrap", f"{host}:{port}", "--proxy-protocol", version, "--sources", network, "--connections", "64",
        "--hold", "end",
    )  # fmt: skip
    found = [counts for ip, counts in sources(cluster).items() if ip.startswith(network[:8])]
    assert found == [{"admitted": 3, "ip_cap": 1}] * 16


def test_the_load_driver_without_sources_announces_its_own_address(cluster):
    host, port = cluster.listeners["EDGE"][0]
    cluster.turnstile("load", "--bootstrap", f"{host}:{port}", "--proxy-protocol", "v2", "--connections", "50", "--probe", "none",
                      "--grace", "0.2")  # fmt: skip


def test_what_a_listener_can_not_be_is_said(tmp_path):
    for options, sentence in (
        ("proxy=required", "it needs trusted="),
        ("proxy=on,trusted=10.0.0.0/8", "proxy=required or proxy=allowed"),
        ("proxy=required,trusted=10.0.0.1/8", "no bit set beyond its length"),
    ):
        run = subprocess.run(
            [TURNSTILE, "up", "--listener", f"EDGE=127.0.0.1:0,{options}"], capture_output=True, text=True, timeout=60
        )
        assert run.returncode == 2 and sentence in run.stderr


def test_allowed_warns_and_is_in_the_exported_file(tmp_path):
    listener = "EDGE=127.0.0.1:0,proxy=allowed,trusted=127.0.0.1"
    with running(tmp_path / "d", "--listener", listener) as cluster:
        assert "can announce itself as any address" in " ".join(cluster.started["notes"])
        assert f'"EDGE" = "{cluster.bootstrap},proxy=allowed,trusted=127.0.0.1"' in cluster.turnstile(
            "config", "export"
        )
        with connect(cluster.address, PROXY_IP) as sock:
            assert admitted(sock)
        with connect(cluster.address, PROXY_IP) as sock:
            sock.sendall(v1(HONEST, 1))
            assert admitted(sock)
        assert sources(cluster) == {PROXY_IP: {"admitted": 1}, HONEST: {"admitted": 1}}
