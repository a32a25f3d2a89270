"""Metadata, DescribeTopicPartitions, CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from differential.table import about
from differential.talk import Talk

INTERNAL = "__consumer_offsets"
ODD_NAMES = ("", ".", "..", "a b", "a/b", "ä", "x" * 249, "x" * 250, "a" * 10 + "\0")


def _told(name: str) -> str:
    """A label for a name that is no label."""
    return f"{name[:12]!r} of {len(name)}"


@about("metadata")
def of_topics(talk: Talk) -> None:
    topic, other = talk.topic(), talk.topic("u", 1)
    talk.quietly("find_coordinator", 3, key="any", key_type=0)  # makes the internal topic

    def described(label: str, *topics: dict[str, Any], **more: Any) -> None:
        talk.ask(label, topics=topics, **{"allow_auto_topic_creation": False, **more})

    described("one", {"name": topic.name})
    described("two", {"name": other.name}, {"name": topic.name})
    described("the same twice", {"name": topic.name}, {"name": topic.name})
    described("none there", {"name": talk.named("none")})
    described("one of two is there", {"name": talk.named("none")}, {"name": topic.name})
    described("may do what", {"name": topic.name}, include_topic_authorized_operations=True)
    described("may do what with the cluster", {"name": topic.name}, include_cluster_authorized_operations=True)
    if talk.version:
        described("none asked for")
    described("an internal one", {"name": INTERNAL})
    for name in ODD_NAMES:
        described(_told(name), {"name": name})
        described(f"{_told(name)}, to be made", {"name": name}, allow_auto_topic_creation=True)


@about("metadata", since=10)
def of_topic_ids(talk: Talk) -> None:
    topic = talk.topic()
    for label, fields in {
        "by id": {"name": None, "topic_id": topic.id},
        "by id and name": {"name": topic.name, "topic_id": topic.id},
        "by the id of none": {"name": None, "topic_id": UUID(int=12345)},
        "by nothing": {"name": None, "topic_id": UUID(int=0)},
    }.items():
        talk.ask(label, topics=[fields], allow_auto_topic_creation=False)


@about("metadata", since=4)
def made_when_asked_for(talk: Talk) -> None:
    name = talk.named("made")
    talk.ask("first", topics=[{"name": name}], allow_auto_topic_creation=True)
    talk.until(lambda: not talk.quietly("metadata", 9, topics=[{"name": name}]).topics[0].error_code, "it is made")
    talk.ask("then", topics=[{"name": name}], allow_auto_topic_creation=True)


@about("describe_topic_partitions")
def partitions(talk: Talk) -> None:
    topic, other = talk.topic("a", 3), talk.topic("b", 2)

    def described(label: str, *names: str, most: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
        topics = [{"name": name} for name in names]
        talk.ask(label, topics=topics, response_partition_limit=most, cursor=at)

    described("one", topic.name)
    described("two, out of order", other.name, topic.name)
    described("an internal one", INTERNAL, most=3)
    described("the same twice", topic.name, topic.name)
    described("none there", talk.named("none"))
    described("no name", "")
    for most in (1, 2, 4, 0, -1):
        described(f"at most {most}", topic.name, other.name, most=most)
    described("from a cursor", topic.name, other.name, cursor=(topic.name, 2))
    described("from a cursor in the second", topic.name, other.name, cursor=(other.name, 1))
    described("from a cursor behind the end", topic.name, cursor=(topic.name, 9))
    described("from a cursor in another", topic.name, cursor=(talk.named("aa"), 0))
    described("from a negative cursor", topic.name, cursor=(topic.name, -1))


def _wanted(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": [], **more}


@about("create_topics")
def made(talk: Talk) -> None:
    def create(label: str, *topics: dict[str, Any], dry: bool = False) -> None:
        talk.ask(label, topics=topics, timeout=10_000, validate_only=dry)

    name = talk.named("a")
    create("dry", _wanted(name), dry=True)
    create("one", _wanted(name))
    create("again", _wanted(name))
    create("again, dry", _wanted(name), dry=True)
    create("the same twice", _wanted(talk.named("b")), _wanted(talk.named("b")))
    create("one of two is there", _wanted(talk.named("c")), _wanted(name))
    create("by default", _wanted(talk.named("d"), -1, -1))
    for count in (0, -2):
        create(f"{count} partitions", _wanted(talk.named("e"), count))
    for count in (0, 2, -2, 32767):
        create(f"{count} replicas", _wanted(talk.named("e"), 1, count))
    for odd in ODD_NAMES:
        create(_told(odd), _wanted(odd), dry=True)
    create("a name that collides", _wanted(talk.named("x.y")))
    create("with this one", _wanted(talk.named("x_y")))
    create("an internal one", _wanted(INTERNAL), dry=True)
    create("nothing")


@about("create_topics")
def with_configs(talk: Talk) -> None:
    for number, (key, value) in enumerate(
        [("retention.ms", "1000"), ("retention.ms", "x"), ("retention.ms", "-2"), ("retention.ms", ""), ("retention.ms", None),
         ("no.such.config", "1"), ("cleanup.policy", "compact,delete"), ("cleanup.policy", "none"), ("cleanup.policy", ""),
         ("min.insync.replicas", "0"), ("min.insync.replicas", "2"), ("compression.type", "snappy"),
         ("compression.type", "best"), ("max.message.bytes", "-1"), ("segment.bytes", "1"), ("segment.bytes", "1048576"),
         ("message.timestamp.type", "LogAppendTime"), ("message.timestamp.type", "later"), ("", "1"),
         ("unclean.leader.election.enable", "yes"), ("remote.storage.enable", "true"), ("preallocate", "true"),
         ("min.cleanable.dirty.ratio", "1.5"), ("local.retention.ms", "-2"), ("flush.messages", "0")]
    ):  # fmt: skip
        wanted = _wanted(talk.named(f"c{number}"), configs=[{"name": key, "value": value}])
        talk.ask(f"{key}={value}", topics=[wanted], timeout=10_000, validate_only=False)
    twice = [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    talk.ask(
        "a config twice", topics=[_wanted(talk.named("twice"), configs=twice)], timeout=10_000, validate_only=False
    )


@about("create_topics")
def with_assignments(talk: Talk) -> None:
    def create(label: str, *placed: tuple[int, list[int]], partitions: int = -1, replicas: int = -1) -> None:
        assignments = [{"partition_index": number, "broker_ids": brokers} for number, brokers in placed]
        wanted = _wanted(talk.named(label.replace(" ", "-")), partitions, replicas, assignments=assignments)
        talk.ask(label, topics=[wanted], timeout=10_000, validate_only=False)

    create("two partitions", (0, [0]), (1, [0]))
    create("out of order", (1, [0]), (0, [0]))
    create("a gap", (0, [0]), (2, [0]))
    create("not from 0", (1, [0]))
    create("no broker", (0, [7]))
    create("a broker twice", (0, [0, 0]))
    create("none", (0, []))
    create("a partition twice", (0, [0]), (0, [0]))
    create("a negative partition", (-1, [0]))
    create("and a count", (0, [0]), partitions=1)
    create("and replicas", (0, [0]), replicas=1)


@about("delete_topics")
def gone(talk: Talk) -> None:
    names = [talk.topic(word).name for word in "abc"]

    def delete(label: str, *wanted: str) -> None:
        talk.ask(label, topics=[{"name": name} for name in wanted], topic_names=wanted, timeout=10_000)

    delete("one", names[0])
    delete("again", names[0])
    delete("none there", talk.named("none"))
    delete("one of two is there", talk.named("none"), names[1])
    delete("the same twice", names[2], names[2])
    delete("no name", "")
    delete("nothing")
    if talk.version < 6:
        return
    topic = talk.topic("d")
    for label, fields in {
        "by name and id": {"name": topic.name, "topic_id": topic.id},
        "by nothing": {"name": None, "topic_id": UUID(int=0)},
        "by the id of none": {"name": None, "topic_id": UUID(int=12345)},
        "by id": {"name": None, "topic_id": topic.id},
        "by id again": {"name": None, "topic_id": topic.id},
    }.items():
        talk.ask(label, topics=[fields], timeout=10_000)


@about("create_partitions")
def more_partitions(talk: Talk) -> None:
    topic, other = talk.topic(), talk.topic("u")

    def create(label: str, name: str, count: int, *placed: list[int], dry: bool = False) -> None:
        assignments = [{"broker_ids": brokers} for brokers in placed] or None
        wanted = [{"name": name, "count": count, "assignments": assignments}]
        talk.ask(label, topics=wanted, timeout=10_000, validate_only=dry)

    for count in (2, 1, 0, -1):
        create(f"{count} of 2", topic.name, count)
    create("3, dry", topic.name, 3, dry=True)
    create("3 of 2", topic.name, 3)
    create("an assignment", topic.name, 4, [0])
    create("too few assignments", topic.name, 6, [0])
    create("too many assignments", topic.name, 5, [0], [0])
    create("no broker", topic.name, 5, [7])
    create("a broker twice", topic.name, 5, [0, 0])
    create("brokers of none", topic.name, 5, [])
    create("none there", talk.named("none"), 3)
    create("no name", "", 3)
    twice = [{"name": other.name, "count": 3, "assignments": None}] * 2
    talk.ask("the same twice", topics=twice, timeout=10_000, validate_only=False)
    talk.ask("nothing", topics=[], timeout=10_000, validate_only=False)
