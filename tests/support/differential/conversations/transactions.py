"""Producer ids, transactions, and what describes them."""

from __future__ import annotations

from typing import Any

from batches import batch
from differential.table import about
from differential.talk import Talk, Topic

TRANSACTIONAL = 16


class Producer:
    """A transactional producer, by what names it in requests."""

    def __init__(self, talk: Talk, word: str = "p") -> None:
        self.talk, self.name = talk, talk.named(word)
        given = talk.quietly(
            "init_producer_id",
            4,
            transactional_id=self.name,
            transaction_timeout=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        assert given.error_code == 0, given
        self.id, self.epoch = given.producer_id, given.producer_epoch
        self.at: dict[str, Any] = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    def begin(self, topic: Topic, *partitions: int) -> None:
        asked = [{"name": topic.name, "partitions": partitions or (0,)}]
        fields = {f"v3_and_below_{key}": value for key, value in self.at.items()}
        found = self.talk.quietly("add_partitions_to_txn", 3, **fields, v3_and_below_topics=asked)
        assert not found.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, found

    def write(self, topic: Topic, sequence: int = 0) -> None:
        records = batch(b"a", producer_id=self.id, epoch=self.epoch, sequence=sequence, attributes=TRANSACTIONAL)
        self.talk.produce(topic, records=records, transactional_id=self.name)

    def end(self, *, committed: bool = True) -> None:
        assert self.talk.quietly("end_txn", 3, **self.at, committed=committed).error_code == 0
        self.talk.until(lambda: self.state().startswith("Complete"), "the transaction is complete")

    def state(self) -> str:
        found = self.talk.quietly("describe_transactions", 0, transactional_ids=[self.name])
        state: str = found.transaction_states[0].transaction_state
        return state


@about("init_producer_id")
def producer_ids(talk: Talk) -> None:
    def init(label: str, name: str | None, timeout: int = 60_000, id: int = -1, epoch: int = -1) -> Any:
        fields = {"transactional_id": name, "transaction_timeout": timeout, "producer_id": id, "producer_epoch": epoch}
        return talk.ask(label, **fields)

    init("idempotent", None)
    init("an empty id", "")
    first = init("transactional", talk.named("p"))
    init("again", talk.named("p"))
    for timeout in (0, -1, 900_000, 900_001):
        init(f"timeout {timeout}", talk.named("q"), timeout)
        init(f"idempotent, timeout {timeout}", None, timeout)
    if talk.version >= 3:
        init("id without epoch", talk.named("p"), id=5)
        init("epoch without id", talk.named("p"), epoch=5)
        init("idempotent with an id", None, id=5, epoch=0)
        init("an old epoch", talk.named("p"), id=first.producer_id, epoch=first.producer_epoch)
        init("another's id", talk.named("p"), id=999_999, epoch=0)


@about("add_partitions_to_txn", until=3)
def adding(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)

    def add(label: str, name: str, *partitions: int, to: str = topic.name, id: int = 0, epoch: int = 0) -> None:
        talk.ask(label, v3_and_below_transactional_id=name, v3_and_below_producer_id=producer.id + id,
                 v3_and_below_producer_epoch=producer.epoch + epoch,
                 v3_and_below_topics=[{"name": to, "partitions": partitions}])  # fmt: skip

    add("one", producer.name, 0)
    add("again, and another", producer.name, 0, 1)
    add("no partition", producer.name, 9)
    add("no topic", producer.name, 0, to=talk.named("none"))
    add("one of two is there", producer.name, 0, 9)
    add("another producer", talk.named("none"), 0)
    add("no producer", "", 0)
    add("another id", producer.name, 0, id=7)
    for epoch in (-1, 1):
        add(f"epoch {epoch}", producer.name, 0, epoch=epoch)
    add("no partitions", producer.name)
    add("an internal topic", producer.name, 0, to="__consumer_offsets")


@about("add_partitions_to_txn", since=4)
def adding_batched(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)

    def one(name: str, *partitions: int, only: bool = False, epoch: int = 0) -> dict[str, Any]:
        return {"transactional_id": name, "producer_id": producer.id, "producer_epoch": producer.epoch + epoch,
                "verify_only": only, "topics": [{"name": topic.name, "partitions": partitions}]}  # fmt: skip

    talk.ask("verify before", transactions=[one(producer.name, 0, only=True)])
    talk.ask("add", transactions=[one(producer.name, 0)])
    talk.ask("verify", transactions=[one(producer.name, 0, only=True)])
    talk.ask("verify another", transactions=[one(producer.name, 1, only=True)])
    talk.ask("a stale epoch", transactions=[one(producer.name, 0, epoch=-1)])
    talk.ask("another producer", transactions=[one(talk.named("none"), 0)])
    talk.ask("two", transactions=[one(producer.name, 0), one(talk.named("none"), 0)])
    talk.ask("nothing", transactions=[])


@about("add_offsets_to_txn")
def adding_offsets(talk: Talk) -> None:
    producer = Producer(talk)
    well = {**producer.at, "group_id": talk.named("g")}
    talk.ask("well", **well)
    talk.ask("again", **well)
    talk.ask("no group", **{**well, "group_id": ""})
    talk.ask("no producer", **{**well, "transactional_id": ""})
    talk.ask("another producer", **{**well, "transactional_id": talk.named("none")})
    talk.ask("another id", **{**well, "producer_id": producer.id + 7})
    for epoch in (-1, 1):
        talk.ask(f"epoch {epoch}", **{**well, "producer_epoch": producer.epoch + epoch})


@about("end_txn")
def ending(talk: Talk) -> None:
    topic, producer, idle = talk.topic(), Producer(talk), Producer(talk, "idle")
    for committed in (True, False):
        talk.ask(f"nothing, {committed}", **idle.at, committed=committed)
    talk.ask("no producer", **{**producer.at, "transactional_id": ""}, committed=True)
    talk.ask("another producer", **{**producer.at, "transactional_id": talk.named("none")}, committed=True)
    producer.begin(topic)
    producer.write(topic)
    talk.ask("another id", **{**producer.at, "producer_id": producer.id + 7}, committed=True)
    talk.ask("a later epoch", **{**producer.at, "producer_epoch": producer.epoch + 1}, committed=True)
    talk.ask("a stale epoch", **{**producer.at, "producer_epoch": producer.epoch - 1}, committed=True)
    talk.ask("well", **producer.at, committed=True)
    talk.until(lambda: producer.state() != "PrepareCommit", "it is complete")
    talk.ask("again", **producer.at, committed=True)
    talk.ask("the other way", **producer.at, committed=False)


@about("txn_offset_commit")
def offsets(talk: Talk) -> None:
    topic, producer, group = talk.topic(), Producer(talk), talk.named("g")
    talk.quietly("add_offsets_to_txn", 3, **producer.at, group_id=group)

    def commit(label: str, *partitions: int, to: str = topic.name, offset: int = 5, **more: Any) -> None:
        asked = [{"partition_index": p, "committed_offset": offset, "committed_metadata": "m"} for p in partitions]
        member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
        fields = {**producer.at, "group_id": group, **member, **more}
        talk.ask(label, **fields, topics=[{"name": to, "partitions": asked}])

    commit("one", 0)
    commit("one of two is there", 0, 9)
    commit("no topic", 0, to=talk.named("none"))
    commit("a negative offset", 0, offset=-1)
    commit("no group", 0, group_id="")
    commit("another producer", 0, transactional_id=talk.named("none"))
    commit("another id", 0, producer_id=producer.id + 7)
    for epoch in (-1, 1):
        commit(f"epoch {epoch}", 0, producer_epoch=producer.epoch + epoch)
    if talk.version >= 3:
        commit("a member of none", 0, member_id="nobody", generation_id=1)
        commit("a generation of none", 0, generation_id=1)
        commit("an instance of none", 0, member_id="nobody", generation_id=1, group_instance_id="i")
    commit("no partitions")


@about("write_txn_markers")
def markers(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.begin(topic)
    producer.write(topic)

    def mark(
        label: str, to: str, *partitions: int, id: int = 77, epoch: int = 0, commit: bool = True, second: bool = False
    ) -> None:
        at = [{"name": to, "partition_indexes": partitions}]
        marker = {"producer_id": id, "producer_epoch": epoch, "transaction_result": commit, "coordinator_epoch": 0}
        talk.ask(label, markers=[{**marker, "topics": at, "transaction_version": 2 if second else 0}])

    mark("of an unknown producer", topic.name, 1)
    mark("no partition", topic.name, 9)
    mark("no topic", talk.named("none"), 0)
    mark("a stale epoch", topic.name, 0, id=producer.id, epoch=producer.epoch - 1)
    if talk.version >= 2:
        mark("of the second version, the same epoch", topic.name, 0, id=producer.id, epoch=producer.epoch, second=True)
    mark("well", topic.name, 0, id=producer.id, epoch=producer.epoch, commit=False)
    mark("again", topic.name, 0, id=producer.id, epoch=producer.epoch, commit=False)
    if talk.version >= 2:
        mark("of the second version, again", topic.name, 0, id=producer.id, epoch=producer.epoch, second=True)
        mark("of the second version, a new epoch", topic.name, 0, id=producer.id, epoch=producer.epoch + 1, second=True)
    talk.ask("nothing", markers=[])


@about("describe_producers")
def writers(talk: Talk) -> None:
    topic, producer, done = talk.topic(), Producer(talk), Producer(talk, "done")
    done.begin(topic)
    done.write(topic)
    done.end()
    producer.begin(topic)
    producer.write(topic)
    talk.ask("two", topics=[{"name": topic.name, "partition_indexes": [0]}])
    talk.ask("nobody", topics=[{"name": topic.name, "partition_indexes": [1]}])
    talk.ask("no partition", topics=[{"name": topic.name, "partition_indexes": [9, -1]}])
    talk.ask("no topic", topics=[{"name": talk.named("none"), "partition_indexes": [0]}])
    talk.ask("no name", topics=[{"name": "", "partition_indexes": [0]}])
    talk.ask("no partitions", topics=[{"name": topic.name, "partition_indexes": []}])
    talk.ask("nothing", topics=[])


@about("describe_transactions")
def states(talk: Talk) -> None:
    topic, producer, idle, done = talk.topic(), Producer(talk), Producer(talk, "idle"), Producer(talk, "done")
    producer.begin(topic, 0, 1)
    done.begin(topic)
    done.end(committed=False)
    for label, names in {
        "going on": [producer.name],
        "none begun": [idle.name],
        "done": [done.name],
        "none there": [talk.named("none")],
        "no name": [""],
        "two": [producer.name, talk.named("none")],
        "the same twice": [idle.name, idle.name],
        "nothing": [],
    }.items():
        talk.ask(label, transactional_ids=names)


@about("list_transactions")
def listed(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.begin(topic)

    def find(label: str, **fields: Any) -> None:
        talk.ask(label, **{"state_filters": [], "producer_id_filters": [producer.id], "duration_filter": -1, **fields})

    find("by producer")
    find("by state", state_filters=["Ongoing"])
    find("by another state", state_filters=["Empty"])
    find("by an unknown state", state_filters=["Nonsense"])
    find("by an unknown state and another", state_filters=["Nonsense", "Ongoing"])
    find("by another producer", producer_id_filters=[999_999_999])
    find("by duration", duration_filter=3_600_000)
    if talk.version >= 2:
        find("by pattern", transactional_id_pattern=f".*{producer.name}")
        find("by another pattern", transactional_id_pattern="none")
        find("by an empty pattern", transactional_id_pattern="")
        find("by a wrong pattern", transactional_id_pattern="[")


@about("fetch")
def read_committed(talk: Talk) -> None:
    topic, producer = talk.topic(partitions=1), Producer(talk)
    producer.begin(topic)
    producer.write(topic)
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000, "current_leader_epoch": -1}
    topics = [{"topic": topic.name, "topic_id": topic.id, "partitions": [asked]}]
    fields = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": topics,
    }
    for level in (0, 1):
        talk.ask(f"open, level {level}", **fields, isolation_level=level)
    producer.end(committed=False)
    for level in (0, 1):
        talk.ask(f"aborted, level {level}", **fields, isolation_level=level)
