"""Observed caps on real clusters: the decisions of an enforced one, nobody refused, and what becomes of them when processes end."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from batches import batch
from harness import TURNSTILE, Cluster, admitted, audited, connect, running, until
from observing import Arrival, decided, decisions, observe, summary
from request_bytes import answer, produce, produced

from shards.ownership import home_of
from turnstile.admin_client import AdminRefused

PER_IP = "kafka_connections_max_per_ip"
IPS = ["127.1.0.1", "127.1.0.2", "127.1.0.3"]


def observed_use(cluster: Cluster, broker: int = 0) -> int:
    """Observed tokens in use, of all addresses of a broker."""
    pools = cluster.get("/v1/tokens")["pools"]
    return sum(pool["in_use"] for pool in pools if pool["kind"] == "observed/ip" and pool["broker"] == broker)


class Sockets(ExitStack):
    """Connections of a test, closed at its end."""

    def open(self, address: tuple[str, int], ip: str = IPS[0], count: int = 1) -> list[socket.socket]:
        """All of them are let in."""
        socks = [self.enter_context(connect(address, ip)) for _ in range(count)]
        assert all(map(admitted, socks))
        return socks


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with Sockets() as found:
        yield found


def test_a_limit_observed_decides_as_the_same_limit_enforced(tmp_path: Path) -> None:
    """The same arrivals and closes in the same order: what one cluster refuses, the other says it would refuse."""
    draw = random.Random(8)
    with (
        running(tmp_path / "observed", "--observe", f"{PER_IP}=2", shards=2) as rehearsing,
        running(tmp_path / "enforced", "--set", f"{PER_IP}=2", shards=2) as enforcing,
    ):

        def arrival() -> Arrival:
            return Arrival(rehearsing.address, enforcing.address, draw.choice(IPS))

        would, did = decisions(rehearsing, enforcing, draw, count=60, arrival=arrival, observed_use=observed_use)
        refused = sum(did)
        assert would == did and refused > 5
        real = rehearsing.get("/v1/refusals")
        assert real["total"] == 0
        assert rehearsing.metric("turnstile_observed_refusals_total", observed="true", reason="ip_cap") == refused
        assert rehearsing.metric("turnstile_connections_refused_total") == 0


def test_enforced_and_observed_at_once_count_apart(tmp_path: Path, sockets: Sockets) -> None:
    with running(tmp_path / "data", "--set", f"{PER_IP}=4", "--observe", f"{PER_IP}=2", shards=2) as cluster:
        sockets.open(cluster.address, count=4)
        until(lambda: decided(cluster, observed_use) == 4, what="four observed decisions")
        assert not admitted(sockets.enter_context(connect(cluster.address, IPS[0])))
        told = cluster.get("/v1/refusals?observed=true&by=ip")
        assert told["total"] == 2
        assert [(row["ip"], row["count"]) for row in told["refusals"]] == [(IPS[0], 2)]
        assert told["summary"]["caps"] == [{"limit": PER_IP, "value": 2, "waits": False, "count": 2}]
        assert (told["summary"]["refused"], told["summary"]["addresses"], told["summary"]["more"]) == (2, 1, False)
        assert cluster.get("/v1/refusals")["total"] == 1
        by_limit = cluster.get("/v1/refusals?observed=true&by=limit")["refusals"]
        assert by_limit == told["summary"]["caps"]
        explained = cluster.get(f"/v1/explain?ip={IPS[0]}")["brokers"][0]["connections"]
        (pool,) = [pool for pool in explained if pool["pool"] == f"ip:{IPS[0]}"]
        assert (pool["value"], pool["in_use"]) == (4, 4)
        assert pool["observed"] == {"limit": PER_IP, "value": 2, "waits": False, "in_use": 2}
        said = cluster.turnstile("config", "observed")
        assert "would have refused 2 connections of 1 address" in said and IPS[0] in said


def test_max_connections_counts_those_that_would_wait(tmp_path: Path, sockets: Sockets) -> None:
    with running(tmp_path / "data", "--observe", "max.connections=2", shards=2) as cluster:
        sockets.open(cluster.address, count=5)
        until(lambda: summary(cluster)["waited"] == 3, what="three that would wait")
        assert summary(cluster)["refused"] == 0


def test_an_open_connection_counts_from_the_beginning_and_the_end_gives_everything_back(
    tmp_path: Path, sockets: Sockets
) -> None:
    with running(tmp_path / "data", brokers=2, shards=2) as cluster:
        addresses = cluster.listeners["PLAINTEXT"]
        for address in addresses:
            sockets.open(address, count=6)
        assert summary(cluster) is None
        observe(cluster, **{PER_IP: 7})
        assert [observed_use(cluster, broker) for broker in (0, 1)] == [6, 6]
        sockets.open(addresses[1], count=3)
        until(lambda: summary(cluster)["refused"] == 2, what="two beyond the cap of broker 1")
        observe(cluster, **{PER_IP: 9})
        assert summary(cluster)["refused"] == 0  # counted anew
        observe(cluster, **{PER_IP: None})
        assert [observed_use(cluster, broker) for broker in (0, 1)] == [0, 0]
        assert summary(cluster) is None


def test_observed_caps_outlive_a_restart_and_are_in_the_history(tmp_path: Path, sockets: Sockets) -> None:
    with running(tmp_path / "data", shards=2) as cluster:
        said = cluster.turnstile("config", "set", "--observe", PER_IP, "1")
        assert "is observed, not enforced" in said
        with pytest.raises(AdminRefused, match="only limits of connections can be"):
            observe(cluster, **{"num.partitions": 5})
    with running(tmp_path / "data", shards=2) as cluster:
        assert cluster.get("/v1/cluster_config?observe=true") == {PER_IP: 1}
        assert cluster.turnstile("config", "get", "--observe", PER_IP) == "1\n"
        assert cluster.get(f"/v1/cluster_config?key={PER_IP}") == {PER_IP: None}
        assert f"{PER_IP} (observed)" in cluster.turnstile("config", "history")
        sockets.open(cluster.address, count=2)
        until(lambda: summary(cluster)["refused"] == 1, what="one beyond the cap")
        cluster.turnstile("config", "unset", "--observe", PER_IP)
        assert cluster.get("/v1/cluster_config?observe=true") == {}


@pytest.mark.parametrize(
    ("observed", "sentence"),
    [
        ("listener.name.nosuch.max.connections=5", "names no listener of this cluster, which has PLAINTEXT"),
        ("num.partitions=5", "only limits of connections can be"),
        (f"{PER_IP}=many", "it must be a whole number"),
    ],
)
def test_what_cannot_be_observed_is_said_before_the_cluster_starts(observed: str, sentence: str) -> None:
    command = [TURNSTILE, "up", "--port", "0", "--admin-port", "0", "--observe", observed]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode in (1, 2) and sentence in said.stderr
    assert "Traceback" not in said.stderr


def test_a_killed_shard_frees_the_observed_tokens_of_its_connections(tmp_path: Path, sockets: Sockets) -> None:
    with running(tmp_path / "data", "--observe", f"{PER_IP}=8", shards=2) as cluster:
        sockets.open(cluster.address, count=8)
        until(lambda: decided(cluster, observed_use) == 8, what="eight observed decisions")
        pid = cluster.shard_pid(0)
        lost = next(row["connections"] for row in cluster.get("/v1/shards")["shards"] if row["shard"] == 0)
        os.kill(pid, signal.SIGKILL)
        until(
            lambda: (
                [row["state"] for row in cluster.get("/v1/shards")["shards"]] == ["up", "up"]
                and cluster.shard_pid(0) != pid
            ),
            what="the shard's successor",
        )
        until(lambda: observed_use(cluster) == 8 - lost, what="what is left")
        sockets.open(cluster.address, count=lost + 2)
        until(lambda: summary(cluster)["refused"] == 2 and observed_use(cluster) == 8, what="two beyond the cap")


def test_no_more_are_in_the_observed_world_than_its_cap_while_that_changes(tmp_path: Path) -> None:
    """A storm while the observed cap changes: the audit does it again from the journal."""
    with running(tmp_path / "data", "--observe", f"{PER_IP}=50", shards=2) as cluster:
        with storm(cluster):
            for value in (20, 3, 10, 30, 1):
                cluster.until_decided(200)
                observe(cluster, **{PER_IP: value})
            until(lambda: cluster.get("/v1/refusals?observed=true")["total"] > 100, what="refusals that were observed")
        assert cluster.get("/v1/refusals")["total"] == 0
    result = cluster.told("audit", str(cluster.data_dir))
    verdicts = {check["name"]: check["verdict"] for check in result["checks"]}
    assert (verdicts["observed_caps"], verdicts["observed_with_cause"], result["verdict"]) == ("held", "held", "held")


@contextmanager
def storm(cluster: Cluster) -> Iterator[None]:
    """Clients of a few addresses come and go until the end of the block."""
    options = ("--connections", "100000", "--rate", "1000", "--hold", "0.3", "--sources", "127.1.0.0/29")
    command = [TURNSTILE, "load", "--bootstrap", cluster.bootstrap, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "TURNSTILE_ADMIN": cluster.admin})  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_observed_client_quotas_throttle_nobody_and_say_whom_they_would_have(tmp_path: Path) -> None:
    """Real producers on all shards, beside an enforced quota of another client; through a restart, up to the audit."""
    observed = {"alter": [{"entity": {"client-id": "app"}, "set": {"producer_byte_rate": 100}}]}
    with running(tmp_path / "data", "--topic", "t:4", shards=2) as cluster:
        said = cluster.turnstile("quota", "set", "--observe", "client-id=app", "producer_byte_rate=100")
        assert "is observed, not enforced" in said
        assert cluster.get("/v1/quotas") == {"quotas": []}
    with running(tmp_path / "data", shards=2) as cluster:
        assert cluster.get("/v1/quotas?observe=true")["quotas"][0]["values"] == {"producer_byte_rate": 100}
        with ExitStack() as clients:
            socks = [clients.enter_context(connect(cluster.address, ip)) for ip in IPS for _ in range(2)]
            for sock in socks:
                for client_id in ("app", "other"):
                    sock.sendall(produce(client_id, "t", 0, batch(b"x" * 3_000)))
                    assert produced(answer(sock)) == (0, 0), "no error, no throttle"
        told = until(lambda: _quotas_told(cluster, len(socks)), what="what the observed quota would have done")
        assert [each["client_id"] for each in told["clients"]] == ["app"]
        assert told["quotas"][0]["quota"] == "producer_byte_rate" and told["throttle_ms"] > 0
        name = "turnstile_observed_throttled_requests_total"
        assert cluster.metric(name, observed="true", quota="producer_byte_rate") == told["requests"]
        assert cluster.metric("turnstile_throttled_requests_total") == 0
        assert "would have throttled" in cluster.turnstile("quota", "observed")
        assert "1 client quota would have throttled" in cluster.turnstile("status")
        cluster.client.put("/v1/quotas", {"alter": [{**observed["alter"][0], "set": {}, "remove": ["producer_byte_rate"]}]},
                           observe=True)  # fmt: skip
        assert cluster.get("/v1/quotas/observed")["set"] == []
        assert "quota of client-id=app (observed)" in cluster.turnstile("config", "history")
    result = cluster.told("audit", str(cluster.data_dir))
    verdicts = {check["name"]: check["verdict"] for check in result["checks"]}
    assert verdicts["observed_quota_charges"] == "held" and result["verdict"] == "held"


def _quotas_told(cluster: Cluster, least: int) -> dict[str, Any] | None:
    told: dict[str, Any] = cluster.get("/v1/quotas/observed")
    return told if told["requests"] >= least else None


def test_observed_creation_rates_hold_up_nobody_and_the_audit_does_them_again(tmp_path: Path) -> None:
    """An address's, a listener's and a core's rate under a storm on two shards; the values change, and end."""
    with running(tmp_path / "data", "--observe", "max.connection.creation.rate=20", shards=2) as cluster:
        cluster.turnstile("quota", "set", "--observe", "ip=<default>", "connection_creation_rate=10")
        with storm(cluster):
            cluster.until_decided(600)
            told = until(
                lambda: (found := summary(cluster))["refused"] > 50 and found["waited"] > 50 and found,
                what="connections beyond both rates",
            )
            assert {cap["limit"] for cap in told["caps"]} == {
                "connection_creation_rate",
                "max.connection.creation.rate",
            }
            observe(cluster, kafka_connection_rate_limit=30)
            until(lambda: cluster.metric("turnstile_observed_refusals_total", reason="core_rate"), what="a core's rate")
            cluster.turnstile("quota", "unset", "--observe", "ip=<default>")
            observe(cluster, **{"max.connection.creation.rate": None, "kafka_connection_rate_limit": None})
            cluster.until_decided(100)
        assert cluster.get("/v1/refusals")["total"] == 0
        assert summary(cluster) is None
    result = cluster.told("audit", str(cluster.data_dir))
    verdicts = {check["name"]: check for check in result["checks"]}
    assert result["verdict"] == "held", result
    assert "arrivals at observed rates" in verdicts["observed_rates"]["detail"]


def test_a_rate_whose_home_hangs_decides_nothing_and_its_late_answers_count_nothing(
    tmp_path: Path, sockets: Sockets
) -> None:
    """The home is not ended within the test: its peer gives up by itself, after five seconds."""
    rate = "max.connection.creation.rate"
    with audited(tmp_path / "data", "--set", "turnstile.shard.timeout.ms=60000", "--observe", f"{rate}=1") as cluster:
        home = home_of("rate:broker", 2)
        os.kill(cluster.shard_pid(home), signal.SIGSTOP)
        arrived = [sockets.enter_context(connect(cluster.address)) for _ in range(60)]
        asked = until(
            lambda: next(row["connections"] for row in cluster.get("/v1/shards")["shards"] if row["shard"] != home),
            what="accepted by the other shard",
        )
        until(lambda: summary(cluster)["undecided"] >= asked, what="given up")
        assert (summary(cluster)["waited"], summary(cluster)["refused"]) == (0, 0)
        os.kill(cluster.shard_pid(home), signal.SIGCONT)
        assert all(map(admitted, arrived))
        cluster.set("kafka_connections_max", 1000)  # what shards say of it is behind the answers
        told = until(
            lambda: (found := summary(cluster))["waited"] > 0 and found, what="those that the home itself accepted"
        )
        assert 0 < told["undecided"] < 60 and told["waited"] <= 60 - told["undecided"]
        assert "could not be decided" in cluster.turnstile("config", "observed")
