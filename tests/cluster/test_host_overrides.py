"""Overrides of host names on real shards, by a hosts file of the cluster's own that changes meanwhile."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import Cluster, admitted, audited, connect, until

OVERRIDES = "kafka_connections_max_overrides"
INTERVAL = ("--set", "turnstile.override.hosts.interval.ms=1000")


def is_private(hosts: Path) -> bool:
    """Whether a process can have a hosts file of its own here."""
    return subprocess.run([*by_hosts(hosts), "true"], capture_output=True, check=False).returncode == 0


def by_hosts(hosts: Path) -> list[str]:
    """Runs what follows with another /etc/hosts, in a mount namespace of its own."""
    return ["unshare", "--mount", "sh", "-c", f'mount --bind "{hosts}" /etc/hosts && exec "$@"', "sh"]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n127.7.0.1 edge.test\n")
    if not is_private(path):
        pytest.skip("no mount namespace can be made here")
    yield path


def let_in(cluster: Cluster, ip: str, clients: int = 5) -> int:
    with ExitStack() as stack:
        socks = [stack.enter_context(connect(cluster.address, ip)) for _ in range(clients)]
        return sum(map(admitted, socks))


def test_a_hosts_number_follows_its_addresses_on_all_shards_and_in_the_audit(tmp_path: Path, hosts: Path) -> None:
    options = ("--set", f"{OVERRIDES}=edge.test:1,nowhere.test:3", *INTERVAL)
    with audited(tmp_path / "d", *options, shards=3, within=by_hosts(hosts)) as cluster:
        assert "the override of host nowhere.test holds for no address" in " ".join(cluster.started["notes"])
        assert [let_in(cluster, ip) for ip in ("127.7.0.1", "127.7.0.2")] == [1, 5]
        hosts.write_text("127.0.0.1 localhost\n127.7.0.2 edge.test\n127.7.0.3 edge.test\n127.7.0.4 nowhere.test\n")
        until(lambda: let_in(cluster, "127.7.0.4") == 3, what="the name of nowhere.test has an address")
        assert [let_in(cluster, f"127.7.0.{n}") for n in (1, 2, 3)] == [5, 1, 1]
        said = cluster.turnstile("config", "set", OVERRIDES, "other.test:2", expect=1)
        assert "names host other.test, which has no address" in said
        hosts.write_text("127.0.0.1 localhost\n127.7.0.5 other.test\n")
        cluster.turnstile("config", "set", OVERRIDES, "other.test:2")
        assert [let_in(cluster, f"127.7.0.{n}") for n in (1, 5)] == [5, 2]
        assert "host other.test" in cluster.turnstile("config", "history")
        hosts.write_text("127.0.0.1 localhost\n")
        until(lambda: "DNS has no address for the host" in cluster.errors.read_text(), what="it is said")
        assert let_in(cluster, "127.7.0.5") == 2, "what DNS is silent about stays"
