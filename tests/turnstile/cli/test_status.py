"""`turnstile status` of a cluster of two brokers, as a user runs it."""

from contextlib import ExitStack
from pathlib import Path

from harness import admitted, connect, running


def test_what_each_broker_has_open_stands_beside_its_own_cap(tmp_path: Path) -> None:
    with running(tmp_path / "data", brokers=2) as cluster, ExitStack() as open_now:
        for broker, count in enumerate((3, 1)):
            for _ in range(count):
                assert admitted(open_now.enter_context(connect(cluster.listeners["PLAINTEXT"][broker])))
        assert "broker 0: 3, no limit for all together\n" in cluster.turnstile("status")
        cluster.turnstile("config", "set", "max.connections", "4", "--broker", "0")
        told = cluster.turnstile("status")
        assert "broker 0: 3 of 4 (75 %) by max.connections\n" in told
        assert "broker 1: 1, no limit for all together\n" in told
        assert "the cluster: " not in told
        cluster.set("turnstile.cluster.max.connections", 5)
        assert "the cluster: 4 of 5 (80 %) by turnstile.cluster.max.connections\n" in cluster.turnstile("status")
