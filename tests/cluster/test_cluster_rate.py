"""The rate of new connections to a whole cluster on real processes, two brokers of two shards: exact over all of them, whichever
process dies or stands still, and judged by the audit over the journals of both.

By eleven samples of a second, a rate of 1 lets ten connections through at once, and one more after eleven seconds: within these no
test depends on how fast it is.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from broker_clients import BrokerClients, Storm
from harness import Cluster, audited, connect, until
from user_logins import ANY_IP, open_here

from shards.ownership import home_of, shard_of_member
from turnstile.admin_client import AdminRefused

RATE, CAP = "turnstile.cluster.max.connection.creation.rate", "turnstile.cluster.max.connections"
BROKERS = SHARDS = 2
HOME = shard_of_member(home_of("rate:cluster", BROKERS * SHARDS), SHARDS)
OTHER = 1 - HOME[0]
BURST = 10  # of a rate of 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("rate") / "d"
    listeners = [word for name in "AB" for word in ("--listener", f"{name}=127.0.0.1:0")]
    with audited(data, *listeners, brokers=BROKERS, shards=SHARDS) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """Whose windows are empty."""
    shared.reset()
    yield shared
    shared.put("/v1/cluster_config", {"upsert": {}, "remove": [RATE, CAP]})


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[BrokerClients]:
    clients = BrokerClients(cluster)
    yield clients
    clients.close()


def refused(cluster: Cluster, reason: str = "cluster_rate") -> int:
    return int(cluster.metric("turnstile_connections_refused_total", reason=reason))


def started_again(cluster: Cluster, pids: dict[tuple[int, int], int]) -> bool:
    return all(cluster.shard_pid(shard, broker) not in (None, pid) for (broker, shard), pid in pids.items())


def test_all_brokers_share_one_rate(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    before = refused(cluster)
    assert clients.more(24) == BURST
    assert clients.more(3, broker=0) == clients.more(3, broker=1) == 0
    assert refused(cluster) == before + 20


def test_in_one_burst_after_another_it_lets_in_what_one_broker_would(cluster: Cluster, clients: BrokerClients):
    """Neither is a unit left over where no connection comes, nor one of the burst before."""
    for _ in range(12):
        cluster.reset()
        cluster.set(RATE, 1)
        assert clients.more(24) == BURST
        clients.close()


def test_one_broker_may_have_all_of_it_on_any_listener(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(6, broker=1) == 6
    assert clients.more(6, broker=0, listener="B") == BURST - 6


def test_a_refused_connection_is_closed_at_once_and_is_not_recorded(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(40) == BURST
    with connect(clients.addresses[0], ANY_IP[0]) as sock:
        assert sock.recv(1) == b""
    cluster.set(RATE, 2)
    assert BURST <= clients.more(20) <= BURST + 1, "the thirty that were refused count nothing"


def test_lowered_unset_and_set_again_while_it_runs(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 2)
    assert clients.more(14) == 14
    cluster.set(RATE, 1)
    assert clients.more(4) == 0, "what was recorded under the higher rate counts"
    cluster.unset(RATE)
    assert clients.more(12) == 12
    cluster.set(RATE, 1)
    assert clients.more(4) == 0


def test_a_killed_shard_leaves_no_room_behind(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(12) == BURST
    victim = {HOME: cluster.shard_pid(HOME[1], HOME[0])}
    os.kill(victim[HOME], signal.SIGKILL)
    until(lambda: started_again(cluster, victim), what="another home")
    assert clients.more(12) == 0


def test_a_broker_of_which_all_shards_are_killed_leaves_no_room_behind(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(7, broker=HOME[0]) == 7
    assert clients.more(5, broker=OTHER) == 3
    pids = {(HOME[0], shard): cluster.shard_pid(shard, HOME[0]) for shard in range(SHARDS)}
    for pid in pids.values():
        os.kill(pid, signal.SIGSTOP)  # so that none restarts before the other has ended
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    until(lambda: started_again(cluster, pids), what="both started again")
    assert clients.more(12) == 0


def test_a_broker_that_stands_still_is_ended_and_no_more_than_the_rate_get_in(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(6, broker=OTHER) == 6
    pids = {(HOME[0], shard): cluster.shard_pid(shard, HOME[0]) for shard in range(SHARDS)}
    before = refused(cluster, "shard_unavailable")
    for pid in pids.values():
        os.kill(pid, signal.SIGSTOP)
    held = [connect(clients.addresses[OTHER], ANY_IP[0]) for _ in range(4)]
    until(
        lambda: refused(cluster, "shard_unavailable") >= before + 4, what="connections that the home did not answer for"
    )
    until(lambda: started_again(cluster, pids), what="both started again")
    for each in held:
        each.close()
    assert clients.more(12) <= BURST - 6 + 1, "eleven seconds may have passed"


def test_a_storm_over_both_brokers_while_the_rate_changes_and_shards_die(cluster: Cluster):
    cluster.set(RATE, 30)
    with Storm(cluster):
        cluster.until_decided(400)
        os.kill(cluster.shard_pid(0, OTHER), signal.SIGKILL)
        cluster.until_decided(400)
        cluster.set(RATE, 7)
        cluster.until_decided(400)
        cluster.put("/v1/cluster_config", {"upsert": {CAP: 20, "log.retention.ms": 100_000_000}, "remove": []})
        os.kill(cluster.shard_pid(HOME[1], HOME[0]), signal.SIGKILL)
        cluster.until_decided(400)
        cluster.put("/v1/cluster_config", {"upsert": {RATE: 50}, "remove": [CAP]})
        cluster.until_decided(400)
        cluster.unset(RATE)
        cluster.until_decided(400)
    until(lambda: open_here(cluster) == 0, what="all closed")
    assert refused(cluster) > 0


def test_a_connection_that_its_address_is_refused_for_stays_recorded(cluster: Cluster, clients: BrokerClients):
    cluster.put("/v1/cluster_config", {"upsert": {RATE: 1, "kafka_connections_max_per_ip": 0}, "remove": []})
    assert clients.more(14) == 0
    cluster.unset("kafka_connections_max_per_ip")
    assert clients.more(4) == 0


def test_its_use_is_shown_as_that_of_no_broker(cluster: Cluster, clients: BrokerClients):
    cluster.set(RATE, 1)
    assert clients.more(24) == BURST
    shown = until(
        lambda: [each for each in cluster.get("/v1/utilisation")["limits"] if each["of"] == "cluster" and each["used"]],
        what="a use that was sampled",
    )
    [row] = shown
    assert (row["broker"], row["what"], row["limit"], row["by"]) == (None, "new_connections", 1, RATE)
    for who in ("ip=127.0.0.1", "user=alice"):
        assert re.search(
            rf"new connections of the cluster +all +[\d.,]+/s of 1/s .*10 at once after a pause +{re.escape(RATE)}",
            cluster.turnstile("explain", who),
        )
    found = cluster.get("/v1/explain?ip=127.0.0.1")["cluster_rate"]
    assert (found["of"], found["limit"], found["value"], found["burst"]) == ("cluster", RATE, 1, 10)
    assert re.search(r"all +.*new connections of the cluster", cluster.turnstile("top", "--once"))
    assert re.search(
        rf"the cluster: new connections, [\d.,]+/s of 1/s .*by {re.escape(RATE)}", cluster.turnstile("status")
    )
    samples = [each for family in cluster.metrics() for each in family.samples if each.labels.get("of") == "cluster"]
    assert ("turnstile_limit_utilisation_ratio", "all", "new_connections") in [
        (each.name, each.labels["broker"], each.labels["limit"]) for each in samples
    ]
    rows = [row for row in cluster.get("/v1/refusals")["refusals"] if row["reason"] == "cluster_rate"]
    assert sum(row["count"] for row in rows) >= 14
    cluster.unset(RATE)
    assert "cluster_rate" not in cluster.get("/v1/explain?ip=127.0.0.1")


def test_one_broker_has_no_rate_of_its_own_and_a_change_says_how_many_pass_at_once(cluster: Cluster):
    with pytest.raises(AdminRefused, match="holds for all brokers together"):
        cluster.put("/v1/cluster_config?broker=0", {"upsert": {RATE: 5}, "remove": []})
    said = cluster.turnstile("config", "set", RATE, "5", "--broker", "0", expect=1)
    assert "holds for all brokers together, and can't be set for one" in said
    cluster.turnstile("config", "set", RATE, "0", expect=1)
    assert f"after a pause 50 connections pass at once before {RATE}=5" in cluster.turnstile("config", "set", RATE, "5")


def test_a_rate_that_the_cluster_starts_with_holds_from_its_first_connection(tmp_path):
    with audited(tmp_path / "d", "--set", f"{RATE}=1", brokers=3, shards=1) as cluster:
        clients = BrokerClients(cluster)
        assert clients.more(21) == BURST
        clients.close()


def test_of_one_broker_it_is_a_rate_of_the_broker_that_refuses(tmp_path):
    with audited(tmp_path / "d", "--set", f"{RATE}=1", shards=2) as cluster:
        clients = BrokerClients(cluster)
        assert clients.more(15) == BURST
        clients.close()
