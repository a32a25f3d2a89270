"""The cap of a whole cluster on real processes, two brokers of two shards: exact over all of them, whichever process dies or stands
still, and judged by the audit over the journals of both."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from broker_clients import BrokerClients, Storm
from harness import Cluster, audited, connect, running, until
from user_logins import ANY_IP, open_here

from shards.ownership import home_of, shard_of_member
from turnstile.admin_client import AdminRefused

CAP = "turnstile.cluster.max.connections"
BROKERS = SHARDS = 2
HOME = shard_of_member(home_of("cluster", BROKERS * SHARDS), SHARDS)
ELSEWHERE = next(
    (broker, shard) for broker in range(BROKERS) for shard in range(SHARDS) if broker != HOME[0]
)  # of the other broker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("cap") / "d"
    with audited(data, brokers=BROKERS, shards=SHARDS) as cluster:
        yield cluster


def refused(cluster: Cluster, reason: str = "cluster_cap") -> int:
    return int(cluster.metric("turnstile_connections_refused_total", reason=reason))


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[BrokerClients]:
    clients = BrokerClients(cluster)
    yield clients
    clients.close()
    cluster.unset(CAP)


def test_all_brokers_share_one_cap(cluster: Cluster, clients: BrokerClients):
    cluster.set(CAP, 9)
    assert clients.more(24) == 9
    assert clients.more(3, broker=0) == clients.more(3, broker=1) == 0
    clients.close()
    assert clients.more(12, broker=1) == 9, "one broker may have all of it"


def test_connections_from_before_the_cap_count_and_none_is_closed(cluster: Cluster, clients: BrokerClients):
    assert clients.more(8) == 8
    cluster.set(CAP, 10)
    assert clients.more(6) == 2
    cluster.set(CAP, 4)
    assert open_here(cluster) == 10
    assert clients.more(4) == 0
    cluster.unset(CAP)
    assert clients.more(5) == 5
    cluster.set(CAP, 16)
    assert clients.more(6) == 1, "those that came while there was no cap count"


def test_a_storm_over_both_brokers_while_the_cap_changes_and_a_shard_dies(cluster: Cluster, clients: BrokerClients):
    cluster.set(CAP, 20)
    with Storm(cluster):
        cluster.until_decided(400)
        os.kill(cluster.shard_pid(ELSEWHERE[1], ELSEWHERE[0]), signal.SIGKILL)
        cluster.until_decided(400)
        cluster.set(CAP, 7)
        cluster.until_decided(400)
        cluster.set("log.retention.ms", 100_000_000)
        os.kill(cluster.shard_pid(HOME[1], HOME[0]), signal.SIGKILL)
        cluster.until_decided(400)
        cluster.set(CAP, 15)
        cluster.until_decided(400)
    until(lambda: open_here(cluster) == 0, what="all closed")
    assert refused(cluster) > 0
    assert clients.more(20) == 15


def test_a_killed_shard_frees_its_tokens_for_the_other_broker(cluster: Cluster, clients: BrokerClients):
    cluster.set(CAP, 8)
    assert clients.more(16) == 8
    held = {(each["broker"], each["shard"]): each["connections"] for each in cluster.get("/v1/shards")["shards"]}
    victim = max(held, key=lambda place: held[place])
    os.kill(cluster.shard_pid(victim[1], victim[0]), signal.SIGKILL)
    until(lambda: open_here(cluster) == 8 - held[victim], what="the shard gone with its connections")
    assert clients.more(12, broker=1 - victim[0]) == held[victim]


def test_a_home_that_stands_still_is_ended_and_no_more_than_the_cap_get_in(cluster: Cluster, clients: BrokerClients):
    cluster.set(CAP, 6)
    assert clients.more(3, broker=ELSEWHERE[0]) == 3
    home = cluster.shard_pid(HOME[1], HOME[0])
    os.kill(home, signal.SIGSTOP)
    unanswered, decided = refused(cluster, "shard_unavailable"), cluster.decided()
    held = [connect(clients.addresses[ELSEWHERE[0]], ANY_IP[0]) for _ in range(12)]
    until(lambda: refused(cluster, "shard_unavailable") > unanswered, what="one that the home did not answer for")
    until(lambda: cluster.shard_pid(HOME[1], HOME[0]) != home, what="another home")
    until(lambda: cluster.decided() == decided + 12, what="each admitted or refused")
    assert open_here(cluster) <= 6
    for each in held:
        each.close()
    until(lambda: open_here(cluster) == 3, what="the others closed")
    assert clients.more(9) == 3


def test_its_use_is_shown_as_that_of_no_broker(cluster: Cluster, clients: BrokerClients):
    cluster.set(CAP, 10)
    assert clients.more(9) == 9
    [row] = [each for each in cluster.get("/v1/utilisation")["limits"] if each["of"] == "cluster"]
    assert (row["broker"], row["used"], row["limit"], row["level"], row["by"]) == (None, 9, 10, "near", CAP)
    [close] = [each for each in cluster.get("/v1/utilisation")["close"] if each["broker"] is None]
    assert (close["of"], close["near"], close["full"]) == ("cluster", 1, 0)
    assert cluster.metric("turnstile_limit_utilisation_ratio", broker="all", of="cluster") == 0.9
    for who in (["ip=127.0.0.1"], ["user=alice"], ["ip=127.0.0.1", "user=alice", "client-id=app"]):
        told = cluster.turnstile("explain", *who)
        assert re.findall(rf"connections of the cluster +all +9 of 10 \(90 %\) +{re.escape(CAP)}", told) == [
            told.splitlines()[1]
        ]
    assert "the cluster" not in cluster.turnstile("explain", "client-id=app"), "no connection is asked about"
    [pool] = [each for each in cluster.get("/v1/tokens")["pools"] if each["kind"] == "cluster"]
    assert (pool["broker"], pool["in_use"], pool["cap"], pool["limit"]) == (None, 9, 10, CAP)
    assert pool["home"] == home_of("cluster", BROKERS * SHARDS)
    assert sum(each["in_use"] for each in pool["holders"]) == 9
    assert re.search(r"all +.*connections of the cluster", cluster.turnstile("top", "--once"))
    cluster.unset(CAP)
    assert "the cluster" not in cluster.turnstile("explain", "ip=127.0.0.1")
    assert "cluster" not in cluster.get("/v1/explain?ip=127.0.0.1&user=alice")
    assert "connections" not in cluster.turnstile("explain", "user=alice"), "nothing limits them"


def test_one_broker_has_no_cap_of_its_own(cluster: Cluster):
    with pytest.raises(AdminRefused, match="holds for all brokers together"):
        cluster.put("/v1/cluster_config?broker=0", {"upsert": {CAP: 5}, "remove": []})
    said = cluster.turnstile("config", "set", CAP, "5", "--broker", "0", expect=1)
    assert "holds for all brokers together, and can't be set for one" in said


def test_a_cap_that_the_cluster_starts_with_holds_from_its_first_connection(tmp_path):
    with audited(tmp_path / "d", "--set", f"{CAP}=5", brokers=3, shards=1) as cluster:
        addresses = next(iter(cluster.listeners.values()))
        socks = [connect(addresses[n % 3], ANY_IP[0]) for n in range(12)]
        until(lambda: open_here(cluster) + refused(cluster) == 12, what="each decided")
        assert open_here(cluster) == 5
        for each in socks:
            each.close()


def test_of_one_broker_it_is_the_cap_of_the_broker(tmp_path):
    with running(tmp_path / "d", "--set", f"{CAP}=0", shards=2) as cluster:
        assert any(f"{CAP}=0 refuses every connection" in note for note in cluster.get("/v1/notes")["notes"])
        with connect(cluster.address) as sock:
            assert sock.recv(1) == b""
        assert refused(cluster) == 1
