"""client.quota.callback.class on real shards: a Python class decides which clients share a quota, and of how much."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import batch
from harness import TURNSTILE, Cluster, audited, connect, until
from request_bytes import answer, produce, produced

from broker.journal.reader import events

CLASS = ("--set", "client.quota.callback.class=tenants.TenantQuotas")
WINDOW = ("--set", "quota.window.num=3")
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    yield


def throttle_ms(cluster: Cluster, client_id: str, requests: int = 1, size: int = 2000) -> list[int]:
    """The throttle times that a client is told, over a connection of its own."""
    with connect(cluster.address) as sock:
        told = []
        for _ in range(requests):
            sock.sendall(produce(client_id, "t", 0, batch(b"x" * size)))
            told.append(produced(answer(sock)).throttle_ms)
        return told


@pytest.mark.usefixtures("on_path")
def test_clients_of_a_tenant_share_the_quota_that_the_class_gives_it(tmp_path: Path) -> None:
    with audited(tmp_path / "d", *CLASS, *WINDOW, "--topic", "t:8", shards=3) as cluster:
        assert throttle_ms(cluster, "acme-1", 20) == [0] * 20, "no limit yet"
        cluster.turnstile("quota", "set", "client-id=acme", "producer_byte_rate=1000")
        for number in range(6):
            assert throttle_ms(cluster, f"acme-{number}", size=20_000 if not number else 10)[0] > 0, (
                "on whichever shard"
            )
        assert throttle_ms(cluster, "beta-1", 5, size=20_000) == [0] * 5
        assert throttle_ms(cluster, "fault") == [0]
        assert "client.quota.callback.class has failed" in cluster.errors.read_text()
        told = cluster.get("/v1/quotas/explain?client-id=acme-9")
        assert told["quotas"] == {"producer_byte_rate": 1000.0}
        refused = cluster.turnstile("quota", "set", "--observe", "client-id=acme", "producer_byte_rate=5", expect=1)
        assert "is not observed by client.quota.callback.class" in refused
        cluster.turnstile("quota", "set", "--observe", "ip=127.0.0.1", "connection_creation_rate=500")
        cluster.turnstile("quota", "unset", "client-id=acme")
        assert cluster.get("/v1/quotas/explain?client-id=acme-9")["quotas"] == {}
        until(lambda: throttle_ms(cluster, "acme-1") == [0], what="the class has heard that the quota is gone")
    throttled = [each for each in events(tmp_path / "d" / "journal") if each["kind"] == "throttled"]
    assert {each["limit"] for each in throttled} == {"callback:producer_byte_rate"}
    assert not [each for each in events(tmp_path / "d" / "journal") if each["kind"] == "charge"]
    said = subprocess.run(
        [TURNSTILE, "audit", str(tmp_path / "d")], capture_output=True, text=True, timeout=120, check=True
    )
    assert "what the class decided is not in the journal" in said.stdout


@pytest.mark.usefixtures("on_path")
def test_a_quota_holds_on_when_the_home_of_its_meter_dies(tmp_path: Path) -> None:
    with audited(tmp_path / "d", *CLASS, *WINDOW, "--topic", "t:8", shards=2) as cluster:
        cluster.turnstile("quota", "set", "client-id=acme", "producer_byte_rate=1000")
        for shard in (0, 1, 0):
            assert max(throttle_ms(cluster, "acme-1", size=8000) + throttle_ms(cluster, "acme-2", size=10)) > 0
            cluster.turnstile("top", "--once")
            os.kill(cluster.shard_pid(shard), signal.SIGKILL)
            until(lambda: cluster.get("/healthz")["status"] == "ok", what="the shard is back")
        assert throttle_ms(cluster, "acme-3", size=8000)[0] + throttle_ms(cluster, "acme-3", size=10)[0] > 0
        assert "has failed" not in cluster.errors.read_text()


@pytest.mark.usefixtures("on_path")
def test_quotas_that_were_observed_before_are_not_beside_a_class(tmp_path: Path) -> None:
    quota = {"alter": [{"entity": {"client-id": None}, "set": {"producer_byte_rate": 5}, "remove": []}]}
    with audited(tmp_path / "d", "--topic", "t:8") as cluster:
        cluster.put("/v1/quotas?observe=true", quota)
    with audited(tmp_path / "d", *CLASS) as cluster:
        assert "are not observed: client.quota.callback.class decides" in " ".join(cluster.started["notes"])
        throttle_ms(cluster, "acme-1", 3, size=8000)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--set", "client.quota.callback.class=com.acme.Quotas"), "it is a Python class here"),
        ((*CLASS, "--set", "turnstile.quota.semantics=redpanda"), "turnstile.quota.semantics is redpanda"),
    ],
)
@pytest.mark.usefixtures("on_path")
def test_a_class_that_can_not_be_keeps_the_cluster_from_starting(
    tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    up = [TURNSTILE, "up", "--port", "0", "--admin-port", "0", "--data-dir", str(tmp_path / "d"), *more]
    done = subprocess.run(up, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
