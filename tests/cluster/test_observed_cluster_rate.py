"""The rate of new connections to a whole cluster observed, two brokers of two shards: the decisions of an enforced one, nobody
refused, whichever process dies or stands still; judged by the audit over the journals of both.

By eleven samples of a second, a rate of 1 lets ten connections through at once, and one more after eleven seconds: within these no
test depends on how fast it is.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from broker_clients import BrokerClients, Storm
from harness import Cluster, audited, running, until
from observing import Arrival, decisions, observe, summary
from user_logins import open_here

from shards.ownership import home_of, shard_of_member
from turnstile.admin_client import AdminRefused

RATE, CAP = "turnstile.cluster.max.connection.creation.rate", "kafka_connections_max"
BROKERS = SHARDS = 2
HOME = shard_of_member(home_of("rate:observed/cluster", BROKERS * SHARDS), SHARDS)
OTHER = 1 - HOME[0]
BURST = 10  # of a rate of 1
SAMPLES = 31  # thirty connections at once, and one more after half a minute


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with audited(tmp_path_factory.mktemp("rate") / "d", brokers=BROKERS, shards=SHARDS) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """Whose windows are empty."""
    shared.reset()
    yield shared
    observe(shared, **{RATE: None})
    shared.put("/v1/cluster_config", {"upsert": {}, "remove": [RATE]})


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[BrokerClients]:
    with closing(BrokerClients(cluster)) as clients:
        yield clients


def would_refuse(cluster: Cluster, reason: str = "cluster_rate") -> int:
    return int(cluster.metric("turnstile_observed_refusals_total", observed="true", reason=reason))


def refused(cluster: Cluster) -> int:
    return int(cluster.metric("turnstile_connections_refused_total"))


class Counted:
    """What came to be counted as refused by the observed rate, of connections that were all let in."""

    def __init__(self, cluster: Cluster, clients: BrokerClients) -> None:
        self._cluster, self._clients = cluster, clients
        self._total = would_refuse(cluster)

    def of(self, count: int, would: int, *, broker: int | None = None) -> None:
        """So many connections come, of which so many would have been refused."""
        assert self._clients.more(count, broker=broker) == count, "an observed rate refuses nobody"
        self._total += would
        until(lambda: would_refuse(self._cluster) >= self._total, what=f"{would} of {count} would have been refused")
        assert would_refuse(self._cluster) == self._total


@pytest.fixture
def counted(cluster: Cluster, clients: BrokerClients) -> Counted:
    return Counted(cluster, clients)


def pids(cluster: Cluster, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    return {(broker, shard): cluster.shard_pid(shard, broker) for broker, shard in places}


def wait_for_others(cluster: Cluster, ended: dict[tuple[int, int], int]) -> None:
    """Until other processes are up in their places."""

    def are_up() -> bool:
        up = {
            (row["broker"], row["shard"]): row["pid"]
            for row in cluster.get("/v1/shards")["shards"]
            if row["state"] == "up"
        }
        return len(up) == BROKERS * SHARDS and all(up[place] != pid for place, pid in ended.items())

    until(are_up, what="others in their places")


@pytest.mark.parametrize("observed", [{}, {CAP: 1000}], ids=["alone", "with-a-cap"])
def test_observed_it_decides_as_enforced_in_another_cluster(tmp_path: Path, observed: dict[str, int]) -> None:
    """The same arrivals, to the same brokers: with a cap each is awaited, so that they come in one order."""
    draw = random.Random(31)
    options = ("--set", f"quota.window.num={SAMPLES}")
    extra = [word for name, value in observed.items() for word in ("--observe", f"{name}={value}")]
    size = {"brokers": BROKERS, "shards": SHARDS}
    with (
        audited(tmp_path / "observed", *options, "--observe", f"{RATE}=1", *extra, **size) as rehearsing,
        running(tmp_path / "enforced", *options, "--set", f"{RATE}=1", **size) as enforcing,
    ):
        if not observed:
            with closing(BrokerClients(enforcing)) as did, closing(BrokerClients(rehearsing)) as would:
                assert (did.more(45), would.more(45)) == (SAMPLES - 1, 45)
                until(lambda: would_refuse(rehearsing) >= 46 - SAMPLES, what="who would have been refused")
                assert would_refuse(rehearsing) == refused(enforcing) == 46 - SAMPLES
        else:
            of_brokers = list(zip(rehearsing.listeners["PLAINTEXT"], enforcing.listeners["PLAINTEXT"], strict=True))

            def arrival() -> Arrival:
                return Arrival(*of_brokers[draw.randrange(BROKERS)], draw.choice(["127.1.0.1", "127.1.0.2"]))

            found = decisions(rehearsing, enforcing, draw, count=64, arrival=arrival, observed_use=in_world)
            assert found.would == found.did
            assert found.did == [False] * (SAMPLES - 1) + [True] * (len(found.did) - SAMPLES + 1)
            assert sum(found.did) > 5
        assert refused(rehearsing) == 0 == rehearsing.get("/v1/refusals")["total"]


def in_world(cluster: Cluster) -> int:
    """Connections of the observed world: each has a token of its broker's observed pool."""
    return sum(pool["in_use"] for pool in cluster.get("/v1/tokens")["pools"] if pool["kind"] == "observed/broker")


def test_both_at_once_count_apart(cluster: Cluster, clients: BrokerClients) -> None:
    cluster.set(RATE, 2)
    observe(cluster, **{RATE: 1})
    before, would = refused(cluster), would_refuse(cluster)
    assert clients.more(24) == 2 * BURST
    assert refused(cluster) == before + 4
    until(lambda: would_refuse(cluster) >= would + BURST, what="who would have been refused")
    assert would_refuse(cluster) == would + BURST, "who was refused is not asked about"


def test_one_broker_may_have_all_of_it(cluster: Cluster, counted: Counted) -> None:
    observe(cluster, **{RATE: 1})
    counted.of(7, would=0, broker=1)
    counted.of(7, would=4, broker=0)


def test_changed_unset_and_observed_again_it_knows_what_was_recorded(cluster: Cluster, counted: Counted) -> None:
    observe(cluster, **{RATE: 2})
    counted.of(2 * BURST + 1, would=1)  # so that all are decided by then
    observe(cluster, **{RATE: 1})
    counted.of(4, would=4)
    assert summary(cluster)["caps"] == [{"limit": RATE, "value": 1, "waits": False, "count": 4}]
    observe(cluster, **{RATE: None})
    counted.of(12, would=0)
    assert summary(cluster) is None
    observe(cluster, **{RATE: 1})
    counted.of(4, would=4)


def test_a_killed_shard_leaves_no_room_behind(cluster: Cluster, counted: Counted) -> None:
    observe(cluster, **{RATE: 1})
    counted.of(12, would=2)
    victim = pids(cluster, [HOME])
    os.kill(victim[HOME], signal.SIGKILL)
    wait_for_others(cluster, victim)
    counted.of(12, would=12)


def test_a_broker_of_which_all_shards_are_killed_leaves_no_room_behind(cluster: Cluster, counted: Counted) -> None:
    observe(cluster, **{RATE: 1})
    counted.of(7, would=0, broker=HOME[0])
    counted.of(5, would=2, broker=OTHER)
    victims = pids(cluster, [(HOME[0], shard) for shard in range(SHARDS)])
    for number in (signal.SIGSTOP, signal.SIGKILL):  # so that none restarts before the other has ended
        for pid in victims.values():
            os.kill(pid, number)
    wait_for_others(cluster, victims)
    counted.of(12, would=12)


def test_while_its_home_stands_still_it_is_left_open_and_nobody_waits(
    cluster: Cluster, clients: BrokerClients, counted: Counted
) -> None:
    observe(cluster, **{RATE: 1})
    counted.of(BURST + 1, would=1, broker=OTHER)  # so that all are decided by then
    victims = pids(cluster, [(HOME[0], shard) for shard in range(SHARDS)])
    before = would_refuse(cluster, "shard_unavailable")
    for pid in victims.values():
        os.kill(pid, signal.SIGSTOP)
    assert clients.more(4, broker=OTHER) == 4, "and none was held up"
    until(lambda: would_refuse(cluster, "shard_unavailable") >= before + 4, what="four that are left open")
    wait_for_others(cluster, victims)
    more = would_refuse(cluster)
    assert clients.more(12) == 12
    until(lambda: would_refuse(cluster) >= more + 12 - 1, what="those beyond the rate")  # 11 s may have passed


def test_it_is_shown_beside_the_enforced_one(cluster: Cluster, clients: BrokerClients, counted: Counted) -> None:
    cluster.set(RATE, 9)
    said = cluster.turnstile("config", "set", "--observe", RATE, "1")
    assert "is observed, not enforced" in said
    counted.of(24, would=14)
    assert "would have refused 14 connections of " in cluster.turnstile("status")
    assert "would have refused 14 connections" in " ".join(cluster.turnstile("top", "--once").split())
    assert re.search(
        rf"{re.escape(RATE)} = 1: 14 connections would be refused", cluster.turnstile("config", "observed")
    )
    rows = {row["reason"]: row["count"] for row in cluster.get("/v1/refusals?observed=true")["refusals"]}
    assert rows["cluster_rate"] == would_refuse(cluster)
    assert cluster.get("/v1/live")["observed"]["refused"] == 14
    explained = until(
        lambda: (told := cluster.get("/v1/explain?ip=127.0.0.1"))["observed_cluster_rate"]["used"] and told,
        what="a use that was sampled",
    )
    observed = explained["observed_cluster_rate"]
    assert (observed["of"], observed["limit"], observed["value"], observed["burst"]) == ("cluster", RATE, 1, 10)
    assert (explained["cluster_rate"]["value"], explained["cluster_rate"]["burst"]) == (9, 90)
    told = cluster.turnstile("explain", "ip=127.0.0.1")
    assert re.search(r"observed: new connections of the cluster +all +[\d.,]+/s of 1/s .*would be refused", told)
    cluster.turnstile("config", "unset", "--observe", RATE)
    assert "observed_cluster_rate" not in cluster.get("/v1/explain?ip=127.0.0.1")
    assert "observed" not in cluster.turnstile("status")


def test_one_broker_can_not_observe_one_of_its_own(cluster: Cluster) -> None:
    with pytest.raises(AdminRefused, match="holds for all brokers together"):
        cluster.client.put("/v1/cluster_config", {"upsert": {RATE: 5}, "remove": []}, broker=0, observe=True)
    cluster.turnstile("config", "set", "--observe", RATE, "0", expect=1)


def test_a_storm_over_both_brokers_while_it_changes_beside_an_enforced_one_and_shards_die(cluster: Cluster) -> None:
    """The audit does both again from the journals of all brokers."""
    cluster.set(RATE, 60)
    observe(cluster, **{RATE: 30})
    before = would_refuse(cluster)
    with Storm(cluster):
        cluster.until_decided(400)
        os.kill(cluster.shard_pid(0, OTHER), signal.SIGKILL)
        cluster.until_decided(400)
        observe(cluster, **{RATE: 7})
        cluster.until_decided(400)
        observe(cluster, **{CAP: 20})
        os.kill(cluster.shard_pid(HOME[1], HOME[0]), signal.SIGKILL)
        cluster.until_decided(400)
        observe(cluster, **{RATE: None, CAP: None})
        cluster.until_decided(400)
        observe(cluster, **{RATE: 11})
        cluster.unset(RATE)
        cluster.until_decided(400)
    until(lambda: open_here(cluster) == 0, what="all closed")
    assert would_refuse(cluster) > before


def test_of_one_broker_it_counts_what_its_own_rate_would_refuse(tmp_path: Path) -> None:
    with (
        audited(tmp_path / "d", "--observe", f"{RATE}=1", shards=2) as cluster,
        closing(BrokerClients(cluster)) as clients,
    ):
        Counted(cluster, clients).of(15, would=5)
