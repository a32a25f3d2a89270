"""Where clients are told to connect, set while the cluster runs: in every answer, after every restart."""

import os
import signal
import socket
import subprocess

import pytest
import request_bytes
from certificates import make_certificate
from confluent_kafka import Producer
from forwarding import forwarded
from harness import TURNSTILE, running, until

from broker.serve.call import Call
from broker.wire import apis, wire
from turnstile.admin_client import AdminRefused
from turnstile.cluster import Cluster

KEYS = {api.name: key for key, api in apis.APIS.items()}
LISTENERS = ("--listener", "EDGE=0.0.0.0:0", "--listener", "IN=127.0.0.1:0")


def asked(sock, api, version, **fields):
    """The response to a request."""
    call = Call(KEYS[api], version, 7)
    sock.sendall(wire.encode_request(call, wire.request_types(KEYS[api], version).top(**fields), "test"))
    return wire.parse_response(request_bytes.answer(sock), KEYS[api], version).body


def told(port, host="127.0.0.1"):
    """The address of each broker, as Metadata, DescribeCluster, FindCoordinator and DescribeQuorum answer: they agree."""
    with socket.create_connection((host, port), timeout=10) as sock:
        flags = {"include_cluster_authorized_operations": False, "include_topic_authorized_operations": False}
        metadata = asked(sock, "metadata", 9, topics=(), allow_auto_topic_creation=False, **flags)
        by_broker = {each.node_id: (each.host, each.port) for each in metadata.brokers}
        described = asked(sock, "describe_cluster", 1, include_cluster_authorized_operations=False, endpoint_type=1)
        assert {each.broker_id: (each.host, each.port) for each in described.brokers} == by_broker
        for kind in (0, 1):
            found = asked(sock, "find_coordinator", 4, key_type=kind, coordinator_keys=("a", "b", "c"))
            assert all((each.host, each.port) == by_broker[each.node_id] for each in found.coordinators)
        quorum = asked(sock, "describe_quorum", 2, topics=()).nodes[0]
        assert (quorum.listeners[0].host, quorum.listeners[0].port) == by_broker[quorum.node_id]
    return [f"{host}:{port}" for _, (host, port) in sorted(by_broker.items())]


def edge(cluster, broker=0):
    return cluster.listeners["EDGE"][broker][1]


def test_three_brokers_get_three_ports_by_one_command_in_force_when_it_returns(tmp_path):
    with running(tmp_path / "d", *LISTENERS, brokers=3) as cluster:
        bound = [f"localhost:{edge(cluster, broker)}" for broker in range(3)]
        assert told(edge(cluster)) == bound
        said = cluster.turnstile("advertise", "EDGE", "a.example:32801,32802,32803")
        assert "EDGE broker 2: clients are told a.example:32803" in said and "in force on every shard" in said
        for _ in range(8):  # of a broker's shards, any one may answer
            assert told(edge(cluster, 1)) == ["a.example:32801", "a.example:32802", "a.example:32803"]
        inside = cluster.listeners["IN"]
        assert told(inside[2][1]) == [f"127.0.0.1:{port}" for _, port in inside]
        cluster.turnstile("advertise", "EDGE", "--unset", "--broker", "1")
        assert told(edge(cluster)) == ["a.example:32801", bound[1], "a.example:32803"]
        cluster.turnstile("advertise", "--unset")
        assert told(edge(cluster)) == bound
        changes = cluster.turnstile("config", "history")
        assert "address of EDGE (broker 1)  (unset) -> a.example:32802" in changes
        assert "address of EDGE (broker 1)  a.example:32802 -> (unset)" in changes


def test_a_client_reaches_the_broker_by_a_port_that_was_mapped_after_the_start(tmp_path):
    with (
        running(tmp_path / "d", *LISTENERS, "--topic", "t") as cluster,
        forwarded(("127.0.0.1", edge(cluster))) as port,
    ):
        cluster.client.put("/v1/advertise", {"listener": "EDGE", "addresses": f"127.0.0.1:{port}"})
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        producer.produce("t", b"through the mapped port")
        assert producer.flush(10) == 0
        brokers = producer.list_topics(timeout=10).brokers
        assert [(each.host, each.port) for each in brokers.values()] == [("127.0.0.1", port)]


def test_auto_tells_each_client_the_address_that_it_reached(tmp_path):
    with running(tmp_path / "d", "--listener", "EDGE=0.0.0.0:0,advertise=auto", brokers=2) as cluster:
        for host in ("127.0.0.1", "127.3.0.9", "127.0.0.1"):
            assert told(edge(cluster), host) == [f"{host}:{edge(cluster, broker)}" for broker in range(2)]
        rows = cluster.get("/v1/advertise")["advertised"]
        assert [(row["address"], row["port"], row["guess"]) for row in rows] == [
            ("auto", edge(cluster, broker), True) for broker in range(2)
        ]
        listed = cluster.turnstile("status")
        assert f"clients are told the address that they reached, port {edge(cluster)} (a guess)" in listed


def test_auto_tells_tls_clients_the_address_they_reached(tmp_path):
    made = make_certificate(tmp_path)
    if made is None:
        pytest.skip("needs openssl")
    with running(tmp_path / "d", "--listener", made.listener("EDGE")) as cluster:
        cluster.turnstile("advertise", "auto")
        client = {"bootstrap.servers": cluster.bootstrap, "security.protocol": "ssl"}
        producer = Producer({**client, "enable.ssl.certificate.verification": False})
        assert [each.host for each in producer.list_topics(timeout=10).brokers.values()] == ["127.0.0.1"]


def test_it_survives_each_process_and_a_reset(tmp_path):
    with running(tmp_path / "d", *LISTENERS) as cluster:
        cluster.turnstile("advertise", "EDGE", "a.example:1")
        os.kill(cluster.shard_pid(0), signal.SIGKILL)
        os.kill(cluster.get("/v1/cluster")["coordinator_pid"], signal.SIGKILL)
        until(lambda: cluster.get("/healthz")["status"] == "ok", what="every process is back")
        for _ in range(8):
            assert told(edge(cluster)) == ["a.example:1"]
        cluster.reset()
        assert told(edge(cluster)) == ["a.example:1"]


def test_it_survives_the_cluster_in_its_data_directory_which_says_so_at_the_start(tmp_path):
    with running(tmp_path / "d", *LISTENERS) as cluster:
        cluster.turnstile("advertise", "EDGE", "a.example:1")
    with running(tmp_path / "d", *LISTENERS) as cluster:
        assert told(edge(cluster)) == ["a.example:1"]
        note = next(each for each in cluster.started["notes"] if "a.example:1" in each)
        assert note.startswith("clients of EDGE are told a.example:1 for broker 0, set on ")
        assert "turnstile advertise EDGE --unset" in note
    with running(tmp_path / "d", "--listener", "OTHER=127.0.0.1:0") as cluster:
        note = next(each for each in cluster.started["notes"] if "a.example:1" in each)
        assert "a.example:1 is stored for clients of EDGE of broker 0, and this cluster has no such listener" in note
    with running(tmp_path / "d", *LISTENERS, "--override-stored") as cluster:
        assert told(edge(cluster)) == [f"localhost:{edge(cluster)}"], "the command line says where the listeners are"
        assert "a.example" not in "".join(cluster.started["notes"])
        changes = cluster.turnstile("config", "history")
        assert "address of EDGE (broker 0)  a.example:1 -> (unset)" in changes
    with running(tmp_path / "d", *LISTENERS) as cluster:
        assert told(edge(cluster)) == [f"localhost:{edge(cluster)}"]


def test_describe_configs_shows_what_is_in_force(tmp_path):
    with running(tmp_path / "d", "--listener", "EDGE=0.0.0.0:0") as cluster:
        cluster.turnstile("advertise", "a.example:1")
        with socket.create_connection(("127.0.0.1", edge(cluster)), timeout=10) as sock:
            resource = wire.request_types(32, 1).DescribeConfigsResource(
                resource_type=4, resource_name="0", configuration_keys=("advertised.listeners",)
            )
            found = asked(sock, "describe_configs", 1, resources=(resource,), include_synonyms=False).results[0]
        dynamic_broker = 2
        assert [(each.value, each.config_source) for each in found.configs] == [("EDGE://a.example:1", dynamic_broker)]


def test_a_wrong_address_changes_nothing_and_is_said_in_one_sentence(tmp_path):
    with running(tmp_path / "d", *LISTENERS, brokers=2) as cluster:
        said = cluster.turnstile("advertise", "EDGE", "localhost:1", expect=1)
        assert said == (
            "1 address can't be told for 2 brokers: each needs its own, as in localhost:32801,32802, or auto.\n"
        )
        with pytest.raises(AdminRefused, match=r"the body must be"):
            cluster.client.put("/v1/advertise", {"listener": "EDGE", "host": "localhost", "port": 1})
        cluster.turnstile("up", "--listener", "E=127.0.0.1:0,advertise=0.0.0.0:1", expect=2)
        assert not any(row["source"] == "live" for row in cluster.get("/v1/advertise")["advertised"])


def test_python_program_advertises_and_forgets_addresses():
    with Cluster(listeners=["EDGE=127.0.0.1:0"], brokers=2, shards=1) as cluster:
        cluster.advertise("EDGE", "localhost:1", "localhost:2")
        assert [(row["address"], row["guess"]) for row in cluster.advertised()] == [
            ("localhost:1", False),
            ("localhost:2", False),
        ]
        cluster.advertise(None)
        assert ",".join(row["address"] for row in cluster.advertised()) == cluster.bootstrap


def test_an_address_of_a_listener_that_there_is_not_ends_a_detached_start_with_the_same_sentence(tmp_path):
    command = [TURNSTILE, "up", "--port", "0", "--admin-port", "0", "--data-dir", str(tmp_path / "data")]
    command += ["--set", "advertised.listeners=EGDE://localhost:1"]
    says = [subprocess.run([*command, *how], capture_output=True, text=True, timeout=60) for how in ((), ("--detach",))]
    assert {done.returncode for done in says} == {1} and len({done.stderr for done in says}) == 1
    assert says[0].stderr.startswith("advertised.listeners cannot be 'EGDE://localhost:1'")
