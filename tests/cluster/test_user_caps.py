"""Caps of a user's connections on real processes: exact on all shards and from all addresses, counted before they are set, and
answered as MSK answers. And the cap of all connections over TLS."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
from collections.abc import Iterator

import pytest
from certificates import make_certificate
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from harness import Cluster, audited, connect, until
from scram import ScramClient
from scram import login as scram_login
from user_logins import ANY_IP, TOO_MANY, Logins, open_here
from users import add_users, is_served
from wired import Wired

from broker.wire import codes
from shards.ownership import home_of

CAP, OVERRIDES = "turnstile.max.connections.per.user", "turnstile.max.connections.per.user.overrides"
RATE, RATES = (f"turnstile.max.connection.creation.rate.per.user{each}" for each in ("", ".overrides"))
SSL_CAP = "turnstile.max.ssl.connections"
SHARDS = 3
RATED = ["carol", "dave", "erin", "frank", "grace"]
"""Users of one test each, as windows outlive it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("users") / "d"
    listeners = ["PLAINTEXT=127.0.0.1:0", "SASL=127.0.0.1:0,sasl", "OTHER=127.0.0.1:0,sasl"]
    certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    if certificate is not None:
        listeners += [certificate.listener("TLS"), f"{certificate.listener('BOTH')},sasl"]
    options = [word for each in listeners for word in ("--listener", each)]
    options += ["--set", "connection.failed.authentication.delay.ms=0"]
    with audited(data, *options, shards=SHARDS) as cluster:
        add_users(cluster, ["alice", "bob", *RATED])
        yield cluster


@pytest.fixture(autouse=True)
def no_limits(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.put("/v1/cluster_config", {"upsert": {}, "remove": [CAP, OVERRIDES, RATE, RATES, SSL_CAP]})
    until(lambda: open_here(cluster) == 0, what="all connections closed")


def set_caps(cluster: Cluster, cap: int | None = None, **own: int) -> None:
    upsert: dict[str, object] = {} if cap is None else {CAP: cap}
    if own:
        upsert[OVERRIDES] = [f"{user}:{count}" for user, count in own.items()]
    cluster.put("/v1/cluster_config", {"upsert": upsert, "remove": []})


def refused(cluster: Cluster, reason: str = "user_cap") -> int:
    rows = cluster.get("/v1/refusals")["refusals"]
    return sum(row["count"] for row in rows if row["reason"] == reason)


@pytest.fixture
def logins(cluster: Cluster) -> Iterator[Logins]:
    logins = Logins(cluster)
    yield logins
    logins.close()


def test_exactly_the_cap_of_a_user_logs_in_from_all_addresses_and_listeners(cluster: Cluster, logins: Logins):
    set_caps(cluster, 5)
    before = refused(cluster)
    assert logins.more(12) == 5
    assert logins.more(4, listener="OTHER") == 0
    assert refused(cluster) == before + 11
    assert all(is_served(each) for each in logins.open)
    assert logins.more(7, user="bob") == 5


def test_a_connection_that_closes_lets_another_of_its_user_in(cluster: Cluster, logins: Logins):
    set_caps(cluster, 3)
    for _ in range(5):
        assert logins.more(5) == 3
        logins.fewer(3)


def test_connections_from_before_a_first_cap_count(cluster: Cluster, logins: Logins):
    assert logins.more(6) == 6
    set_caps(cluster, 4)
    assert logins.more(3) == 0
    logins.fewer(3)
    assert logins.more(3) == 1


def test_an_override_replaces_the_cap_of_its_user_alone(cluster: Cluster, logins: Logins):
    set_caps(cluster, 0, bob=2)
    assert logins.more(3) == 0
    assert logins.more(4, user="bob") == 2
    set_caps(cluster, 0, bob=3)
    assert logins.more(2, user="bob") == 1


def test_scram_is_refused_by_its_last_answer(cluster: Cluster, logins: Logins):
    set_caps(cluster, 0)
    with connect(cluster.listeners["SASL"][0], ANY_IP[0]) as sock:
        code, _ = scram_login(
            Wired(sock, "app"), "SCRAM-SHA-256", ScramClient("SCRAM-SHA-256", "alice", "alice-secret")
        )
    assert code == codes.SASL_AUTHENTICATION_FAILED


def test_clients_that_do_not_log_in_have_no_cap(cluster: Cluster, logins: Logins):
    set_caps(cluster, 0)
    with connect(cluster.listeners["PLAINTEXT"][0], ANY_IP[0]) as sock:
        assert is_served(Wired(sock, "app"))


def test_a_wrong_password_takes_no_token(cluster: Cluster, logins: Logins):
    set_caps(cluster, 1)
    with connect(cluster.listeners["SASL"][0], ANY_IP[0]) as sock:
        client = Wired(sock, "app")
        assert client.ask("sasl_handshake", 1, mechanism="PLAIN").error_code == codes.NONE
        answer = client.ask("sasl_authenticate", 1, auth_bytes=b"\0alice\0wrong")
        assert answer.error_code == codes.SASL_AUTHENTICATION_FAILED
        assert not re.fullmatch(TOO_MANY, answer.error_message)
        assert logins.more(2) == 1


def test_librdkafka_is_told_that_there_are_too_many(cluster: Cluster, logins: Logins):
    set_caps(cluster, 0)
    host, port = cluster.listeners["SASL"][0]
    errors: list[KafkaError] = []
    client = AdminClient({
        "bootstrap.servers": f"{host}:{port}", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice", "sasl.password": "alice-secret", "error_cb": errors.append, "log_level": 0,
    })  # fmt: skip
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)

    def is_told() -> bool:
        client.poll(0.1)
        return any(each.code() == KafkaError._AUTHENTICATION and "Too many connects" in each.str() for each in errors)

    until(is_told, what="that there are too many")


def test_a_login_whose_cap_has_a_home_that_hangs_is_closed_unanswered(cluster: Cluster, logins: Logins):
    set_caps(cluster, 20)
    before = cluster.metric("turnstile_connections_refused_total", reason="shard_unavailable")
    fresh = [Wired(connect(cluster.listeners["SASL"][0], ip), "app") for ip in ANY_IP * 3]
    logins.open += fresh  # closed at the end
    for each in fresh:
        assert each.ask("sasl_handshake", 1, mechanism="PLAIN").error_code == codes.NONE
    home = cluster.shard_pid(home_of("user:alice", SHARDS))
    os.kill(home, signal.SIGSTOP)
    try:
        for each in fresh:
            each.send("sasl_authenticate", 1, auth_bytes=b"\0alice\0alice-secret")
        until(
            lambda: cluster.metric("turnstile_connections_refused_total", reason="shard_unavailable") > before,
            what="a login that its home does not answer",
        )
        ended = {sock.fileno(): sock for sock in select.select([each.sock for each in fresh], [], [], 10)[0]}
        assert all(sock.recv(1) == b"" for sock in ended.values()) and ended
    finally:
        os.kill(home, signal.SIGCONT)


def test_the_use_of_a_users_cap_is_explained_and_among_the_limits_closest_to_being_reached(
    cluster: Cluster, logins: Logins
):
    set_caps(cluster, 4)
    assert logins.more(6) == 4
    shown = cluster.turnstile("explain", "user=alice")
    assert re.search(rf"connections of user alice +4 of 4 \(100 %\) +{CAP}", shown), shown
    [told] = cluster.get("/v1/explain?user=alice")["user_connections"]
    assert (told["pool"], told["limit"], told["value"], told["in_use"]) == ("user:alice", CAP, 4, 4)
    limits = cluster.get("/v1/utilisation")
    [row] = [each for each in limits["limits"] if each["of"] == "user:alice"]
    assert (row["what"], row["used"], row["limit"], row["level"], row["by"]) == ("connections", 4, 4, "full", CAP)
    [close] = [each for each in limits["close"] if each["of"] == "user"]
    assert (close["what"], close["full"]) == ("connections", 1)
    assert cluster.metric("turnstile_limit_utilisation_ratio", of="user", limit="connections") == 1
    assert any(use["of"] == "user:alice" for use in cluster.get("/v1/live?since=0")["uses"])
    point = cluster.get("/v1/watch?user=alice")["points"][-1]
    assert (point["used"]["connections"], point["limits"]["connections"]) == (4, 4)
    assert "user_connections" not in cluster.get("/v1/explain?ip=127.0.0.1")


def test_a_killed_shard_frees_the_tokens_of_its_connections_and_no_others(cluster: Cluster, logins: Logins):
    set_caps(cluster, 6)
    assert logins.more(12) == 6
    until(lambda: open_here(cluster) == 6, what="the refused ones closed")
    victim = max(cluster.get("/v1/shards")["shards"], key=lambda each: each["connections"])
    os.kill(victim["pid"], signal.SIGKILL)
    until(lambda: open_here(cluster) == 6 - victim["connections"], what="the shard gone with its connections")
    assert sum(is_served(each) for each in logins.open) == 6 - victim["connections"]
    assert logins.more(9) == victim["connections"]


def test_a_load_that_logs_in_agrees_with_the_cluster_of_what_was_refused(cluster: Cluster):
    set_caps(cluster, 2)
    host, port = cluster.listeners["SASL"][0]
    words = ["--bootstrap", f"{host}:{port}", "--sources", ANY_IP[0], "--connections", "6", "--hold", "end"]
    seen = cluster.told("load", *words, "--user", "bob=bob-secret")
    assert (seen["admitted"], seen["refused"], seen["refused_as"]) == (2, 4, {"sasl-error": 4})
    assert seen["cluster"] == {"admitted": 2, "refused": {"user_cap": 4}} and seen["reconciled"] is True


def set_rates(cluster: Cluster, rate: int, **own: int) -> None:
    upsert: dict[str, object] = {RATE: rate}
    if own:
        upsert[RATES] = [f"{user}:{each}" for user, each in own.items()]
    cluster.put("/v1/cluster_config", {"upsert": upsert, "remove": []})


def test_logins_beyond_the_rate_of_their_user_are_refused_as_one_kafka_broker_would(cluster: Cluster, logins: Logins):
    """By 11 samples of a second, ten seconds' worth passes at once; that it is exact says the audit at the end."""
    set_rates(cluster, 1)
    before = refused(cluster, "user_rate")
    let_in = logins.more(15, "carol") + logins.more(15, "carol", listener="OTHER")
    assert 10 <= let_in < 30
    assert refused(cluster, "user_rate") == before + 30 - let_in
    shown = cluster.turnstile("explain", "user=carol")
    assert re.search(rf"new connections of user carol +[\d.,]+/s of 1/s .*{RATE}", shown), shown
    rows = [each for each in cluster.get("/v1/utilisation")["limits"] if each["of"] == "user:carol"]
    assert [(row["what"], row["limit"], row["by"]) for row in rows] == [("new_connections", 1, RATE)]
    point = cluster.get("/v1/watch?user=carol")["points"][-1]
    assert point["limits"]["new_connections"] == 1 and point["used"]["new_connections"] > 0


def test_an_override_replaces_the_rate_of_its_user_alone(cluster: Cluster, logins: Logins):
    set_rates(cluster, 1, dave=2)
    assert 20 <= logins.more(35, "dave") < 35
    assert logins.more(15, "erin") < 15


def test_the_rate_is_asked_before_the_cap_which_leaves_the_login_recorded(cluster: Cluster, logins: Logins):
    set_rates(cluster, 1)
    set_caps(cluster, 2)
    before = {reason: refused(cluster, reason) for reason in ("user_cap", "user_rate")}
    assert logins.more(25, "frank") == 2
    by_cap, by_rate = (refused(cluster, reason) - count for reason, count in before.items())
    assert by_cap >= 8 and by_cap + by_rate == 23 and by_rate > 0


def test_a_killed_home_of_a_rate_leaves_no_room_behind(cluster: Cluster, logins: Logins):
    set_rates(cluster, 1)
    assert logins.more(15, "grace") >= 10
    home = home_of("rate:user:grace", SHARDS)
    pid = cluster.shard_pid(home)
    os.kill(pid, signal.SIGKILL)
    until(lambda: cluster.shard_pid(home) not in (None, pid), what="the home started again")
    assert logins.more(12, "grace") < 10


class OverTls:
    """Connections to listeners with TLS, from several addresses, that stay open if they are admitted."""

    def __init__(self, cluster: Cluster) -> None:
        if "TLS" not in cluster.listeners:
            pytest.skip("needs openssl")
        self._cluster = cluster
        self.open: list[socket.socket] = []

    def more(self, count: int, listener: str = "TLS") -> int:
        """How many of `count` that connect at once are admitted."""
        before = open_here(self._cluster), refused(self._cluster, "ssl_cap")
        address = self._cluster.listeners[listener][0]
        self.open += [connect(address, ANY_IP[n % len(ANY_IP)]) for n in range(count)]

        def decided() -> tuple[int, int]:
            return open_here(self._cluster) - before[0], refused(self._cluster, "ssl_cap") - before[1]

        until(lambda: sum(decided()) == count, what="each admitted or refused")
        return decided()[0]

    def close(self) -> None:
        while self.open:
            self.open.pop().close()


@pytest.fixture
def over_tls(cluster: Cluster) -> Iterator[OverTls]:
    clients = OverTls(cluster)
    yield clients
    clients.close()


def set_ssl_cap(cluster: Cluster, cap: int, query: str = "") -> None:
    cluster.put(f"/v1/cluster_config{query}", {"upsert": {SSL_CAP: cap}, "remove": []})


def test_all_listeners_with_tls_share_one_cap_and_others_are_not_asked(cluster: Cluster, over_tls: OverTls):
    assert over_tls.more(2, "BOTH") == 2
    set_ssl_cap(cluster, 5)
    assert over_tls.more(9) == 3, "those from before the cap count"
    assert over_tls.more(4, "BOTH") == 0
    with connect(cluster.listeners["PLAINTEXT"][0], ANY_IP[0]) as sock:
        assert is_served(Wired(sock, "app"))
    assert re.search(
        rf"connections of clients over TLS +5 of 5 \(100 %\) +{SSL_CAP}", cluster.turnstile("explain", "ip=127.0.0.1")
    )
    [row] = [each for each in cluster.get("/v1/utilisation")["limits"] if each["of"] == "ssl"]
    assert (row["used"], row["limit"], row["level"], row["by"]) == (5, 5, "full", SSL_CAP)
    over_tls.close()
    until(lambda: open_here(cluster) == 0, what="all closed")
    assert over_tls.more(6) == 5


def test_a_killed_shard_frees_the_tokens_of_its_connections_over_tls_alone(cluster: Cluster, over_tls: OverTls):
    set_ssl_cap(cluster, 6)
    assert over_tls.more(12) == 6
    victim = max(cluster.get("/v1/shards")["shards"], key=lambda each: each["connections"])
    os.kill(victim["pid"], signal.SIGKILL)
    until(lambda: open_here(cluster) == 6 - victim["connections"], what="the shard gone with its connections")
    assert over_tls.more(9) == victim["connections"]


def test_an_observed_cap_of_connections_over_tls_refuses_none_and_counts_what_it_would(
    cluster: Cluster, over_tls: OverTls
):
    set_ssl_cap(cluster, 2, "?observe=true")
    try:
        assert over_tls.more(7, "BOTH") == 7

        def told() -> list[tuple[str, int]]:
            rows = cluster.get("/v1/refusals?observed=true")["refusals"]
            return [(row["reason"], row["count"]) for row in rows]

        until(lambda: told() == [("ssl_cap", 5)], what="the five beyond the cap")
    finally:
        cluster.put("/v1/cluster_config?observe=true", {"upsert": {}, "remove": [SSL_CAP]})
