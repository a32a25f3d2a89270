"""A conversation about ShareFetch and ShareAcknowledge (KIP-932), right and wrong, compared with what Apache Kafka 4.3 answered.

`CLIENTS_PEER=kafka pytest tests/clients/test_share_codes.py -k share_fetch_codes` asks Kafka itself.
Groups need no members for that.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from batches import batch
from confluent_kafka.admin import AdminClient, NewTopic
from wired import Dialogue, Wired, wired

GAP, ACCEPT, RELEASE, REJECT = range(4)
GROUP_RESOURCE = 32
Acks = list[tuple[int, int, list[int]]]


class Member:
    """`epoch`: of its next request."""

    def __init__(self, talk: Conversation, name: str, group: str | None = None) -> None:
        self.talk, self.name, self.group = talk, name, group or talk.group
        self.id = (
            urlsafe_b64encode(uuid5(NAMESPACE_OID, name).bytes).decode().rstrip("=")
        )  # no other is one for Kafka 4.1
        self.epoch = 0

    def fetch(
        self, acks: Acks = (), *, epoch: int | None = None, most: int = 500, batch: int = 500, wait_ms: int = 50,
        places: list[tuple[UUID, int]] | None = None, forgotten: bool = False, min_bytes: int = 1, max_bytes: int = 1 << 20,
    ) -> Any:  # fmt: skip
        types = self.talk.wire.types("share_fetch", 1)
        asked = self.epoch if epoch is None else epoch
        named = [(self.talk.id, 0)] if places is None else places
        answer = self.talk.wire.ask(
            "share_fetch", 1, group_id=self.group, member_id=self.id, share_session_epoch=asked,
            max_wait=timedelta(milliseconds=wait_ms), min_bytes=min_bytes, max_bytes=max_bytes, max_records=most,
            batch_size=batch,
            topics=[
                types.FetchTopic(
                    topic_id=topic,
                    partitions=[types.FetchPartition(partition_index=number, acknowledgement_batches=_batches(types, acks))],
                )
                for topic, number in named
            ],
            forgotten_topics_data=[types.ForgottenTopic(topic_id=self.talk.id, partitions=[0])] if forgotten else [],
        )  # fmt: skip
        if not answer.error_code and asked >= 0:
            self.epoch = asked + 1
        return answer

    def acknowledge(self, acks: Acks, *, epoch: int | None = None, places: list[tuple[UUID, int]] | None = None) -> Any:
        types = self.talk.wire.types("share_acknowledge", 1)
        asked = self.epoch if epoch is None else epoch
        answer = self.talk.wire.ask(
            "share_acknowledge", 1, group_id=self.group, member_id=self.id, share_session_epoch=asked,
            topics=[
                types.AcknowledgeTopic(
                    topic_id=topic,
                    partitions=[
                        types.AcknowledgePartition(partition_index=number, acknowledgement_batches=_batches(types, acks))
                    ],
                )
                for topic, number in ([(self.talk.id, 0)] if places is None else places)
            ],
        )  # fmt: skip
        if not answer.error_code and asked > 0:
            self.epoch = asked + 1
        return answer

    def says_fetch(self, asked: str, *args: Any, **more: Any) -> None:
        self.talk.say(f"{self.name} fetches: {asked}", fetched(self.fetch(*args, **more)))

    def gets(self, asked: str, *args: Any, **more: Any) -> None:
        """Waits until something is acquired: share partitions are opened while a first fetch waits, perhaps beyond it."""
        answer = self.fetch(*args, **more)
        for _ in range(100):
            if any(each.acquired_records for topic in answer.responses for each in topic.partitions):
                break
            answer = self.fetch(places=[], wait_ms=100, **{k: v for k, v in more.items() if k in ("most", "batch")})
        self.talk.say(f"{self.name} gets: {asked}", fetched(answer))

    def says_acknowledge(self, asked: str, *args: Any, **more: Any) -> None:
        self.talk.say(f"{self.name} acknowledges: {asked}", acknowledged(self.acknowledge(*args, **more)))


def _batches(types: Any, acks: Acks) -> list[Any]:
    return [
        types.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
        for first, last, kinds in acks
    ]


def fetched(answer: Any) -> list[Any]:
    """[code, lock ms, [partition, code, acknowledge code, acquired] for each that has something]."""
    rows = []
    for topic in answer.responses:
        for each in topic.partitions:
            acquired = [[a.first_offset, a.last_offset, a.delivery_count] for a in each.acquired_records]
            if acquired or each.error_code or each.acknowledge_error_code:
                rows.append([each.partition_index, each.error_code, each.acknowledge_error_code, acquired])
    return [answer.error_code, answer.acquisition_lock_timeout // timedelta(milliseconds=1), sorted(rows)]


def acknowledged(answer: Any) -> list[Any]:
    rows = [[each.partition_index, each.error_code] for topic in answer.responses for each in topic.partitions]
    return [answer.error_code, sorted(rows)]


class Conversation(Dialogue):
    def __init__(self, wire: Wired, topic: str) -> None:
        super().__init__(wire)
        self.topic = self.group = topic
        (found,) = wire.ask("metadata", 12, topics=[wire.types("metadata", 12).MetadataRequestTopic(topic_id=None, name=topic)],
                            allow_auto_topic_creation=False, include_topic_authorized_operations=False).topics  # fmt: skip
        self.id: UUID = found.topic_id

    def configure(self, group: str, **configs: str) -> int:
        types = self.wire.types("incremental_alter_configs", 1)
        rows = [
            types.AlterableConfig(name=k.replace("_", "."), config_operation=0, value=v) for k, v in configs.items()
        ]
        resource = types.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=rows)
        (told,) = self.wire.ask("incremental_alter_configs", 1, resources=[resource], validate_only=False).responses
        code: int = told.error_code
        return code

    def join(self, member: Member) -> None:
        """Kafka keeps the state of a share partition once it is assigned to a member of the group."""
        self.wire.ask("find_coordinator", 4, key_type=0, coordinator_keys=[member.group])
        epoch = 0
        for _ in range(200):
            answer = self.wire.ask(
                "share_group_heartbeat", 1, group_id=member.group, member_id=member.id, member_epoch=epoch,
                subscribed_topic_names=None if epoch else [self.topic],
            )  # fmt: skip
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            epoch = epoch if answer.error_code else answer.member_epoch
            time.sleep(0.1)
        raise AssertionError(f"{member.name} was assigned nothing")

    def produce(self, *batches: int) -> None:
        """So many records in each batch."""
        types = self.wire.types("produce", 9)
        for count in batches:
            records = batch(*(b"%d" % number for number in range(count)), timestamps=[int(time.time() * 1000)] * count)
            place = types.PartitionProduceData(index=0, records=records)
            topic = types.TopicProduceData(name=self.topic, partition_data=[place])
            self.wire.ask("produce", 9, acks=-1, timeout=timedelta(seconds=10), topic_data=[topic])

    def delete_records(self, offset: int) -> None:
        types = self.wire.types("delete_records", 2)
        place = types.DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = types.DeleteRecordsTopic(name=self.topic, partitions=[place])
        self.wire.ask("delete_records", 2, topics=[topic], timeout=timedelta(seconds=10))


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(timeout=30)
    with wired(bootstrap) as wire:
        talk = Conversation(wire, topic)
        talk.say("the group begins at the earliest", talk.configure(topic, share_auto_offset_reset="earliest"))
        _without_sessions(talk)
        talk.join(Member(talk, "one"))
        talk.produce(5, 5)
        _sessions_and_acknowledgements(talk)
        _limits_and_ends(talk)
        return talk.said


def _without_sessions(talk: Conversation) -> None:
    nobody = Member(talk, "nobody")
    nobody.says_fetch("of a session that there is not", epoch=5)
    nobody.says_fetch("the end of a session that there is not", epoch=-1, places=[])
    nobody.says_fetch("acknowledges at once", [(0, 1, [ACCEPT])], epoch=0)
    for epoch in (0, 1, -1):
        nobody.says_acknowledge(f"without a session, epoch {epoch}", [(0, 1, [ACCEPT])], epoch=epoch)


def _sessions_and_acknowledgements(talk: Conversation) -> None:
    one, two = Member(talk, "one"), Member(talk, "two")
    one.gets("all ten")
    one.says_fetch("by a wrong epoch", epoch=7)
    two.says_fetch("nothing is left")
    one.says_fetch("accepts the first batch", [(0, 4, [ACCEPT])])
    one.says_acknowledge("the same again", [(0, 4, [ACCEPT])])
    one.says_acknowledge("beyond what was acquired", [(8, 12, [ACCEPT])])
    one.says_acknowledge("all of it beyond", [(10, 12, [ACCEPT])])
    one.says_acknowledge("first behind last", [(6, 5, [ACCEPT])])
    one.says_acknowledge("a type that there is not", [(5, 5, [9])])
    one.says_acknowledge("no type", [(5, 5, [])])
    one.says_acknowledge("not a type for each", [(5, 9, [ACCEPT, ACCEPT])])
    one.says_acknowledge("overlapping", [(5, 7, [ACCEPT]), (6, 8, [ACCEPT])])
    one.says_acknowledge("one right and one wrong", [(5, 5, [ACCEPT]), (9, 11, [ACCEPT])])
    one.says_acknowledge("a topic that there is not", [(0, 1, [ACCEPT])], places=[(UUID(int=7), 0)])
    one.says_acknowledge("a partition that there is not", [(0, 1, [ACCEPT])], places=[(talk.id, 9)])
    one.says_acknowledge("a partition that was not fetched", [(0, 1, [ACCEPT])], places=[(talk.id, 1)])
    one.says_acknowledge("by a wrong epoch", [(5, 5, [ACCEPT])], epoch=77)
    two.says_acknowledge("what another has", [(5, 9, [ACCEPT])])
    one.says_acknowledge("of each kind", [(5, 9, [ACCEPT, RELEASE, REJECT, GAP, RELEASE])])
    two.gets("what was released, up to the end of the batch", most=1)
    one.says_fetch("a partition that there is not", places=[(talk.id, 9)])
    one.says_fetch("the end", epoch=-1, places=[])
    one.says_fetch("after the end", places=[])
    two.says_acknowledge("and ends", [(6, 6, [ACCEPT]), (9, 9, [RELEASE])], epoch=-1)
    two.says_acknowledge("after the end", [(9, 9, [ACCEPT])])


def _limits_and_ends(talk: Conversation) -> None:
    three = Member(talk, "three")
    three.gets("what was released at the end of a session")
    for _ in range(4):
        three.says_acknowledge("released", [(9, 9, [RELEASE])])
        three.says_fetch("again, until that was often enough", wait_ms=300)
    talk.produce(4, 4, 4)
    three.gets("up to the end of a batch", most=6)
    three.says_acknowledge("accepted", [(10, 17, [ACCEPT])])
    three.gets("in pieces", batch=2)
    talk.delete_records(20)
    three.says_acknowledge("what is gone", [(18, 19, [ACCEPT])])
    three.says_acknowledge("gone in part", [(18, 20, [ACCEPT])])
    three.says_acknowledge("the last", [(21, 21, [ACCEPT])])
    three.says_fetch("forgets", places=[], forgotten=True)
    talk.produce(3)
    three.says_fetch("what was forgotten", places=[])
    four = Member(talk, "four")
    four.gets("pieces of one record", batch=1)
    five = Member(talk, "five", group=f"{talk.topic}-2")
    talk.join(five)
    five.says_fetch("from the latest on", wait_ms=1000)
    talk.produce(2)
    five.gets("what came since")
