"""Client telemetry with real clients and tools: what they are asked for is what they push, and none comes too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from conftest import Tool
from harness import running, until
from wired import wired

PREFIX = "org.apache.kafka.producer."


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("telemetry") / "data", "--topic", "orders", shards=2) as cluster:
        yield cluster


@pytest.fixture
def subscribe(cluster):
    """Has all producers of a client id push their metrics so often."""
    made = []

    def make(client_id: str, interval_ms: int = 200, **more: str) -> None:
        configs = {"metrics": PREFIX, "interval.ms": str(interval_ms), "match": f"client_id={client_id}", **more}
        cluster.put("/v1/telemetry", {"name": client_id, "configs": configs})
        made.append(client_id)

    yield make
    for name in made:
        cluster.put("/v1/telemetry", {"name": name, "configs": dict.fromkeys(("metrics", "interval.ms", "match"))})


def pushing(cluster, client_id: str, least: int) -> Callable[[], dict[str, Any] | None]:
    """Its client instance once it has pushed at least so often."""

    def look() -> dict[str, Any] | None:
        found = [
            each for each in cluster.get("/v1/telemetry")["client_instances"] if each.get("client_id") == client_id
        ]
        return next((each for each in found if each["pushes"] >= least), None)

    return look


def metrics_of(cluster, instance: dict[str, Any]) -> dict[str, Any]:
    pushed = cluster.get(f"/v1/telemetry/{instance['client_instance_id']}")
    assert pushed["error"] is None
    return {each["name"]: each["value"] for each in pushed["metrics"] if "value" in each}


def test_librdkafka_pushes_what_it_is_asked_for(cluster, subscribe):
    subscribe("rd", match="client_id=rd,client_software_name=confluent-kafka-python")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "rd", "enable.metrics.push": True})
    producer.produce("orders", b"x")
    producer.flush(10)
    instance = until(pushing(cluster, "rd", 3), what="it has pushed three times")
    assert instance["refused"] == {} and instance["push_interval_ms"] == 200
    metrics = metrics_of(cluster, instance)
    assert metrics and all(name.startswith(PREFIX) for name in metrics)
    cluster.put("/v1/telemetry", {"name": "rd", "configs": {"interval.ms": "300"}})
    until(lambda: (pushing(cluster, "rd", 5)() or {}).get("push_interval_ms") == 300, what="the new interval is known")
    refused = pushing(cluster, "rd", 1)()["refused"]
    assert all(times == 1 for times in refused.values()), "and it asked again"
    table = cluster.turnstile("telemetry")
    assert instance["client_instance_id"] in table and "300 ms" in table
    assert PREFIX in cluster.turnstile("telemetry", instance["client_instance_id"])
    del producer
    until(lambda: not pushing(cluster, "rd", 1)()["connected"], what="its connection has ended")


@pytest.mark.jars
def test_javas_producer_pushes_what_it_is_asked_for(cluster, subscribe, jvm):
    subscribe("java", match="client_id=java,client_software_name=apache-kafka-java")
    records = ("--topic", "orders", "--num-records", "300", "--record-size", "10", "--throughput", "100")
    Tool(jvm.__call__, cluster.bootstrap)(
        "kafka-producer-perf-test", *records,
        "--producer-props", f"bootstrap.servers={cluster.bootstrap}", "client.id=java", "enable.metrics.push=true",
    )  # fmt: skip
    instance = until(pushing(cluster, "java", 2), what="it ended with a push that need not wait")
    assert instance["refused"] == {}
    assert f"{PREFIX}connection.creation.total" in metrics_of(cluster, instance)


@pytest.mark.jars
def test_kafkas_tools_make_list_describe_and_delete(cluster, jvm):
    tool = Tool(jvm.__call__, cluster.bootstrap)
    tool("kafka-client-metrics", "--alter", "--name", "one", "--metrics", "a.,b.", "--interval", "5000",
         "--match", "client_id=x.*")  # fmt: skip
    assert "one" in tool("kafka-client-metrics", "--list").splitlines()
    described = tool("kafka-client-metrics", "--describe", "--name", "one")
    assert "interval.ms=5000" in described and "metrics=a.,b." in described and "match=client_id=x.*" in described
    named = ("--entity-type", "client-metrics", "--entity-name", "one")
    tool("kafka-configs", "--alter", *named, "--add-config", "interval.ms=6000")
    assert "interval.ms=6000" in tool("kafka-configs", "--describe", *named)
    assert "interval must be between 100 and 3600000" in tool(
        "kafka-configs", "--alter", *named, "--add-config", "interval.ms=1", expect=1
    )
    tool("kafka-client-metrics", "--delete", "--name", "one")
    assert "one" not in tool("kafka-client-metrics", "--list").splitlines()
    group = ("--entity-type", "groups", "--entity-name", "g")
    tool("kafka-configs", "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in tool("kafka-configs", "--describe", *group)
    tool("kafka-configs", "--alter", *group, "--delete-config", "consumer.session.timeout.ms")


def test_software_is_known_of_every_connection(cluster):
    """Also of those whose ApiVersions was answered from an answer that was prepared for another."""
    cluster.put("/v1/telemetry", {"name": "soft", "configs": {"metrics": "s.", "match": "client_software_name=soft"}})
    for _ in range(6):
        with wired(cluster.bootstrap, "soft") as wire:
            wire.ask("api_versions", 3, client_software_name="soft", client_software_version="1")
            wire.ask("metadata", 12, topics=())
            answer = wire.ask("get_telemetry_subscriptions", 0, client_instance_id=None)
            assert answer.requested_metrics == ("s.",)
    with wired(cluster.bootstrap, "soft") as wire:
        wire.ask("metadata", 12, topics=())
        assert wire.ask("get_telemetry_subscriptions", 0, client_instance_id=None).requested_metrics == ()
    cluster.put("/v1/telemetry", {"name": "soft", "configs": {"metrics": None, "match": None}})


def test_a_subscription_is_in_the_history_and_a_reset_ends_it(cluster):
    cluster.put("/v1/telemetry", {"name": "kept", "configs": {"metrics": "k."}})
    history = cluster.get("/v1/config/history?limit=1")["history"][0]
    assert history["changes"] == [["client_metrics", "kept", None, {"metrics": "k."}]]
    cluster.turnstile("config", "history", "--limit", "3")
    cluster.reset()
    with wired(cluster.bootstrap, "kept") as wire:
        assert wire.ask("get_telemetry_subscriptions", 0, client_instance_id=None).requested_metrics == ()
        (known,) = cluster.get("/v1/telemetry")["client_instances"]
        assert (known["client_id"], known["pushes"]) == ("kept", 0)


def test_telemetry_is_offered_while_it_is_asked_for(cluster, subscribe):
    """So librdkafka, which pushes by default, asks for no subscription on a cluster that wants nothing of it."""

    def offered() -> bool:
        with wired(cluster.bootstrap, "looks") as wire:
            answer = wire.ask("api_versions", 3, client_software_name="looks", client_software_version="1")
            return {71, 72} <= {each.api_key for each in answer.api_keys}

    assert not offered()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "quiet"})
    producer.produce("orders", b"x")
    assert producer.flush(10) == 0
    assert pushing(cluster, "quiet", 0)() is None
    subscribe("later")
    assert offered()
    late = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "later"})
    until(pushing(cluster, "later", 1), what="a client that connects now pushes")
    del producer, late
