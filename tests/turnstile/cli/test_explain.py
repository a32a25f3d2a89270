"""`turnstile explain` and `load --expect` against a cluster, as a user runs them."""

import json
from pathlib import Path

from harness import admitted, connect, running


def test_which_limits_hold_and_who_has_the_tokens(tmp_path: Path) -> None:
    limits = ("--set", "kafka_connections_max_per_ip=5", "--set", "kafka_connections_max_overrides=127.1.0.0/24:2")
    with running(tmp_path / "data", *limits, "--set", "max.connections=100") as cluster:
        cluster.turnstile("quota", "set", "ip=127.1.0.7", "connection_creation_rate=30")
        cluster.turnstile("quota", "set", "user=alice", "producer_byte_rate=1000")
        with connect(cluster.address, "127.1.0.7") as sock:
            assert admitted(sock)
            told = cluster.turnstile("explain", "ip=127.1.0.7")
        assert "100 by max.connections, over it a connection waits" in told
        assert "2 by kafka_connections_max_overrides" in told and "1 open" in told
        assert "30 a second by connection_creation_rate" in told
        assert "1000 of user=alice" in cluster.turnstile("explain", "user=alice", "client-id=app")
        assert "no quota holds" in cluster.turnstile("explain", "client-id=app")
        assert json.loads(cluster.turnstile("explain", "ip=127.1.0.8", "--json"))["brokers"][0]["ip"] == "127.1.0.8"
        assert "is not ip=..." in cluster.turnstile("explain", "127.1.0.7", expect=2)
        assert "must be an IP address" in cluster.turnstile("explain", "ip=nowhere", expect=1)


def test_a_load_that_misses_what_is_expected_ends_with_99(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--set", "kafka_connections_max_per_ip=5") as cluster:
        storm = (
            "load",
            "--bootstrap",
            cluster.bootstrap,
            "--sources",
            "127.1.0.1",
            "--connections",
            "20",
            "--hold",
            "end",
        )
        cluster.turnstile(*storm, "--expect", "refused==15", "--expect", "p99<30s")
        missed = cluster.turnstile(*storm, "--expect", "refused<1%", "--expect", "broken==0", expect=99)
        assert "missed: refused<1%: it was 75%" in missed and "missed: broken" not in missed
        assert "is not of the form" in cluster.turnstile(*storm, "--expect", "p99", expect=2)
