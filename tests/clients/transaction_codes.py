"""A conversation about transactions, right and wrong, whose answers are compared with those that Apache Kafka 4.1 gave.

`CLIENTS_PEER=kafka pytest tests/clients/test_transaction_codes.py` asks Kafka itself. Producer ids are told as how far they are
from the one that the id began with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from batches import batch
from confluent_kafka.admin import AdminClient, NewTopic
from wired import Dialogue, Wired, wired

from broker.storage.records import TRANSACTIONAL

TRY_AGAIN = (14, 15, 16, 51)


class Conversation(Dialogue):
    """One producer at a time: its transactional id, producer id and epoch."""

    def __init__(self, wire: Wired, topic: str) -> None:
        super().__init__(wire)
        self.topic = topic
        self.name, self.id, self.epoch, self.first = "", -1, -1, -1

    def begin(self, name: str, timeout_ms: int = 60_000) -> None:
        self.name = f"{self.topic}-{name}"
        code, self.id, self.epoch = self.init(timeout_ms, relative=False)
        self.first = self.id
        self.say(f"{name}: init", [code, self.epoch])

    def init(
        self, timeout_ms: int = 60_000, *, known: tuple[int, int] = (-1, -1), again: bool = True, relative: bool = True
    ) -> list[int]:
        def ask() -> list[int]:
            answer = self.wire.ask(
                "init_producer_id", 5, transactional_id=self.name, transaction_timeout=timeout_ms,
                producer_id=known[0], producer_epoch=known[1],
            )  # fmt: skip
            told = self.told(answer.producer_id) if relative else answer.producer_id
            return [answer.error_code, told, answer.producer_epoch]

        return settled(ask) if again else ask()

    def told(self, producer_id: int) -> int:
        return producer_id - self.first if producer_id >= 0 else -1

    def add(self, *partitions: int, id: int = 0, epoch: int = 0, version: int = 3) -> list[int]:
        types = self.wire.types("add_partitions_to_txn", version)
        topics = [types.AddPartitionsToTxnTopic(name=self.topic, partitions=partitions or (0,))]

        def ask() -> list[int]:
            answer = self.wire.ask(
                "add_partitions_to_txn", version, v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id + id, v3_and_below_producer_epoch=self.epoch + epoch,
                v3_and_below_topics=topics,
            )  # fmt: skip
            results = [each for topic in answer.results_by_topic_v3_and_below for each in topic.results_by_partition]
            return [each.partition_error_code for each in results]

        return settled(ask)

    def add_offsets(self) -> list[int]:
        fields = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}
        return settled(lambda: [self.wire.ask("add_offsets_to_txn", 3, group_id=self.topic, **fields).error_code])

    def offsets(self, *, id: int = 0, epoch: int = 0, version: int = 3, partition: int = 0) -> list[int]:
        types = self.wire.types("txn_offset_commit", version)
        place = types.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=5, committed_metadata=""
        )

        def ask() -> list[int]:
            answer = self.wire.ask(
                "txn_offset_commit", version, transactional_id=self.name, group_id=self.topic,
                producer_id=self.id + id, producer_epoch=self.epoch + epoch,
                topics=[types.TxnOffsetCommitRequestTopic(name=self.topic, partitions=[place])],
            )  # fmt: skip
            return [answer.topics[0].partitions[0].error_code]

        return settled(ask)

    def end(self, *, commit: bool = True, id: int = 0, epoch: int = 0, version: int = 3) -> list[int]:
        def ask() -> list[int]:
            answer = self.wire.ask(
                "end_txn", version, transactional_id=self.name, producer_id=self.id + id,
                producer_epoch=self.epoch + epoch, committed=commit,
            )  # fmt: skip
            after = [self.told(answer.producer_id), answer.producer_epoch] if version >= 5 else []
            return [answer.error_code, *after]

        return settled(ask)

    def produce(
        self, sequence: int, *, partition: int = 0, epoch: int = 0, version: int = 9, transactional: bool = True,
        named: bool = True,
    ) -> list[int]:  # fmt: skip
        types = self.wire.types("produce", version)
        records = batch(
            b"v", producer_id=self.id, epoch=self.epoch + epoch, sequence=sequence,
            attributes=TRANSACTIONAL if transactional else 0, timestamps=[int(time.time() * 1000)],
        )  # fmt: skip
        data = types.TopicProduceData(
            name=self.topic, partition_data=[types.PartitionProduceData(index=partition, records=records)]
        )
        fields = {"transactional_id": self.name if named else None, "acks": -1, "timeout": 30_000, "topic_data": [data]}
        return settled(
            lambda: [self.wire.ask("produce", version, **fields).responses[0].partition_responses[0].error_code]
        )

    def state(self) -> list[Any]:
        answer = self.wire.ask("describe_transactions", 0, transactional_ids=[self.name])
        (described,) = answer.transaction_states
        return [described.error_code, described.transaction_state, described.producer_epoch, len(described.topics)]

    def until_complete(self) -> None:
        for _ in range(400):
            if self.state()[1].startswith("Complete"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.name} is {self.state()}")


def settled(ask: Callable[[], list[int]]) -> list[int]:
    """The first answer that does not ask for patience, as clients have it."""
    for _ in range(60):
        answer = ask()
        if answer[0] not in TRY_AGAIN:
            break
        time.sleep(0.05)
    return answer


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(timeout=30)
    with wired(bootstrap) as wire:
        for key, kind in ((topic, 0), (topic, 1)):  # Kafka creates its internal topics when asked for them
            settled(lambda key=key, kind=kind: [wire.ask("find_coordinator", 3, key=key, key_type=kind).error_code])
        talk = Conversation(wire, topic)
        for part in (_before_anything, _first_version, _fencing, _second_version, _second_fencing, _timeouts):
            part(talk)
    return talk.said


def _before_anything(talk: Conversation) -> None:
    say = talk.say
    say("no id", talk.init())
    talk.name = f"{talk.topic}-a"
    for timeout_ms in (900_001, 0, -1):
        say(f"timeout {timeout_ms}", talk.init(timeout_ms))
    say("id without epoch", talk.init(known=(5, -1)))
    for version in (3, 5):
        say(f"end of an unknown id, version {version}", talk.end(version=version))
    say("add to an unknown id", talk.add())
    say("offsets of an unknown id", talk.add_offsets())
    say("describe an unknown id", talk.state())


def _first_version(talk: Conversation) -> None:
    say = talk.say
    talk.begin("a")
    say("commit of nothing", talk.end())
    say("abort of nothing", talk.end(commit=False))
    say("add, wrong id", talk.add(id=5))
    say("add, stale epoch", talk.add(epoch=-1))
    say("add, later epoch", talk.add(epoch=1))
    say("add, stale epoch, version 1", talk.add(epoch=-1, version=1))
    say("add, unknown partition", talk.add(0, 9))
    for version in (9, 11):
        say(f"produce before add, version {version}", talk.produce(0, version=version))
    for version in (3, 4):
        say(f"offsets before add, version {version}", talk.offsets(version=version))
    say("offsets of an unknown partition", talk.offsets(partition=9))
    say("add", talk.add())
    say("add again", talk.add())
    say("produce", talk.produce(0))
    say("produce to another partition", talk.produce(0, partition=1))
    say("produce without a transaction", talk.produce(1, transactional=False, named=False))
    say("produce without a transactional id", talk.produce(1, named=False))
    say("produce behind a gap", talk.produce(7))
    say("produce again", talk.produce(0))
    say("add offsets", talk.add_offsets())
    say("offsets", talk.offsets())
    say("offsets, stale epoch", talk.offsets(epoch=-1))
    say("offsets, wrong id", talk.offsets(id=9))
    say("end, stale epoch", talk.end(epoch=-1))
    say("end, stale epoch, version 1", talk.end(epoch=-1, version=1))
    say("end, wrong id", talk.end(id=5))
    say("end, later epoch", talk.end(epoch=1))
    say("end", talk.end())
    talk.until_complete()
    say("end again", talk.end())
    say("end the other way", talk.end(commit=False))
    say("produce again after the end", talk.produce(0))
    say("offsets after the end", talk.offsets())


def _fencing(talk: Conversation) -> None:
    say = talk.say
    known = talk.id, talk.epoch
    say("go on", talk.init(known=known))
    say("go on again", talk.init(known=known))
    say("go on with another id", talk.init(known=(talk.id + 7, 0)))
    talk.epoch += 1
    say("add", talk.add())
    say("produce", talk.produce(0))
    say("a new producer", talk.init(again=False))
    say("add of the old one", talk.add())
    new = talk.init()
    say("the new producer", new)
    say("produce of the old one", talk.produce(1))
    say("end of the old one", talk.end())


def _second_version(talk: Conversation) -> None:
    say = talk.say
    talk.begin("b")
    say("commit of nothing", talk.end(version=5))
    say("abort of nothing", talk.end(commit=False, version=5))
    talk.until_complete()
    say("abort again", talk.end(commit=False, version=5))
    say("commit after it", talk.end(version=5))
    talk.epoch += 1
    say("produce", talk.produce(0, version=12))
    say("produce, stale epoch", talk.produce(0, epoch=-1, version=12))
    say("produce, later epoch", talk.produce(0, epoch=1, version=12))
    say("offsets", talk.offsets(version=5))
    say("offsets, stale epoch", talk.offsets(epoch=-1, version=5))
    say("end, stale epoch", talk.end(epoch=-1, version=5))
    say("end", talk.end(version=5))
    talk.until_complete()
    say("end again", talk.end(version=5))
    say("end the other way", talk.end(commit=False, version=5))
    say("commit of nothing more", talk.end(epoch=1, version=5))
    say("end, older epoch", talk.end(epoch=-1, version=5))
    say("produce, epoch of before", talk.produce(1, version=12))
    say("offsets, epoch of before", talk.offsets(version=5))


def _second_fencing(talk: Conversation) -> None:
    say = talk.say
    talk.epoch += 1
    say("produce", talk.produce(0, version=12))
    say("a new producer", talk.init(again=False))
    talk.until_complete()
    say("commit of the old one", talk.end(version=5))
    say("abort of the old one", talk.end(commit=False, version=5))
    say("the old one goes on", talk.init(known=(talk.id, talk.epoch)))
    say("the new producer", talk.init())


def _timeouts(talk: Conversation) -> None:
    say = talk.say
    talk.begin("c", timeout_ms=200)
    say("produce", talk.produce(0, version=12))
    say("described", talk.state())
    talk.until_complete()
    say("timed out", talk.state())
    say("commit", talk.end(version=5))
    say("abort", talk.end(commit=False, version=5))
    say("go on", talk.init(known=(talk.id, talk.epoch)))
    talk.begin("d", timeout_ms=200)
    say("add", talk.add())
    talk.until_complete()
    say("timed out", talk.state())
    say("produce", talk.produce(0))
    say("add", talk.add())
    say("abort", talk.end(commit=False))
    say("go on", talk.init(known=(talk.id, talk.epoch)))
    say("begin again", talk.init())
