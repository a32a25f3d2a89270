"""Journals of real clusters in storms, with shards killed and limits changed meanwhile: the audit finds that all held.

An audit that raises false alarms would be seen here, and so would a cluster that admits beyond a limit.
"""

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import TURNSTILE, Cluster, admitted, connect, running, until

from broker.journal.converter import finish
from broker.journal.reader import events
from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import AuditResult
from turnstile.pipeline.events.journal import here

TWO_LISTENERS = (
    "--listener", "EXTERNAL=127.0.0.1:0", "--listener", "INTERNAL=127.0.0.1:0",
    "--set", "inter.broker.listener.name=INTERNAL",
)  # fmt: skip
PER_IP = "kafka_connections_max_per_ip"
SLOTS = "max.connections"


@contextlib.contextmanager
def storm(cluster: Cluster, listener: str, *options: str) -> Iterator[None]:
    """`turnstile load` on a listener while the block runs."""
    host, port = cluster.listeners[listener][0]
    command = [TURNSTILE, "load", "--bootstrap", f"{host}:{port}", "--sources", "127.1.0.0/29", *options]
    environment = {**os.environ, "TURNSTILE_ADMIN": cluster.admin}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def kill(cluster: Cluster, shard: int) -> None:
    """kill -9, and wait for the successor."""
    pid = cluster.shard_pid(shard)
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.shard_pid(shard) not in (pid, None), what="a successor")


def kill_coordinator(cluster: Cluster) -> None:
    """kill -9, and wait for the successor."""
    pid = cluster.get("/v1/cluster")["coordinator_pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.get("/v1/cluster")["coordinator_pid"] not in (pid, None), what="a new coordinator")


def judged(cluster: Cluster) -> AuditResult:
    """The audit of what a cluster that has ended left."""
    folder = cluster.data_dir / "journal"
    finish(folder)
    journal = here([folder])
    assert journal is not None
    return audit(journal)


def caps(cluster: Cluster, source: random.Random, shards: int) -> None:
    with storm(cluster, "EXTERNAL", "--connections", "5000", "--rate", "600", "--hold", "0.2"):
        for shard in range(shards):
            cluster.set(PER_IP, str(source.choice((1, 3, 20))))
            kill(cluster, shard)
            cluster.set("kafka_connections_max", str(source.choice((10, 40, 200))))
            cluster.set("kafka_connections_max_overrides", ["127.1.0.2:2", f"127.1.0.4/30:{source.randint(1, 7)}"])
            if not shard:
                kill_coordinator(cluster)
            cluster.until_decided(300)  # the storm goes on under these changes


def slots(cluster: Cluster, source: random.Random, shards: int) -> None:
    cluster.set("listener.name.internal.max.connections", 100)
    cluster.set(SLOTS, 12)
    outside = storm(cluster, "EXTERNAL", "--connections", "5000", "--rate", "150", "--hold", "0.3")
    with outside, storm(cluster, "INTERNAL", "--connections", "5000", "--rate", "80", "--hold", "0.3"):
        for shard in range(shards):
            cluster.set(SLOTS, source.choice((8, 12, 20)))
            kill(cluster, shard)
            cluster.until_decided(20)  # the storms go on under this change
        cluster.unset(SLOTS)  # connections that wait for a slot get in


def rates(cluster: Cluster, source: random.Random, shards: int) -> None:
    def quota(ip: str, rate: int) -> None:
        cluster.turnstile("quota", "set", f"ip={ip}", f"connection_creation_rate={rate}")

    quota("<default>", 20)
    cluster.set("max.connection.creation.rate", 80)
    cluster.set("listener.name.external.max.connection.creation.rate", 60)
    cluster.set("kafka_connection_rate_limit", 100)
    outside = storm(cluster, "EXTERNAL", "--connections", "5000", "--rate", "200", "--hold", "0.1")
    with outside, storm(cluster, "INTERNAL", "--connections", "5000", "--rate", "50", "--hold", "0.1"):
        for shard in range(shards):
            cluster.until_decided(40)  # the windows fill
            kill(cluster, shard)
            quota("127.1.0.3", source.choice((3, 10, 40)))
            cluster.set("max.connection.creation.rate", source.choice((40, 80)))
        cluster.until_decided(60)


@pytest.mark.parametrize(("happens", "shards"), [(caps, 2), (caps, 4), (slots, 3), (rates, 2), (rates, 4)])
def test_every_check_holds_of_a_real_cluster(
    tmp_path: Path, happens: Callable[[Cluster, random.Random, int], None], shards: int
) -> None:
    with running(tmp_path / "data", *TWO_LISTENERS, shards=shards) as cluster:
        happens(cluster, random.Random(shards), shards)
    result = judged(cluster)
    assert result.verdict == "held", [check for check in result.checks if check.verdict != "held"]
    assert result.events > 200
    if happens is caps:
        told = {check.name: check.detail for check in result.checks}
        assert told["granted_within_cap"] == "no more of a cap was handed to processes than it has"
        assert told["used_within_grants"] == "no process had more open than it was handed"


def test_a_restart_with_another_number_of_shards_and_a_living_cluster(tmp_path: Path) -> None:
    """Homes move with the number of shards; and processes that are alive have no end yet, which is no fault."""
    for shards in (2, 3):
        with running(tmp_path / "data", shards=shards) as cluster:
            cluster.set(PER_IP, 3)
            with storm(cluster, "PLAINTEXT", "--connections", "2000", "--rate", "500", "--hold", "0.2"):
                cluster.until_decided(1000)  # more than the second that is left out of a living journal
            if shards == 2:
                alive = cluster.told("audit", str(tmp_path / "data"))
                assert alive["verdict"] == "held", alive
    result = judged(cluster)
    assert {check.verdict for check in result.checks} == {"held"}, result.checks
    assert "no process had more open" in {check.name: check.detail for check in result.checks}["used_within_grants"]


def test_after_a_reset_every_window_is_empty(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--set", "quota.window.num=2", shards=2) as cluster:
        for _ in range(4):
            cluster.put("/v1/quotas", {"alter": [{"entity": {"ip": None}, "set": {"connection_creation_rate": 10.0}}]})
            with storm(cluster, "PLAINTEXT", "--connections", "500", "--rate", "500", "--hold", "0"):
                cluster.until_decided(60)
            cluster.reset()
    result = judged(cluster)
    assert result.verdict == "held", [check for check in result.checks if check.verdict != "held"]


def test_a_connection_that_has_another_closed_is_no_excess(tmp_path: Path) -> None:
    """KIP-402's inter-broker listener, as tests/cluster/test_slots.py has it."""
    with running(tmp_path / "data", *TWO_LISTENERS, shards=3) as cluster:
        cluster.set("listener.name.internal.max.connections", 100)
        cluster.set(SLOTS, 8)
        outside = [connect(cluster.listeners["EXTERNAL"][0]) for _ in range(8)]
        assert all(map(admitted, outside))
        inside = []
        for _ in range(3):
            inside.append(connect(cluster.listeners["INTERNAL"][0]))
            assert admitted(inside[-1])
        until(lambda: _counted(cluster) == 8, what="room")
        for sock in outside + inside:
            sock.close()
    result = judged(cluster)
    assert result.verdict == "held", [check for check in result.checks if check.verdict != "held"]
    reasons = [event.get("reason") for event in events(cluster.data_dir / "journal")]
    assert reasons.count("max_connections") == 3


def _counted(cluster: Cluster) -> int:
    return sum(each["connections"] for each in cluster.get("/v1/shards")["shards"])
