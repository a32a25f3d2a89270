"""What is about the cluster as a whole, its brokers and their disks; SASL, telemetry."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.table import about
from differential.talk import Talk


@about("api_versions")
def versions(talk: Talk) -> None:
    """What is listed is the first conversation's; the names of clients the second's."""
    named = {"client_software_name": "differential", "client_software_version": "1.0"}
    talk.ask("well", **named)
    if talk.version >= 3:
        for word in ("", " ", "-a", "a-", "a_b", "a b", "ä", "a" * 300):
            talk.ask(f"name {word[:5]!r}", **{**named, "client_software_name": word})
            talk.ask(f"version {word[:5]!r}", **{**named, "client_software_version": word})


@about("describe_cluster")
def cluster(talk: Talk) -> None:
    talk.ask("well")
    talk.ask("may do what", include_cluster_authorized_operations=True)
    for kind in (2, 0, 3, -1):
        talk.ask(f"endpoint type {kind}", endpoint_type=kind)
    talk.ask("fenced ones too", include_fenced_brokers=True)


@about("describe_quorum")
def quorum(talk: Talk) -> None:
    def describe(label: str, *wanted: tuple[str, list[int]]) -> None:
        talk.ask(label, topics=[
            {"topic_name": name, "partitions": [{"partition_index": number} for number in numbers]} for name, numbers in wanted
        ])  # fmt: skip

    describe("another partition", ("__cluster_metadata", [1]))
    describe("another topic", ("none", [0]))
    describe("two partitions", ("__cluster_metadata", [0, 1]))
    describe("no partitions", ("__cluster_metadata", []))
    describe("two topics", ("__cluster_metadata", [0]), ("none", [0]))
    describe("nothing")


@about("describe_log_dirs")
def directories(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"a")
    for label, asked in {
        "one": [{"topic": topic.name, "partitions": [0, 1]}],
        "no partition": [{"topic": topic.name, "partitions": [9]}],
        "no topic": [{"topic": talk.named("none"), "partitions": [0]}],
        "no partitions": [{"topic": topic.name, "partitions": []}],
        "nothing": [],
    }.items():
        talk.ask(label, topics=asked)


@about("alter_replica_log_dirs")
def moved(talk: Talk) -> None:
    topic = talk.topic()
    own = talk.quietly("describe_log_dirs", 4, topics=[]).results[0].log_dir

    def move(label: str, path: str, name: str, *partitions: int) -> None:
        talk.ask(label, dirs=[{"path": path, "topics": [{"name": name, "partitions": partitions}]}])

    move("to where it is", own, topic.name, 0, 1)
    move("no partition", own, topic.name, 9)
    move("no topic", own, talk.named("none"), 0)
    move("to nowhere", "/no/such", topic.name, 0)
    move("to a relative path", "relative", topic.name, 0)
    move("to no path", "", topic.name, 0)
    talk.ask("nothing", dirs=[])


@about("elect_leaders")
def elections(talk: Talk) -> None:
    topic = talk.topic()

    def elect(label: str, name: str, *partitions: int, kind: int = 0) -> None:
        talk.ask(label, election_type=kind, topic_partitions=[{"topic": name, "partitions": partitions}], timeout=5000)

    for kind in (0, 1) if talk.version else (0,):
        elect(f"kind {kind}", topic.name, 0, 1, kind=kind)
        elect(f"no partition, kind {kind}", topic.name, 9, kind=kind)
        elect(f"no topic, kind {kind}", talk.named("none"), 0, kind=kind)
        elect(f"no partitions, kind {kind}", topic.name, kind=kind)
    if talk.version:
        for kind in (2, -1):
            elect(f"kind {kind}", topic.name, 0, kind=kind)
    talk.ask("nothing", election_type=0, topic_partitions=[], timeout=5000)


@about("alter_partition_reassignments")
def reassigned(talk: Talk) -> None:
    topic = talk.topic()

    def assign(label: str, name: str, partition: int, replicas: list[int] | None, **more: Any) -> None:
        asked = [{"name": name, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
        talk.ask(label, timeout=5000, topics=asked, **more)

    assign("where it is", topic.name, 0, [0])
    assign("cancel none", topic.name, 0, None)
    assign("to none", topic.name, 0, [])
    assign("to another", topic.name, 0, [7])
    assign("to one twice", topic.name, 0, [0, 0])
    assign("to a negative one", topic.name, 0, [-1])
    assign("no partition", topic.name, 9, [0])
    assign("no topic", talk.named("none"), 0, [0])
    assign("no name", "", 0, [0])
    if talk.version >= 1:
        assign("another factor", topic.name, 0, [0, 7], allow_replication_factor_change=False)
    talk.ask("nothing", timeout=5000, topics=[])


@about("list_partition_reassignments")
def reassignments(talk: Talk) -> None:
    topic = talk.topic()
    for label, name in {"none": topic.name, "no topic": talk.named("none"), "no name": ""}.items():
        talk.ask(label, timeout=5000, topics=[{"name": name, "partition_indexes": [0, 9]}])
    talk.ask("all", timeout=5000, topics=None)
    talk.ask("nothing", timeout=5000, topics=[])


@about("update_features")
def features(talk: Talk) -> None:
    def update(label: str, *updates: tuple[str, int, int]) -> None:
        wanted = [
            {"feature": name, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind > 1}
            for name, level, kind in updates
        ]
        talk.ask(label, timeout=5000, feature_updates=wanted, validate_only=True)

    update("unknown", ("no.such", 1, 1))
    update("too high", ("transaction.version", 9, 1))
    update("negative", ("transaction.version", -1, 2))
    update("the same", ("transaction.version", 2, 1))
    update("no name", ("", 1, 1))
    update("two, one wrong", ("transaction.version", 2, 1), ("no.such", 1, 1))
    update("nothing")


@about("unregister_broker")
def brokers(talk: Talk) -> None:
    for broker in (7, -1):
        talk.ask(f"broker {broker}", broker_id=broker)


@about("sasl_handshake")
def handshakes(talk: Talk) -> None:
    for word in ("PLAIN", "nonsense", ""):
        talk.ask(f"{word!r} where there is none", mechanism=word)


@about("sasl_authenticate")
def authentication(talk: Talk) -> None:
    talk.ask("where there is none", auth_bytes=b"\0a\0b")
    talk.ask("nothing, where there is none", auth_bytes=b"")


@about("get_telemetry_subscriptions")
def subscriptions(talk: Talk) -> None:
    talk.ask("a reserved id", client_instance_id=UUID(int=1))


@about("push_telemetry")
def pushes(talk: Talk) -> None:
    fields = {"subscription_id": 0, "terminating": False, "compression_type": 0, "metrics": b""}
    talk.ask("no id", client_instance_id=None, **fields)
    talk.ask("a reserved id", client_instance_id=UUID(int=1), **fields)
    talk.ask("an unknown instance", client_instance_id=UUID(int=98765), **fields)
