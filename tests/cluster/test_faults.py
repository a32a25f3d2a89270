"""Faults of a running cluster, as a client meets them: all shards obey, and each is counted and journaled once."""

import json
import socket
import time

import pytest
import trio
from confluent_kafka import Producer
from harness import admitted, connect, until
from wired import wired

import turnstile
from broker.journal.reader import events
from broker.wire import codes
from turnstile import AsyncCluster
from turnstile.cli.main import turnstile as command

METADATA = {"topics": (), "allow_auto_topic_creation": False}


@pytest.fixture(scope="module")
def shared():
    with turnstile.Cluster(topics={"orders": 1}, shards=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    shared.reset()
    return shared


def address(cluster):
    host, _, port = cluster.bootstrap.partition(":")
    return host, int(port)


def metadata(client, version=9):
    topic = client.types("metadata", version).MetadataRequestTopic(topic_id=None, name="orders")
    return client.ask("metadata", version, topics=(topic,), allow_auto_topic_creation=False)


def test_an_error_for_the_first_calls_of_the_whole_cluster(cluster):
    name = cluster.fault("error", name="early", api="Metadata", error="LEADER_NOT_AVAILABLE", times=3)
    told = []
    for _ in range(8):  # on both shards, as likely as not
        with wired(cluster.bootstrap) as client:
            told.append(metadata(client).topics[0].error_code)
    assert told == [codes.LEADER_NOT_AVAILABLE] * 3 + [0] * 5
    [fault] = cluster.faults()
    assert (fault["name"], fault["fired"], fault["times"]) == (name, 3, 3)
    assert 'turnstile_faults_total{broker="0",kind="error"' in cluster.admin.text("/metrics")
    cluster.remove_fault(name)
    assert cluster.faults() == []
    rows = until(lambda: [row for row in events(cluster.data_dir / "journal") if row.get("limit") == name])
    assert [(row["kind"], row["reason"], row["api"]) for row in rows] == [("fault", "error", "Metadata")] * 3


def test_a_disconnect_instead_of_the_answer_and_by_reset(cluster):
    cluster.fault("disconnect", api="Metadata", client_id="one-*")
    with wired(cluster.bootstrap, "two-1") as client:
        assert metadata(client).topics[0].error_code == 0
    with wired(cluster.bootstrap, "one-1") as client, pytest.raises(Exception):  # noqa: B017
        metadata(client)
    cluster.remove_fault()
    cluster.fault("disconnect", api="Metadata", reset=True)
    with wired(cluster.bootstrap) as client:
        client.send("metadata", 9, topics=(), allow_auto_topic_creation=False)
        with pytest.raises(ConnectionResetError):
            client.sock.recv(1)


def test_a_disconnect_without_an_api_ends_open_connections_and_new_ones(cluster):
    before, other = connect(address(cluster), "127.1.0.1"), connect(address(cluster), "127.1.0.2")
    assert admitted(before) and admitted(other)
    cluster.fault("disconnect", ip="127.1.0.1")
    assert before.recv(1) == b"" and admitted(other)
    with connect(address(cluster), "127.1.0.1") as later:
        assert not admitted(later)
    cluster.remove_fault()
    with connect(address(cluster), "127.1.0.1") as later:
        assert admitted(later)
    cluster.fault("disconnect", connection=f"127.1.0.2:{other.getsockname()[1]}")
    assert other.recv(1) == b""
    before.close()
    other.close()


def test_a_disconnect_of_a_client_id_waits_for_its_first_request(cluster):
    with wired(cluster.bootstrap, "app") as known, wired(cluster.bootstrap, "app") as unknown:
        metadata(known)
        cluster.fault("disconnect", client_id="app")
        assert known.sock.recv(1) == b""
        with pytest.raises(Exception):  # noqa: B017
            metadata(unknown)


def test_a_delay_keeps_the_order_and_a_blackhole_answers_nothing(cluster):
    cluster.fault("delay", api="Metadata", delay_ms=60, on_call=1)
    with wired(cluster.bootstrap) as client:
        began = time.monotonic()
        metadata(client)
        assert time.monotonic() - began >= 0.06
        cluster.remove_fault()
        cluster.fault("blackhole", api="Metadata")
        client.send("metadata", 9, **METADATA)
        client.send("api_versions", 0)
        assert client.answer("api_versions", 0).error_code == 0, "what is not for the fault is answered"
        cluster.remove_fault()
        metadata(client)


def test_a_throttle_is_told_and_mutes(cluster):
    cluster.fault("throttle", api="Metadata", throttle_ms=80, once=True)
    with wired(cluster.bootstrap) as client:
        assert metadata(client).throttle_time.total_seconds() == 0.08
        began = time.monotonic()
        assert metadata(client).throttle_time.total_seconds() == 0
        assert time.monotonic() - began >= 0.07
        cluster.fault("throttle", api="Metadata", throttle_ms=60_000, mute=False)
        assert [metadata(client).throttle_time.total_seconds() for _ in "ab"] == [60, 60], "told, and read on"


def test_a_producer_that_tries_again_loses_nothing(cluster):
    cluster.fault("error", api="Produce", error="NOT_ENOUGH_REPLICAS", times=2)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "retry.backoff.ms": 10, "log_level": 0})
    producer.produce("orders", b"one")
    assert producer.flush(10) == 0
    assert cluster.faults()[0]["fired"] == 2


def test_a_login_that_fails_ends_the_connection():
    with turnstile.Cluster(listeners="S=127.0.0.1:0,sasl", users={"a": "secret"}, shards=1) as cluster:
        cluster.fault("error", api="SaslAuthenticate", error="SASL_AUTHENTICATION_FAILED", once=True)
        with wired(cluster.bootstrap) as client:
            client.ask("sasl_handshake", 1, mechanism="PLAIN")
            answer = client.ask("sasl_authenticate", 1, auth_bytes=b"\0a\0secret")
            assert answer.error_code == codes.SASL_AUTHENTICATION_FAILED and client.sock.recv(1) == b""


def test_no_fault_outlives_the_coordinator_or_a_reset(cluster):
    cluster.fault("blackhole", name="hole")
    cluster.reset()
    assert cluster.faults() == []
    cluster.fault("blackhole", name="hole", api="Metadata")
    cluster.kill_shard(0)
    cluster.kill_shard(1)
    with wired(cluster.bootstrap) as client:
        client.sock.settimeout(0.2)
        client.send("metadata", 9, **METADATA)
        with pytest.raises(socket.timeout):
            client.answer("metadata", 9)


async def test_async_cluster_sets_and_removes_a_fault():
    async with AsyncCluster(shards=1) as cluster:
        name = await cluster.fault("blackhole")
        assert [fault["name"] for fault in await cluster.faults()] == [name]
        await cluster.remove_fault()
        assert await cluster.faults() == []
    await trio.lowlevel.checkpoint()


def test_command_adds_lists_and_removes_faults(cluster, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.setenv("TURNSTILE_ADMIN", cluster.admin.url)

    def run(*words, expect=0):
        done = CliRunner().invoke(command, ["fault", *words])
        assert done.exit_code == expect, done.output
        return done.output

    assert run("list") == "no fault is set\n"
    assert run("add", "delay", "--api", "produce", "--delay-ms", "5", "--probability", "0.5").startswith(
        "fault-1: delay\n"
    )
    assert run("list").splitlines()[1].split() == [
        "fault-1",
        "delay",
        "0",
        "delay_ms=5",
        "api=Produce",
        "probability=0.5",
        "seed=0",
    ]
    assert "did you mean Produce?" in run("add", "blackhole", "--api", "Prodce", expect=2)
    assert "there is no fault 'fault-9'" in run("remove", "fault-9", expect=1)
    assert json.loads(run("add", "throttle", "--throttle-ms", "9", "--no-mute", "--name", "t", "--json"))["names"] == [
        "t"
    ]
    assert run("remove", "--all").startswith("removed fault-1 t\n")


def test_several_faults_act_on_one_answer(cluster):
    cluster.fault("delay", api="Metadata", delay_ms=60)
    cluster.fault("error", api="Metadata", error="LEADER_NOT_AVAILABLE")
    with wired(cluster.bootstrap) as client:
        began = time.monotonic()
        assert metadata(client).topics[0].error_code == codes.LEADER_NOT_AVAILABLE
        assert time.monotonic() - began >= 0.06
    assert [fault["fired"] for fault in cluster.faults()] == [1, 1]
