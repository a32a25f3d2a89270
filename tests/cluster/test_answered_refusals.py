"""Refused connections that are told so, on real processes: what each mode answers on each kind of listener, and that a refused
connection is counted and journaled once, as refused, and is in no list of open ones."""

import os
import re
import signal
import ssl
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from announcing import v1
from certificates import make_certificate
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from harness import admitted, audited, connect, until
from users import add_users
from wired import Wired

from broker.wire import codes

IP = "127.1.0.1"
MODE, HOLD_MS, ERROR = "turnstile.refuse.mode", "turnstile.refuse.hold.ms", "turnstile.refuse.error"
AFTER, SASL, API = MODES = ("after-api-versions", "sasl-error", "api-error")
TOO_MANY = r"\[[0-9a-f-]{36}\]: Too many connects"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answering")
    listeners = ["PLAIN=127.0.0.1:0", "LOGIN=127.0.0.1:0,sasl", "EDGE=127.0.0.1:0,proxy=required,trusted=127.0.0.1"]
    certificate = make_certificate(folder)
    if certificate is not None:
        listeners.append(certificate.listener("TLS"))
    options = [word for each in listeners for word in ("--listener", each)]
    limits = ("--set", "kafka_connections_max_per_ip=0", "--set", f"kafka_connections_max_overrides={IP}:2")
    with audited(folder / "d", *options, *limits, "--topic", "t:1") as cluster:
        add_users(cluster, ["alice"])
        yield cluster


@pytest.fixture(autouse=True)
def as_before(cluster):
    yield
    cluster.put("/v1/cluster_config", {"upsert": {}, "remove": [MODE, HOLD_MS, ERROR]})


def refused(cluster):
    return cluster.metric("turnstile_connections_refused_total")


@contextmanager
def refusal(cluster, mode, listener="PLAIN", hold_ms=60_000):
    """A connection that is refused under a mode, and counted so by the end of the block, once."""
    cluster.put("/v1/cluster_config", {"upsert": {MODE: mode, HOLD_MS: hold_ms}, "remove": []})
    before, let_in = refused(cluster), cluster.metric("turnstile_connections_admitted_total")
    with connect(cluster.listeners[listener][0], "127.0.0.1") as sock:
        if listener == "EDGE":
            sock.sendall(v1("203.0.113.7", 4711))
        if listener != "TLS":
            yield Wired(sock, "app")
        else:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(sock) as secure:
                yield Wired(secure, "app")
    until(lambda: refused(cluster) == before + 1, what="one refusal counted")
    assert cluster.metric("turnstile_connections_admitted_total") == let_in


def is_over(connection):
    return connection.sock.recv(1) == b""


@pytest.mark.parametrize("listener", ["PLAIN", "LOGIN", "EDGE", "TLS"])
def test_api_versions_is_answered_and_then_the_connection_ends(cluster, listener):
    if listener not in cluster.listeners:
        pytest.skip("needs openssl")
    with refusal(cluster, AFTER, listener) as client:
        assert client.ask("api_versions", 2).error_code == 0
        assert is_over(client)


def test_another_first_request_is_not_answered(cluster):
    with refusal(cluster, AFTER) as client:
        client.send("metadata", 9)
        assert is_over(client)


@pytest.mark.parametrize("listener", ["PLAIN", "EDGE", "TLS"])
def test_the_first_request_after_api_versions_gets_the_error(cluster, listener):
    if listener not in cluster.listeners:
        pytest.skip("needs openssl")
    with refusal(cluster, API, listener) as client:
        assert client.ask("api_versions", 2).error_code == 0
        topics = [client.types("metadata", 9).MetadataRequestTopic(name=name) for name in ("t", "other")]
        answer = client.ask("metadata", 9, topics=topics)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("t", codes.POLICY_VIOLATION),
            ("other", codes.POLICY_VIOLATION),
        ]
        assert is_over(client)
    with connect(cluster.address, IP) as let_in:
        all_topics = Wired(let_in, "app").ask("metadata", 9, topics=None).topics
        assert [topic.name for topic in all_topics] == ["t"]  # nothing was done


def test_the_error_says_which_limit_where_there_is_room_and_can_be_another_one(cluster):
    cluster.set(ERROR, "THROTTLING_QUOTA_EXCEEDED")
    with refusal(cluster, API) as client:
        answer = client.ask("find_coordinator", 4, coordinator_keys=("g",))
        (coordinator,) = answer.coordinators
        assert (coordinator.key, coordinator.error_code) == ("g", codes.THROTTLING_QUOTA_EXCEEDED)
        assert coordinator.error_message == "Connection refused by kafka_connections_max_per_ip = 0"
        assert is_over(client)


def test_a_login_gets_msks_text_and_its_mechanisms_first(cluster):
    with refusal(cluster, SASL, "LOGIN") as client:
        assert client.ask("api_versions", 2).error_code == 0
        assert "PLAIN" in client.ask("sasl_handshake", 1, mechanism="PLAIN").mechanisms
        answer = client.ask("sasl_authenticate", 2, auth_bytes=b"\0alice\0alice-secret")
        assert answer.error_code == codes.SASL_AUTHENTICATION_FAILED
        assert re.fullmatch(TOO_MANY, answer.error_message)
        assert is_over(client)
    assert cluster.metric("turnstile_auth_failures_total") == 0


def test_a_login_of_the_old_kind_has_no_place_for_a_text(cluster):
    with refusal(cluster, SASL, "LOGIN") as client:
        client.ask("sasl_handshake", 0, mechanism="PLAIN")
        client.sock.sendall(b"\0\0\0\x03\0a\0")
        assert is_over(client)


def test_where_nobody_logs_in_sasl_error_closes_at_once(cluster):
    with refusal(cluster, SASL) as client:
        assert is_over(client)


@pytest.mark.parametrize("mode", [AFTER, API])
def test_silence_lasts_for_the_time_of_hold(cluster, mode):
    with refusal(cluster, mode, hold_ms=200) as client:
        assert is_over(client)


@pytest.mark.parametrize("data", [b"\xff" * 4096, b"\0\0\xff\xff" + b"x" * 60_000, b"\0\0\0\x04" + b"\xff" * 4])
def test_garbage_ends_it_and_only_it(cluster, data):
    malformed = cluster.metric("turnstile_malformed_total")
    with refusal(cluster, API) as client:
        try:
            client.sock.sendall(data)
            assert is_over(client)
        except ConnectionError:
            pass  # a reset: unread bytes
    assert cluster.metric("turnstile_malformed_total") == malformed


def test_pipelined_requests_get_one_answer(cluster):
    with refusal(cluster, API) as client:
        for _ in range(3):
            client.send("api_versions", 2)
        for _ in range(50):
            client.send("find_coordinator", 3, key="g")
        for _ in range(3):
            assert client.answer("api_versions", 2).error_code == 0
        assert client.answer("find_coordinator", 3).error_code == codes.POLICY_VIOLATION
        assert is_over(client)


def descriptors(cluster):
    return sum(len(list(Path(f"/proc/{cluster.shard_pid(shard)}/fd").iterdir())) for shard in range(2))


def test_two_thousand_that_say_nothing_are_in_no_list_and_keep_nobody_out(cluster):
    cluster.put("/v1/cluster_config", {"upsert": {MODE: API, HOLD_MS: 60_000}, "remove": []})
    before, opened = refused(cluster), descriptors(cluster)
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(cluster.address, "127.0.0.1")) for _ in range(2000)]
        until(lambda: refused(cluster) == before + 2000, what="all refused")
        with connect(cluster.address, IP) as let_in:
            assert admitted(let_in)
            assert sum(row["connections"] for row in cluster.get("/v1/shards")["shards"]) == 1
        client = Wired(silent[-1], "late")
        assert client.ask("metadata", 9).brokers == ()
        assert is_over(client)
    until(lambda: descriptors(cluster) < opened + 10, what="their places are free")


@pytest.mark.parametrize("begun", [b"", b"\0\0\x01"])
def test_clients_that_leave_are_gone_at_once_and_shards_that_were_stopped_go_on(cluster, begun):
    cluster.put("/v1/cluster_config", {"upsert": {MODE: API, HOLD_MS: 60_000}, "remove": []})
    before, opened = refused(cluster), descriptors(cluster)
    pids = [cluster.shard_pid(shard) for shard in range(2)]
    with ExitStack() as stack:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
        for sock in [stack.enter_context(connect(cluster.address, "127.0.0.1")) for _ in range(40)]:
            sock.sendall(begun)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        until(lambda: refused(cluster) == before + 40, what="all refused")
        assert descriptors(cluster) > opened + 30, "of the 40, as clients of an earlier test may have left since"
    until(lambda: descriptors(cluster) < opened + 10, what="their places are free")


def librdkafka(cluster, listener, **config):
    """The errors that its callback is told until a request of it fails, and one at least."""
    told = []
    address = "{}:{}".format(*cluster.listeners[listener][0])
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, "error_cb": told.append, **config})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)
    until(lambda: told or client.poll(0.1) or told, what="an error is told")
    return told


def test_librdkafka_tells_its_user_of_too_many_connects(cluster):
    cluster.set(MODE, SASL)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    told = librdkafka(cluster, "LOGIN", **login, **{"sasl.password": "alice-secret"})
    of_login = [each for each in told if each.code() == KafkaError._AUTHENTICATION]
    assert of_login and all(re.search(TOO_MANY, each.str()) for each in of_login), told


@pytest.mark.parametrize("mode", MODES)
def test_librdkafka_is_kept_out(cluster, mode):
    cluster.set(MODE, mode)
    before = refused(cluster)
    librdkafka(cluster, "PLAIN")
    until(lambda: refused(cluster) > before, what="it is counted")


@pytest.mark.parametrize(
    ("mode", "listener", "login"),
    [(AFTER, "PLAIN", ()), (API, "PLAIN", ()), (API, "LOGIN", ()), (SASL, "LOGIN", ("--user", "alice=alice-secret"))],
)
def test_a_load_counts_refused_connections_that_are_answered_as_refused(cluster, mode, listener, login):
    for_a_slow_driver = {HOLD_MS: 60_000}
    cluster.put("/v1/cluster_config", {"upsert": {MODE: mode, **for_a_slow_driver}, "remove": []})
    host, port = cluster.listeners[listener][0]
    words = ["load", "--bootstrap", f"{host}:{port}", "--sources", IP, "--connections", "6", "--hold", "end", *login]
    seen = cluster.told(*words)
    assert (seen["admitted"], seen["refused"], seen["refused_as"]) == (2, 4, {mode: 4})
    assert seen["cluster"]["refused"] == {"ip_cap": 4} and seen["reconciled"] is True
    assert f"Refused connections ended by: {mode} 4" in cluster.turnstile(*words)


def test_a_load_that_asks_for_api_versions_alone_is_as_before(cluster):
    cluster.put("/v1/cluster_config", {"upsert": {MODE: API}, "remove": []})
    words = ["load", "--bootstrap", cluster.bootstrap, "--sources", IP, "--connections", "6", "--hold", "end"]
    assert "DISAGREE" in cluster.turnstile(*words, "--probe", "apiversions", expect=1)
