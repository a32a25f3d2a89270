"""Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from batches import batch
from differential.table import about
from differential.talk import Talk, Topic

NOWHERE = Topic("no-such-topic", UUID(int=12345))
FIRST = 1_700_000_000_000


def _produced(topic: Topic, *partitions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": topic.name, "topic_id": topic.id, "partition_data": list(partitions)}]


@about("produce")
def records(talk: Talk) -> None:
    topic = talk.topic()

    def produce(label: str, data: bytes | None, partition: int = 0, acks: int = -1, to: Topic = topic) -> None:
        partitions = {"index": partition, "records": data}
        talk.ask(label, acks=acks, timeout=5000, topic_data=_produced(to, partitions))

    produce("one", batch(b"a"))
    produce("three, acks 1", batch(b"a", b"b", b"c"), acks=1)
    produce("gzip", batch(b"a", attributes=1))
    produce("zstd", batch(b"a", attributes=4))
    produce("no topic", batch(b"a"), to=NOWHERE)
    produce("no name and no id", batch(b"a"), to=Topic("", UUID(int=0)))
    produce("no partition", batch(b"a"), partition=9)
    produce("negative partition", batch(b"a"), partition=-1)
    produce("acks 2", batch(b"a"), acks=2)
    produce("acks -2", batch(b"a"), acks=-2)
    talk.ask("two partitions, one of them wrong", acks=-1, timeout=5000, topic_data=_produced(
        topic, {"index": 1, "records": batch(b"a")}, {"index": 7, "records": batch(b"a")},
    ))  # fmt: skip
    internal = talk.internal_topic("__consumer_offsets")
    produce("an internal topic", batch(b"a", keys=[b"k"]), to=internal)
    produce("no partition of an internal topic", batch(b"a", keys=[b"k"]), to=internal, partition=50)
    talk.ask("no topics", acks=-1, timeout=5000, topic_data=[])
    talk.ask("no partitions", acks=-1, timeout=5000, topic_data=_produced(topic))


@about("produce")
def wrong_batches(talk: Talk) -> None:
    topic = talk.topic(max_message_bytes="1000")
    good = batch(b"a", b"b")
    torn = bytearray(good)
    torn[-1] ^= 1
    wrong = {
        "wrong checksum": bytes(torn),
        "cut": good[:-3],
        "two batches": good + good,
        "too large": batch(bytes(2000)),
        "old magic": batch(b"a", magic=1),
        "new magic": batch(b"a", magic=3),
        "count of none": batch(b"a", count=0),
        "count of more": batch(b"a", count=3),
        "codec 7": batch(b"a", attributes=7, payload=b"xx"),
        "not gzip": batch(b"a", attributes=1, payload=b"xx"),
        "control batch": batch(b"a", attributes=32),
        "transactional": batch(b"a", attributes=16),
        "producer id without epoch": batch(b"a", producer_id=5),
        "sequence of an unknown producer": batch(b"a", producer_id=5, epoch=0, sequence=9),
        "first sequence of an unknown producer": batch(b"a", producer_id=6, epoch=0, sequence=0),
        "then a gap": batch(b"a", producer_id=6, epoch=0, sequence=5),
        "then the next": batch(b"a", producer_id=6, epoch=0, sequence=1),
        "then that again": batch(b"a", producer_id=6, epoch=0, sequence=1),
        "no timestamp": batch(b"a", timestamps=[-1]),
        "far future": batch(b"a", timestamps=[2**60]),
    }
    for label, data in wrong.items():
        fields = {"acks": -1, "timeout": 5000, "topic_data": _produced(topic, {"index": 0, "records": data})}
        talk.ask(label, **fields)
    compacted = talk.topic("compacted", cleanup_policy="compact")
    for label, key in (("a key", b"k"), ("no key", None)):
        data = batch(b"a", keys=[key])
        talk.ask(label, acks=-1, timeout=5000, topic_data=_produced(compacted, {"index": 0, "records": data}))
    stamped = talk.topic("stamped", message_timestamp_type="LogAppendTime")
    talk.ask(
        "log append time", acks=-1, timeout=5000, topic_data=_produced(stamped, {"index": 0, "records": batch(b"a")})
    )


@about("produce")
def empty_records(talk: Talk) -> None:
    topic = talk.topic()
    for label, data in {"empty": b"", "null": None, "garbage": b"xyz"}.items():
        talk.ask(label, acks=-1, timeout=5000, topic_data=_produced(topic, {"index": 0, "records": data}))


def _fetched(topic: Topic, partition: int = 0, offset: int = 0, **more: Any) -> dict[str, Any]:
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 100_000, **more}
    asked.setdefault("current_leader_epoch", -1)
    return {"topic": topic.name, "topic_id": topic.id, "partitions": [asked]}


_FETCH: dict[str, Any] = {"replica_id": -1, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 20}


@about("fetch")
def offsets_and_epochs(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"a", b"b")
    talk.produce(topic, b"c")
    full = {**_FETCH, "session_epoch": -1}

    def fetch(label: str, *topics: dict[str, Any], **more: Any) -> None:
        talk.ask(label, **{**full, "topics": topics, **more})

    for offset in (0, 1, 2, 3, 4, -1, -2):
        fetch(f"from {offset}", _fetched(topic, offset=offset))
    for partition in (1, 9, -1):
        fetch(f"partition {partition}", _fetched(topic, partition))
    fetch("no topic", _fetched(NOWHERE))
    fetch("no name and no id", _fetched(Topic("", UUID(int=0))))
    fetch("a good and a bad one", _fetched(topic), _fetched(NOWHERE))
    fetch("nothing")
    for epoch in (0, 1, 5):
        fetch(f"leader epoch {epoch}", _fetched(topic, current_leader_epoch=epoch))
        fetch(f"last fetched epoch {epoch}", _fetched(topic, offset=2, last_fetched_epoch=epoch))
    for size in (0, 1, -1):
        fetch(f"partition_max_bytes {size}", _fetched(topic, partition_max_bytes=size))
        fetch(f"max_bytes {size}", _fetched(topic), max_bytes=size)
    for level in (1, 2, -1):
        fetch(f"isolation level {level}", _fetched(topic), isolation_level=level)
    fetch("as a replica", _fetched(topic), replica_id=1, replica_state={"replica_id": 1, "replica_epoch": 1})
    fetch("as a debugging one", _fetched(topic), replica_id=-2, replica_state={"replica_id": -2, "replica_epoch": -1})
    fetch("another cluster", _fetched(topic), cluster_id="nobody")


@about("fetch", since=7)
def sessions(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"a")

    def fetch(label: str, session: int, epoch: int, *topics: dict[str, Any], **more: Any) -> Any:
        return talk.ask(label, **{**_FETCH, "session_id": session, "session_epoch": epoch, "topics": topics, **more})

    session = fetch("begin", 0, 0, _fetched(topic), _fetched(NOWHERE)).session_id
    fetch("nothing new", session, 1)
    talk.produce(topic, b"b")
    fetch("news", session, 2, _fetched(topic, offset=1))
    fetch("an epoch again", session, 2)
    fetch("an epoch too far", session, 9)
    forgotten = [{"topic": topic.name, "topic_id": topic.id, "partitions": [0]}]
    fetch("forget", session, 3, forgotten_topics_data=forgotten)
    fetch("one that can't be", session, 4, _fetched(topic, 7))
    fetch("a session that is not there", 7, 1)
    fetch("end", session, -1)
    fetch("after the end", session, 5)
    fetch("begin with nothing", 0, 0)
    fetch("no session, later epoch", 0, 5, _fetched(topic))


def _listed(topic: Topic, partition: int, timestamp: int, epoch: int = -1) -> list[dict[str, Any]]:
    asked = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": epoch}
    return [{"name": topic.name, "partitions": [asked]}]


@about("list_offsets")
def timestamps(talk: Talk) -> None:
    topic = talk.topic()
    for number in range(3):
        talk.produce(topic, records=batch(b"a", b"b", timestamps=[FIRST + number * 100, FIRST + number * 100 + 50]))

    def offsets(label: str, *topics: dict[str, Any], replica: int = -1, level: int = 0) -> None:
        talk.ask(label, replica_id=replica, isolation_level=level, topics=topics, timeout=5000)

    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, FIRST, FIRST + 60, FIRST + 250, FIRST + 251, 2**62):
        offsets(f"at {timestamp}", *_listed(topic, 0, timestamp))
    for timestamp in (-1, -2, -3, 0):
        offsets(f"of an empty partition at {timestamp}", *_listed(topic, 1, timestamp))
    for partition in (7, -1):
        offsets(f"partition {partition}", *_listed(topic, partition, -1))
    for epoch in (0, 1, 5):
        offsets(f"epoch {epoch}", *_listed(topic, 0, -1, epoch))
    for level in (1, 2, -1):
        offsets(f"isolation level {level}", *_listed(topic, 0, -1), level=level)
    offsets("no topic", *_listed(NOWHERE, 0, -1))
    offsets("no name", *_listed(Topic("", UUID(int=0)), 0, -1))
    offsets("as a debugging replica", *_listed(topic, 0, -1), replica=-2)
    offsets("as a replica", *_listed(topic, 0, -1), replica=1)
    offsets("twice the same", *_listed(topic, 0, -1), *_listed(topic, 0, -2))
    offsets("nothing")


@about("delete_records")
def up_to_an_offset(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"a", b"b", b"c", b"d")
    compacted = talk.topic("compacted", cleanup_policy="compact")

    def delete(label: str, *wanted: tuple[Topic, int, int]) -> None:
        topics = [{"name": to.name, "partitions": [{"partition_index": p, "offset": o}]} for to, p, o in wanted]
        talk.ask(label, timeout=5000, topics=topics)

    delete("up to 2", (topic, 0, 2))
    delete("up to 1 then", (topic, 0, 1))
    delete("up to the end", (topic, 0, -1))
    for offset in (5, 99, -2):
        delete(f"up to {offset}", (topic, 0, offset))
    delete("of an empty partition", (topic, 1, -1))
    delete("no partition", (topic, 9, 0))
    delete("no topic", (NOWHERE, 0, 0))
    delete("no name", (Topic("", UUID(int=0)), 0, 0))
    delete("of a compacted topic", (compacted, 0, 0))
    delete("of an internal topic", (Topic("__consumer_offsets", UUID(int=0)), 0, 0))
    delete("nothing")


@about("offset_for_leader_epoch")
def ends_of_epochs(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"a", b"b")

    def ends(label: str, to: Topic, partition: int, epoch: int, current: int = -1, replica: int = -2) -> None:
        asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        talk.ask(label, replica_id=replica, topics=[{"topic": to.name, "partitions": [asked]}])

    for epoch in (-1, 0, 1, 9):
        ends(f"epoch {epoch}", topic, 0, epoch)
        ends(f"epoch {epoch} of an empty partition", topic, 1, epoch)
        ends(f"current epoch {epoch}", topic, 0, 0, epoch)
    ends("no partition", topic, 9, 0)
    ends("no topic", NOWHERE, 0, 0)
    ends("as a consumer", topic, 0, 0, replica=-1)
    ends("as a replica", topic, 0, 0, replica=1)
    talk.ask("nothing", replica_id=-2, topics=[])
