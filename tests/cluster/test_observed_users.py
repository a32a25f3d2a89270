"""Observed limits of users on real clusters: the decisions of enforced ones, no login refused, no token left at the end."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Iterator

import pytest
from harness import Cluster, audited, connect, until
from observing import observe
from user_logins import ANY_IP, Logins
from users import add_users, is_served, login
from wired import Wired

from shards.ownership import home_of

CAP, OVERRIDES = "turnstile.max.connections.per.user", "turnstile.max.connections.per.user.overrides"
RATE = "turnstile.max.connection.creation.rate.per.user"
PER_IP = "kafka_connections_max_per_ip"
USERS = ["alice", "bob", "carol"]
SHARDS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from _cluster(tmp_path_factory)


@pytest.fixture(scope="module")
def enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from _cluster(tmp_path_factory)


def _cluster(folders: pytest.TempPathFactory) -> Iterator[Cluster]:
    options = ["--listener", "PLAINTEXT=127.0.0.1:0", "--listener", "SASL=127.0.0.1:0,sasl"]
    options += ["--set", "connection.failed.authentication.delay.ms=0"]
    with audited(folders.mktemp("users") / "d", *options, shards=SHARDS) as cluster:
        add_users(cluster, USERS)
        yield cluster


@pytest.fixture(autouse=True)
def nothing_observed(cluster: Cluster) -> Iterator[None]:
    """After each test nothing is observed, and no observed token is left."""
    yield
    observe(cluster, **dict.fromkeys((CAP, OVERRIDES, RATE, PER_IP)))
    assert not observed_pools(cluster)


@pytest.fixture
def logins(cluster: Cluster) -> Iterator[Logins]:
    logins = Logins(cluster)
    yield logins
    logins.close()


def observed_pools(cluster: Cluster) -> dict[str, int]:
    """Observed tokens in use, by kind of pool."""
    found: dict[str, int] = {}
    for pool in cluster.get("/v1/tokens")["pools"]:
        if pool["kind"].startswith("observed/") and pool["in_use"]:
            found[pool["kind"]] = found.get(pool["kind"], 0) + pool["in_use"]
    return found


def would_refuse(cluster: Cluster) -> dict[str, int]:
    rows = cluster.get("/v1/refusals?observed=true&by=limit")["refusals"]
    return {row["limit"]: row["count"] for row in rows}


def await_decided(observing: Cluster, enforcing: Cluster, in_use: int, refused: int) -> None:
    """Until so many tokens of users are in use in both, and so many logins would have been refused in the one that observes."""

    def decided() -> tuple[int, int, int]:
        enforced = sum(pool["in_use"] for pool in enforcing.get("/v1/tokens")["pools"] if pool["kind"] == "user")
        return observed_pools(observing).get("observed/user", 0), enforced, sum(would_refuse(observing).values())

    until(lambda: decided() == (in_use, in_use, refused), what=f"{in_use} in use in both, {refused} refused")


def test_a_cap_observed_decides_as_the_same_cap_enforced(cluster: Cluster, enforcing: Cluster) -> None:
    """The same logins and closes in the same order."""
    draw = random.Random(5)
    before = cluster.metric("turnstile_observed_refusals_total", observed="true", reason="user_cap")
    observe(cluster, **{CAP: 3, OVERRIDES: ["bob:1"]})
    enforcing.put("/v1/cluster_config", {"upsert": {CAP: 3, OVERRIDES: ["bob:1"]}, "remove": []})
    there, here = Logins(cluster), Logins(enforcing)
    pairs: list[tuple[Wired, Wired]] = []  # in the observed world, and open where the cap is enforced
    refused = 0
    try:
        for _ in range(60):
            if pairs and draw.random() < 0.3:
                for each in pairs.pop(draw.randrange(len(pairs))):
                    each.sock.close()
            else:
                user = draw.choice(USERS)
                assert there.more(1, user) == 1
                if here.more(1, user):
                    pairs.append((there.open[-1], here.open[-1]))
                else:
                    refused += 1
            await_decided(cluster, enforcing, len(pairs), refused)
    finally:
        there.close()
        here.close()
    assert refused > 5
    assert cluster.get("/v1/refusals")["total"] == 0
    assert cluster.metric("turnstile_observed_refusals_total", observed="true", reason="user_cap") == before + refused


def test_a_login_that_would_have_been_refused_leaves_its_place_to_others(cluster: Cluster, logins: Logins) -> None:
    observe(cluster, **{CAP: 1, PER_IP: 2})
    address = cluster.listeners["SASL"][0]
    first, second = (Wired(connect(address, ANY_IP[0]), "app") for _ in range(2))
    logins.open += [login(each, "alice") for each in (first, second)]
    until(lambda: would_refuse(cluster) == {CAP: 1}, what="the second login")
    assert observed_pools(cluster)["observed/ip"] == 1
    logins.open.append(login(Wired(connect(address, ANY_IP[0]), "app"), "bob"))
    until(lambda: observed_pools(cluster).get("observed/user") == 2, what="a place for another")
    outside = Wired(connect(address, ANY_IP[0]), "app")
    until(lambda: would_refuse(cluster) == {CAP: 1, PER_IP: 1}, what="one refused by its address")
    logins.open.append(login(outside, "carol"))  # it would not have come so far, so its user is not asked about
    assert is_served(outside)
    assert observed_pools(cluster)["observed/user"] == 2
    assert cluster.get("/v1/refusals")["total"] == 0


def test_clients_that_have_logged_in_count_from_the_beginning(cluster: Cluster, logins: Logins) -> None:
    assert logins.more(4) == 4
    observe(cluster, **{CAP: 5})
    assert observed_pools(cluster)["observed/user"] == 4
    assert logins.more(3) == 3
    until(lambda: would_refuse(cluster) == {CAP: 2}, what="two that would have been refused")
    said = cluster.turnstile("explain", "user=alice")
    assert re.search(rf"observed: user alice +5 of 5 \(100 %\) +{CAP}; over it a connection would be refused", said), (
        said
    )
    [told] = cluster.get("/v1/explain?user=alice")["user_connections"]
    assert told["observed"] == {"limit": CAP, "value": 5, "waits": False, "in_use": 5}


def test_a_rate_observed_counts_the_logins_beyond_it(cluster: Cluster, logins: Logins) -> None:
    """Thirty logins at 1/s: ten seconds' worth passes at once. Without another observed limit they hold no observed token."""
    before = cluster.metric("turnstile_observed_refusals_total", reason="user_rate")
    observe(cluster, **{RATE: 1})
    assert logins.more(30) == 30
    assert not observed_pools(cluster)
    told = until(lambda: would_refuse(cluster).get(RATE), what="logins beyond the rate")
    assert 0 < told <= 20
    until(
        lambda: (
            would_refuse(cluster)
            == {RATE: cluster.metric("turnstile_observed_refusals_total", reason="user_rate") - before}
        ),
        what="the same counted by metrics",
    )


def test_a_rate_observed_beside_one_of_addresses_asks_about_those_in_the_observed_world(
    cluster: Cluster, logins: Logins
) -> None:
    of_ip = {"alter": [{"entity": {"ip": None}, "set": {"connection_creation_rate": 1000}, "remove": []}]}
    cluster.client.put("/v1/quotas", of_ip, observe=True)
    try:
        observe(cluster, **{RATE: 1})
        assert logins.more(30) == 30
        until(
            lambda: sum(would_refuse(cluster).values()) + observed_pools(cluster).get("observed/user", 0) == 30,
            what="all decided",
        )
        assert 0 < would_refuse(cluster)[RATE] <= 20
    finally:
        of_ip["alter"][0] |= {"set": {}, "remove": ["connection_creation_rate"]}
        cluster.client.put("/v1/quotas", of_ip, observe=True)


def test_a_home_that_hangs_leaves_observed_logins_undecided_and_delays_none(cluster: Cluster, logins: Logins) -> None:
    user = next(each for each in USERS if home_of(f"observed/user:{each}", SHARDS) != home_of(f"user:{each}", SHARDS))
    observe(cluster, **{CAP: 20})
    home = cluster.shard_pid(home_of(f"observed/user:{user}", SHARDS))
    address = cluster.listeners["SASL"][0]
    fresh = [Wired(connect(address, ip), "app") for ip in ANY_IP * 2]
    for each in fresh:
        each.ask("sasl_handshake", 1, mechanism="PLAIN")
    logins.open += fresh
    os.kill(home, signal.SIGSTOP)
    try:
        for each in fresh:
            each.send("sasl_authenticate", 1, auth_bytes=f"\0{user}\0{user}-secret".encode())
        until(
            lambda: cluster.metric("turnstile_observed_refusals_total", reason="shard_unavailable") > 0,
            what="an undecided login",
        )
    finally:
        os.kill(home, signal.SIGCONT)
    assert cluster.metric("turnstile_connections_refused_total", reason="shard_unavailable") == 0


def test_a_killed_shard_takes_its_observed_logins_along_and_no_others(cluster: Cluster, logins: Logins) -> None:
    observe(cluster, **{CAP: 6})
    assert logins.more(6) == 6
    until(lambda: observed_pools(cluster).get("observed/user") == 6, what="all in the observed world")
    victim = max(cluster.get("/v1/shards")["shards"], key=lambda each: each["connections"])
    os.kill(victim["pid"], signal.SIGKILL)
    until(lambda: observed_pools(cluster).get("observed/user") == 6 - victim["connections"], what="its logins gone")
    assert sum(is_served(each) for each in logins.open) == 6 - victim["connections"]
    assert logins.more(victim["connections"] + 2) == victim["connections"] + 2
    until(lambda: would_refuse(cluster) == {CAP: 2}, what="two more than the cap")
