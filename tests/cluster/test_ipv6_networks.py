"""IPv6 clients of one network count as one address (turnstile.ipv6.prefix.length), and stay themselves for ACLs and faults."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import request_bytes
from acls import ALLOWED_UNLESS_DENIED, deny_host
from announcing import v2
from harness import Cluster, admitted, audited, connect, running, until

EDGE = ("--listener", "EDGE=127.0.0.1:0,proxy=required,trusted=127.0.0.1")
BY_NETWORK = ("--set", "turnstile.ipv6.prefix.length=64")
_TOPIC_AUTHORIZATION_FAILED = 29


def announced(cluster: Cluster, ip: str, port: int = 1) -> socket.socket:
    """A connection that a proxy announces."""
    sock = connect(cluster.listeners["EDGE"][0], "127.0.0.1")
    sock.sendall(v2(ip, port, "2001:db8:ffff::1" if ":" in ip else "127.0.0.1"))
    return sock


def counts(cluster: Cluster) -> dict[str, dict[str, int]]:
    return cluster.get("/v1/sources")["sources"]


def test_clients_of_a_network_share_its_cap_and_rate_and_overrides_on_all_shards(tmp_path: Path) -> None:
    """In the audit, too, which reads the same address of the journal."""
    limits = (
        "--set", "kafka_connections_max_per_ip=4",
        "--set", 'kafka_connections_max_overrides=["[2001:db8:0:2::7]:1", "[2001:db8:0:2::8]:3", "[2001:db8:0:3::]/64:2"]',
    )  # fmt: skip
    with audited(tmp_path / "d", *EDGE, *BY_NETWORK, *limits, shards=3) as cluster, ExitStack() as stack:

        def let_in(network: int, clients: int) -> int:
            socks = [announced(cluster, f"2001:DB8:0:{network}::{n:x}") for n in range(1, clients + 1)]
            return sum(admitted(stack.enter_context(sock)) for sock in socks)

        assert [let_in(network, 9) for network in (1, 2, 3)] == [4, 1, 2]
        assert admitted(stack.enter_context(announced(cluster, "203.0.113.7")))
        assert counts(cluster) == {
            "2001:db8:0:1::": {"admitted": 4, "ip_cap": 5},
            "2001:db8:0:2::": {"admitted": 1, "ip_cap": 8},
            "2001:db8:0:3::": {"admitted": 2, "ip_cap": 7},
            "203.0.113.7": {"admitted": 1},
        }
        [told] = cluster.get("/v1/explain?ip=2001:db8:0:1::99")["brokers"]
        assert told["ip"] == "2001:db8:0:1::"
        assert [pool["in_use"] for pool in told["connections"] if pool["pool"].startswith("ip:")] == [4]
        cluster.turnstile("quota", "set", "ip=2001:db8:0:5::9", "connection_creation_rate=2")

        def meets_the_rate() -> bool:
            for n in range(30):
                announced(cluster, f"2001:db8:0:5::{n:x}").close()
            return "ip_rate" in counts(cluster).get("2001:db8:0:5::", {})

        until(meets_the_rate, what="a connection refused for the quota of another address of its network")


def test_acls_and_listed_connections_have_the_clients_own_address(tmp_path: Path) -> None:
    plain = ("--listener", "PLAIN=127.0.0.1:0")
    denied, other = "2001:db8:0:1:0:0:0:7", "2001:db8:0:1:0:0:0:8"  # as Java spells hosts
    with audited(tmp_path / "d", *EDGE, *plain, *BY_NETWORK, "--topic", "orders", *ALLOWED_UNLESS_DENIED) as cluster:
        host, port = cluster.listeners["PLAIN"][0]
        deny_host(f"{host}:{port}", "orders", denied)
        errors = {}
        for ip in (denied, other):
            with announced(cluster, ip) as sock:
                sock.sendall(request_bytes.fetch("c", "orders"))
                errors[ip] = int.from_bytes(request_bytes.answer(sock)[28:30], "big")
        assert errors == {denied: _TOPIC_AUTHORIZATION_FAILED, other: 0}


def test_a_client_without_a_proxy_counts_with_its_network(tmp_path: Path) -> None:
    options = ("--listener", "PLAIN=[::1]:0", "--set", "turnstile.ipv6.prefix.length=48")
    with (
        running(tmp_path / "d", *options) as cluster,
        socket.create_connection(cluster.address[:2], timeout=10) as sock,
    ):
        assert admitted(sock)
        assert counts(cluster) == {"::": {"admitted": 1}}
        host, port = cluster.address[:2]
        load = ("--bootstrap", f"[{host}]:{port}", "--connections", "40", "--sources", "::1")
        assert "they agree" in cluster.turnstile("load", *load)
