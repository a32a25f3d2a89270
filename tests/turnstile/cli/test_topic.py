"""`turnstile topic`, against real clusters."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient as KafkaAdmin
from confluent_kafka.admin import ConfigResource, ResourceType
from harness import running

from turnstile.admin_client import AdminClient
from turnstile.cli.create_topics import create_topics


def test_topics_are_created_and_listed(tmp_path: Path) -> None:
    with running(tmp_path / "data", shards=1) as cluster:
        assert "topic create" in cluster.turnstile("topic", "list")
        said = cluster.turnstile("topic", "create", "orders:6", "payments", "--config", "retention.ms=600000")
        assert said == "Created orders with 6 partitions.\nCreated payments with 1 partition.\n"
        assert cluster.told("topic", "list") == {"topics": {"orders": 6, "payments": 1}}
        assert cluster.turnstile("topic", "list").split() == ["topic", "partitions", "orders", "6", "payments", "1"]
        asked = ConfigResource(ResourceType.TOPIC, "orders")
        admin = KafkaAdmin({"bootstrap.servers": cluster.bootstrap})
        [described] = admin.describe_configs([asked]).values()
        assert described.result(10)["retention.ms"].value == "600000"


def test_what_can_not_be_created_is_said_and_the_others_are(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--topic", "orders:1", shards=1) as cluster:
        said = cluster.turnstile("topic", "create", "orders:3", "payments:2", expect=1)
        assert "orders: Topic 'orders' already exists." in said and "Created payments" in said
        told = json.loads(cluster.turnstile("topic", "create", "a", "--config", "retention.ms=x", "--json", expect=1))
        assert told["created"] == [] and "retention.ms" in told["refused"]["a"]
        assert "is not a topic name" in cluster.turnstile("topic", "create", "a b", expect=2)
        assert "is named twice" in cluster.turnstile("topic", "create", "b", "b:2", expect=2)
        assert "internal topic" in cluster.turnstile("topic", "create", "__consumer_offsets", expect=2)


def test_a_cluster_that_asks_for_a_login_at_each_listener_is_said(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--listener", "SASL=127.0.0.1:0,sasl", shards=1) as cluster:
        assert "every listener of this cluster asks for a login, TLS or" in cluster.turnstile(
            "topic", "create", "a", expect=1
        )


def test_where_clients_are_told_to_connect_may_be_reachable_from_elsewhere_alone(tmp_path: Path) -> None:
    proxied = "P=127.0.0.1:0,proxy=required,trusted=127.0.0.1/32"
    with running(
        tmp_path / "data", "--listener", proxied, "--listener", "B=127.0.0.1:0", shards=1, brokers=2
    ) as cluster:
        cluster.turnstile("advertise", "B", "localhost:1,2")
        assert cluster.turnstile("topic", "create", "orders:2") == "Created orders with 2 partitions.\n"


def test_another_cluster_at_the_same_port_is_not_asked(tmp_path: Path) -> None:
    """As of a cluster in a container, whose listener is bound to a port that another cluster has here."""
    with running(tmp_path / "mine", shards=1) as cluster, running(tmp_path / "another", shards=1) as other:

        class Mapped(AdminClient):
            """Says that the cluster is bound where the other one is."""

            def get(self, path: str, **query: object) -> Any:
                told = super().get(path, **query)
                for each in told["listeners"] if path == "/v1/cluster" else ():
                    each["address"] = other.bootstrap
                return told

        with Mapped(cluster.admin) as asked:
            assert create_topics(asked, {"orders": 1}, {}) == {}
        assert cluster.get("/v1/cluster")["topics"] == {"orders": 1}
        assert other.get("/v1/cluster")["topics"] == {}
