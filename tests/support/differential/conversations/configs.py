"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import Any

from differential.table import about
from differential.talk import Talk

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
KEYS = ["retention.ms", "cleanup.policy", "max.message.bytes", "message.timestamp.type"]
BROKER_KEYS = ["log.retention.ms", "num.partitions", "max.connections", "broker.id", "node.id", "log.cleanup.policy",
               "sasl.enabled.mechanisms", "message.max.bytes", "no.such.config", "ssl.keystore.password"]  # fmt: skip
WRONG_RESOURCES = {
    "no topic": (TOPIC, "no-such-topic"),
    "no topic name": (TOPIC, ""),
    "a topic name that can't be": (TOPIC, "a b"),
    "another broker": (BROKER, "7"),
    "a broker that is no number": (BROKER, "x"),
    "a negative broker": (BROKER, "-1"),
    "a logger of another broker": (LOGGER, "7"),
    "a logger of no broker": (LOGGER, ""),
    "no group name": (GROUP, ""),
    "no client metrics name": (CLIENT_METRICS, ""),
    "kind 0": (0, "x"),
    "kind 1": (1, "x"),
    "kind 3": (3, "x"),
    "kind -1": (-1, "x"),
    "kind 99": (99, "x"),
}


INTERNAL_KEYS = (
    "cleanup.policy",
    "segment.bytes",
    "compression.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)


@about("describe_configs")
def described(talk: Talk) -> None:
    topic = talk.topic(retention_ms="1000", cleanup_policy="compact").name

    def describe(label: str, kind: int, name: str, *keys: str, every: bool = False, **more: Any) -> None:
        wanted = None if every else keys
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": wanted}
        talk.ask(label, resources=[resource], **{"include_synonyms": False, "include_documentation": False, **more})

    describe("of a topic", TOPIC, topic, *KEYS)
    describe("and synonyms", TOPIC, topic, *KEYS, include_synonyms=True)
    describe("and documentation", TOPIC, topic, *KEYS, include_documentation=True)
    describe("all of a topic", TOPIC, topic, every=True, include_synonyms=True)
    describe("none of a topic", TOPIC, topic)
    describe("one that is not there", TOPIC, topic, "no.such.config")
    for internal in ("__consumer_offsets", "__transaction_state"):
        describe(f"of {internal}", TOPIC, internal, *INTERNAL_KEYS, include_synonyms=True)
    describe("of a broker", BROKER, "0", *BROKER_KEYS, include_synonyms=True)
    describe("of all brokers", BROKER, "", *BROKER_KEYS, include_synonyms=True)
    describe("all of all brokers", BROKER, "", every=True)
    describe("of a group", GROUP, talk.named("g"), every=True, include_synonyms=True)
    describe("of client metrics", CLIENT_METRICS, talk.named("m"), every=True, include_synonyms=True)
    for label, (kind, name) in WRONG_RESOURCES.items():
        describe(label, kind, name, "x")
    one = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    talk.ask("the same twice", resources=[one, one])
    talk.ask("nothing", resources=[])


@about("alter_configs")
def replaced(talk: Talk) -> None:
    topic = talk.topic(retention_ms="1000").name

    def alter(label: str, kind: int, name: str, *configs: tuple[str, str | None], dry: bool = False) -> None:
        wanted = [{"name": key, "value": value} for key, value in configs]
        resource = {"resource_type": kind, "resource_name": name, "configs": wanted}
        talk.ask(label, resources=[resource], validate_only=dry)

    alter("dry", TOPIC, topic, ("max.message.bytes", "5000"), dry=True)
    alter("well", TOPIC, topic, ("max.message.bytes", "5000"))
    alter("a wrong value", TOPIC, topic, ("max.message.bytes", "x"))
    alter("a null", TOPIC, topic, ("max.message.bytes", None))
    alter("not there", TOPIC, topic, ("no.such.config", "1"))
    alter("twice", TOPIC, topic, ("retention.ms", "1"), ("retention.ms", "2"))
    alter("nothing set", TOPIC, topic)
    alter("a broker's, read-only", BROKER, "0", ("broker.id", "5"))
    alter("a broker's, wrong", BROKER, "0", ("log.retention.ms", "x"))
    alter("a broker's, not there", BROKER, "0", ("no.such.config", "1"), dry=True)
    for label, (kind, name) in WRONG_RESOURCES.items():
        alter(label, kind, name, ("x", "1"))
    one = {"resource_type": TOPIC, "resource_name": topic, "configs": []}
    talk.ask("the same twice", resources=[one, one], validate_only=False)
    talk.ask("nothing", resources=[], validate_only=False)


@about("incremental_alter_configs")
def changed(talk: Talk) -> None:
    topic = talk.topic(retention_ms="1000").name

    def alter(label: str, kind: int, name: str, *configs: tuple[str, int, str | None], dry: bool = False) -> None:
        wanted = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in configs]
        resource = {"resource_type": kind, "resource_name": name, "configs": wanted}
        talk.ask(label, resources=[resource], validate_only=dry)

    alter("dry", TOPIC, topic, ("max.message.bytes", SET, "5000"), dry=True)
    alter("set", TOPIC, topic, ("max.message.bytes", SET, "5000"))
    alter("delete", TOPIC, topic, ("max.message.bytes", DELETE, None))
    alter("delete again", TOPIC, topic, ("max.message.bytes", DELETE, None))
    alter("append", TOPIC, topic, ("cleanup.policy", APPEND, "compact"))
    alter("append again", TOPIC, topic, ("cleanup.policy", APPEND, "compact"))
    alter("subtract", TOPIC, topic, ("cleanup.policy", SUBTRACT, "compact"))
    alter("append to a number", TOPIC, topic, ("retention.ms", APPEND, "1"))
    alter("operation 9", TOPIC, topic, ("retention.ms", 9, "1"))
    alter("a wrong value", TOPIC, topic, ("retention.ms", SET, "x"))
    alter("append a wrong value", TOPIC, topic, ("cleanup.policy", APPEND, "nonsense"))
    alter("a null", TOPIC, topic, ("retention.ms", SET, None))
    alter("append a null", TOPIC, topic, ("cleanup.policy", APPEND, None))
    alter("not there", TOPIC, topic, ("no.such.config", SET, "1"))
    alter("delete one that is not there", TOPIC, topic, ("no.such.config", DELETE, None))
    alter("no config name", TOPIC, topic, ("", SET, "1"))
    alter("twice", TOPIC, topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    alter("set and delete", TOPIC, topic, ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    alter("nothing set", TOPIC, topic)
    alter("a broker's, read-only", BROKER, "0", ("broker.id", SET, "5"))
    alter("a broker's, wrong", BROKER, "0", ("log.retention.ms", SET, "x"))
    alter("a broker's, not there", BROKER, "0", ("no.such.config", SET, "1"), dry=True)
    alter("a broker's own of all", BROKER, "", ("listeners", SET, "1"), dry=True)
    for label, (kind, name) in WRONG_RESOURCES.items():
        alter(label, kind, name, ("x", SET, "1"))
    one = {"resource_type": TOPIC, "resource_name": topic, "configs": []}
    talk.ask("the same twice", resources=[one, one], validate_only=False)
    talk.ask("nothing", resources=[], validate_only=False)


@about("list_config_resources")
def listed(talk: Talk) -> None:
    if talk.version == 0:
        talk.ask("client metrics")
        return
    for kind in (BROKER, LOGGER, CLIENT_METRICS):
        talk.ask(f"kind {kind}", resource_types=[kind])
    for kind in (0, 1, 3, 99, -1):
        talk.ask(f"unknown kind {kind}", resource_types=[kind])
