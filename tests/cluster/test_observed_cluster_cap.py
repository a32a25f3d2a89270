"""The cap of a whole cluster observed, two brokers of two shards: the decisions of an enforced one, counted once for all brokers,
nobody refused; judged by the audit over the journals of both."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness import TURNSTILE, Cluster, admitted, audited, connect, running, until
from observing import Arrival, decided, decisions, observe, summary

from shards.ownership import home_of, shard_of_member

CAP = "turnstile.cluster.max.connections"
BROKERS = SHARDS = 2
HOME = shard_of_member(home_of("observed/cluster", BROKERS * SHARDS), SHARDS)
IPS = ["127.1.0.1", "127.1.0.2"]


def observed_use(cluster: Cluster) -> int:
    """Observed tokens of the cluster in use."""
    return sum(pool["in_use"] for pool in cluster.get("/v1/tokens")["pools"] if pool["kind"] == "observed/cluster")


class Clients(ExitStack):
    """Connections to the brokers in turn, all of which are let in."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._addresses = cluster.listeners["PLAINTEXT"]
        self.open: list[socket.socket] = []

    def more(self, count: int, broker: int | None = None) -> None:
        for n in range(count):
            sock = connect(self._addresses[n % BROKERS if broker is None else broker], IPS[n % 2])
            self.open.append(self.enter_context(sock))
        assert all(map(admitted, self.open[-count:]))

    def fewer(self, count: int) -> None:
        for _ in range(count):
            self.open.pop(0).close()


def test_observed_it_decides_as_enforced_in_another_cluster(tmp_path: Path) -> None:
    """The same arrivals and closes in the same order, to the same brokers."""
    draw = random.Random(31)
    options = {"brokers": BROKERS, "shards": SHARDS}
    with (
        running(tmp_path / "observed", "--observe", f"{CAP}=4", **options) as rehearsing,
        running(tmp_path / "enforced", "--set", f"{CAP}=4", **options) as enforcing,
    ):
        of_brokers = list(zip(rehearsing.listeners["PLAINTEXT"], enforcing.listeners["PLAINTEXT"], strict=True))

        def arrival() -> Arrival:
            return Arrival(*of_brokers[draw.randrange(BROKERS)], draw.choice(IPS))

        would, did = decisions(rehearsing, enforcing, draw, count=70, arrival=arrival, observed_use=observed_use)
        refused = sum(did)
        assert would == did and refused > 5
        assert rehearsing.get("/v1/refusals")["total"] == 0
        name = "turnstile_observed_refusals_total"
        assert rehearsing.metric(name, observed="true", reason="cluster_cap") == refused
        assert rehearsing.metric("turnstile_connections_refused_total") == 0


def test_it_is_shown_beside_the_enforced_one_and_ends_with_its_observation(tmp_path: Path) -> None:
    with (
        running(tmp_path / "d", "--set", f"{CAP}=9", brokers=BROKERS, shards=SHARDS) as cluster,
        Clients(cluster) as clients,
    ):
        clients.more(3)
        said = cluster.turnstile("config", "set", "--observe", CAP, "4")
        assert "is observed, not enforced" in said
        assert observed_use(cluster) == 3, "who is open when it begins counts"
        clients.more(3)
        until(lambda: summary(cluster)["refused"] == 2, what="two beyond the observed cap")
        assert summary(cluster)["caps"] == [{"limit": CAP, "value": 4, "waits": False, "count": 2}]
        assert "would have refused 2 connections of " in cluster.turnstile("status")
        assert "would have refused 2 connections" in cluster.turnstile("top", "--once")
        pools = {each["kind"]: each for each in cluster.get("/v1/tokens")["pools"] if "cluster" in each["kind"]}
        assert {kind: (each["broker"], each["in_use"], each["cap"]) for kind, each in pools.items()} == {
            "cluster": (None, 6, 9), "observed/cluster": (None, 4, 4),
        }  # fmt: skip
        explained = cluster.get(f"/v1/explain?ip={IPS[0]}")["cluster"]
        assert (explained["value"], explained["in_use"]) == (9, 6)
        assert explained["observed"] == {"limit": CAP, "value": 4, "waits": False, "in_use": 4}
        for who in (f"ip={IPS[0]}", "user=alice"):
            told = cluster.turnstile("explain", who)
            assert re.search(r"observed: the cluster +all +4 of 4 .*; over it a connection would be refused", told)
        observe(cluster, **{CAP: None})
        assert observed_use(cluster) == 0 and summary(cluster) is None
        left = [each for each in cluster.get("/v1/tokens")["pools"] if each["kind"].startswith("observed")]
        assert not any(each["in_use"] or each["cached"] for each in left)
        assert cluster.get(f"/v1/explain?ip={IPS[0]}")["cluster"]["observed"] is None
        observe(cluster, **{CAP: 8})
        assert observed_use(cluster) == 6, "a new beginning has everybody again"


def test_lowered_live_it_counts_anew_and_keeps_the_members(tmp_path: Path) -> None:
    with (
        audited(tmp_path / "d", "--observe", f"{CAP}=8", brokers=BROKERS, shards=SHARDS) as cluster,
        Clients(cluster) as clients,
    ):
        clients.more(9)
        until(lambda: summary(cluster)["refused"] == 1 and observed_use(cluster) == 8, what="one beyond it")
        observe(cluster, **{CAP: 5})
        assert (summary(cluster)["refused"], observed_use(cluster)) == (0, 8)
        clients.more(2)
        until(lambda: summary(cluster)["refused"] == 2, what="both beyond the lower cap")
        clients.fewer(11)
        until(lambda: observed_use(cluster) == 0, what="all have left")
        clients.more(7, broker=1)
        until(lambda: decided(cluster, observed_use) == 9, what="each decided")
        assert observed_use(cluster) == 5, "one broker may have all of it"
        clients.fewer(7)
        until(lambda: observed_use(cluster) == 0, what="all have left")


def test_when_its_home_is_killed_it_goes_on_with_what_the_others_have(tmp_path: Path) -> None:
    with (
        audited(tmp_path / "d", "--observe", f"{CAP}=8", brokers=BROKERS, shards=SHARDS) as cluster,
        Clients(cluster) as clients,
    ):
        clients.more(8)
        until(lambda: decided(cluster, observed_use) == 8, what="eight in the observed world")
        home = cluster.shard_pid(HOME[1], HOME[0])
        rows = cluster.get("/v1/shards")["shards"]
        lost = next(row["connections"] for row in rows if (row["broker"], row["shard"]) == HOME)
        os.kill(home, signal.SIGKILL)
        until(
            lambda: (
                {row["state"] for row in cluster.get("/v1/shards")["shards"]} == {"up"}
                and cluster.shard_pid(HOME[1], HOME[0]) != home
            ),
            what="another home",
        )
        until(lambda: observed_use(cluster) == 8 - lost, what="what is left")
        clients.more(lost + 2, broker=1 - HOME[0])
        until(lambda: summary(cluster)["refused"] == 2 and observed_use(cluster) == 8, what="two beyond the cap")


@contextmanager
def storm(cluster: Cluster) -> Iterator[None]:
    """Clients come to each broker and go until the end of the block."""
    options = ("--connections", "100000", "--rate", "300", "--hold", "0.2", "--sources", "127.1.0.0/29")
    commands = [
        [TURNSTILE, "load", "--bootstrap", f"{host}:{port}", *options] for host, port in cluster.listeners["PLAINTEXT"]
    ]
    environment = {**os.environ, "TURNSTILE_ADMIN": cluster.admin}
    processes = [
        subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        for each in commands
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def test_a_storm_over_both_brokers_while_it_changes_beside_an_enforced_cap(tmp_path: Path) -> None:
    """The audit does both again from the journals of all brokers."""
    with (
        running(
            tmp_path / "d", "--set", f"{CAP}=40", "--observe", f"{CAP}=20", brokers=BROKERS, shards=SHARDS
        ) as cluster,
        storm(cluster),
    ):
        for value in (15, 3, 10, None, 25, 8):
            cluster.until_decided(250)
            observe(cluster, **{CAP: value})
            if value == 10:
                os.kill(cluster.shard_pid(HOME[1], HOME[0]), signal.SIGKILL)
        until(lambda: cluster.get("/v1/refusals?observed=true")["total"] > 50, what="refusals that were observed")
    result = json.loads(cluster.turnstile("audit", "--json", str(cluster.data_dir)).splitlines()[0])
    checks = {check["name"]: check for check in result["checks"]}
    assert (checks["observed_caps"]["verdict"], checks["observed_with_cause"]["verdict"]) == ("held", "held"), checks
    assert result["verdict"] == "held", result
