"""`turnstile explain` and `load --expect` against a cluster, as a user runs them."""

import re
from contextlib import ExitStack
from pathlib import Path

from harness import Cluster, admitted, connect, running


def test_which_limits_hold_and_how_much_of_each_is_used(tmp_path: Path) -> None:
    limits = ("--set", "kafka_connections_max_per_ip=5", "--set", "kafka_connections_max_overrides=127.1.0.0/24:2")
    with running(tmp_path / "data", *limits, "--set", "max.connections=100") as cluster:
        cluster.turnstile("quota", "set", "ip=127.1.0.7", "connection_creation_rate=30")
        cluster.turnstile("quota", "set", "user=alice", "producer_byte_rate=1000")
        with connect(cluster.address, "127.1.0.7") as sock:
            assert admitted(sock)
            told = cluster.turnstile("explain", "ip=127.1.0.7")
            internals = cluster.turnstile("explain", "ip=127.1.0.7", "--internals")
        rows = [re.split(r"  +", line) for line in told.splitlines()]
        assert rows[0] == ["LIMIT", "USED", "SET BY"]
        assert ["connections of the broker", "1 of 100 (1 %)", "max.connections; over it a connection waits"] in rows
        assert ["connections of 127.1.0.7", "1 of 2 (50 %)", "kafka_connections_max_overrides"] in rows
        assert any("30/s" in row[1] and "connection_creation_rate" in row[2] for row in rows)
        assert not [word for word in ("home", "cached", "token", "shard") if word in told]
        assert "home: shard" in internals and "1 in use, 0 cached" in internals
        client = cluster.turnstile("explain", "user=alice", "client-id=app")
        assert "0 B/s of 1 kB/s (0 %)" in client and "user=alice" in client
        assert "no quota holds" in cluster.turnstile("explain", "client-id=app")
        assert cluster.told("explain", "127.1.0.8")["brokers"][0]["ip"] == "127.1.0.8"
        assert "is not ip=..." in cluster.turnstile("explain", "alice", expect=2)
        assert "must be an IP address" in cluster.turnstile("explain", "ip=nowhere", expect=1)


def test_each_broker_has_a_row_with_what_is_used_there_beside_its_limit(tmp_path: Path) -> None:
    limits = ("--set", "kafka_connections_max_per_ip=4", "--topic", "t:2")
    with running(tmp_path / "data", *limits, brokers=2) as cluster, ExitStack() as open_now:
        for broker, count in enumerate((3, 1)):
            for _ in range(count):
                sock = open_now.enter_context(connect(cluster.listeners["PLAINTEXT"][broker], "127.1.0.7"))
                assert admitted(sock)
        told = cluster.turnstile("explain", "ip=127.1.0.7")
        rows = [re.split(r"  +", line) for line in told.splitlines() if "127.1.0.7" in line]
        assert [row[1:3] for row in rows] == [["0", "3 of 4 (75 %)"], ["1", "1 of 4 (25 %)"]]
        cluster.turnstile("quota", "set", "client-id=app", "producer_byte_rate=100000")
        bootstrap = ",".join(f"{host}:{port}" for host, port in cluster.listeners["PLAINTEXT"])
        rates = produce_beyond_a_quota(bootstrap, cluster)
        for command in (("explain",), ("quota", "explain")):
            rows = cluster.turnstile(*command, "client-id=app").splitlines()[1:]
            assert [row.split()[:2] for row in rows] == [["producer_byte_rate", "0"], ["producer_byte_rate", "1"]]
            assert all("of 100 kB/s (" in row for row in rows)
        assert set(rates) == {"0", "1"}, "the client is metered on each broker"


def produce_beyond_a_quota(bootstrap: str, cluster: Cluster) -> dict[str, float]:
    """Records to both brokers as client `app`; the rates of /metrics by broker afterwards, which `explain` tells, too."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "app", "linger.ms": 5})
    for n in range(40):
        producer.produce("t", bytes(5000), partition=n % 2)
    producer.flush(20)
    told = cluster.told("explain", "client-id=app")["client"]["brokers"]
    rates = {}
    for family in cluster.metrics():
        for sample in family.samples:
            if sample.name == "kafka_server_quota_byte_rate" and sample.labels["clientId"] == "app":
                rates[sample.labels["broker"]] = sample.value
    for row in told:  # the window moves on between the two questions
        assert abs(row["rates"]["producer_byte_rate"] / rates[str(row["broker"])] - 1) < 0.3
    return rates


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
