"""What consumers read of __consumer_offsets and __transaction_state, on every shard, and after one was killed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from transactional import TransactionalBroker

from broker.kafka.groups.classic.members import JoinRequest
from broker.kafka.groups.classic.messages import SyncGroup
from broker.kafka.groups.group_records import GROUP, GroupMember, GroupMetadata, consumer_group, key_of, value_of
from broker.kafka.transactions.transaction_records import value_of as transaction_value
from broker.kafka.transactions.transaction_state import TransactionMetadata, TransactionState
from broker.storage.record_batches import records_in
from broker.wire import codes
from shards.config.internal_topics import GROUP_METADATA, TRANSACTION_STATE
from shards.ownership import PARTITIONS, bucket_of, home_of_coordinator_key

FETCH, LIST_OFFSETS = 1, 2
LATEST = -1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TransactionalBroker]:
    made = TransactionalBroker(tmp_path)
    made.put_topic("t", 2)
    made.put_topic(GROUP_METADATA, PARTITIONS, topic_id=2, cleanup_policy="compact")
    made.put_topic(TRANSACTION_STATE, PARTITIONS, topic_id=3, cleanup_policy="compact")
    yield made
    made.close()


async def end(broker: TransactionalBroker, shard: int, topic: str, partition: int) -> tuple[int, int]:
    """(code, latest offset) by ListOffsets."""
    found = await broker.ask(
        shard,
        LIST_OFFSETS,
        7,
        lambda types: types.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                types.ListOffsetsTopic(
                    name=topic,
                    partitions=[types.ListOffsetsPartition(partition_index=partition, timestamp=LATEST)],
                )
            ],
        ),
    )
    answer = found.topics[0].partitions[0]
    return answer.error_code, answer.offset


async def read(broker: TransactionalBroker, shard: int, topic: str, partition: int, offset: int = 0) -> Any:
    """(code, records) by Fetch."""
    found = await broker.ask(
        shard,
        FETCH,
        12,
        lambda types: types.FetchRequest(
            max_wait=timedelta(0),
            min_bytes=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            forgotten_topics_data=[],
            topics=[
                types.FetchTopic(
                    topic=topic,
                    partitions=[
                        types.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
                    ],
                )
            ],
        ),
    )
    answer = found.responses[0].partitions[0]
    return answer.error_code, [*records_in(bytes(answer.records or b""))]


def commit(broker: TransactionalBroker, group: str, offset: int, topic: str = "t") -> None:
    home = broker.groups[home_of_coordinator_key(group, 1, broker.shards)]
    assert home.commit(group, "", None, -1, [[topic, broker.image.topics.get("t").id.hex, 0, offset, -1, "m"]]) == 0


@pytest.mark.parametrize("shard", [0, 1])
async def test_a_committed_offset_is_read_on_every_shard(broker: TransactionalBroker, shard: int) -> None:
    place = GROUP_METADATA, bucket_of("g")
    assert await end(broker, shard, *place) == (0, 0)
    commit(broker, "g", 5)
    assert await end(broker, shard, *place) == (0, 1)
    code, ((key, value),) = await read(broker, shard, *place)
    assert (code, key) == (0, b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00")
    assert value[:14] == pack(">hqi", 4, 5, -1)
    assert (value[14:16], value[24:]) == (b"\x02m", b"\0")
    commit(broker, "g", 6)
    code, ((_, value),) = await read(broker, shard, *place, offset=1)
    assert value[:10] == pack(">hq", 4, 6)
    other = GROUP_METADATA, (bucket_of("g") + 1) % PARTITIONS
    assert await end(broker, shard, *other) == (0, 0)


async def test_a_group_with_many_offsets_is_read_whole(broker: TransactionalBroker) -> None:
    broker.put_topic("many", 3000, topic_id=9)
    topic_id = broker.image.topics.get("many").id.hex
    places = [["many", topic_id, n, n, -1, ""] for n in range(3000)]
    assert broker.groups[home_of_coordinator_key("g", 1, broker.shards)].commit("g", "", None, -1, places) == 0
    place = GROUP_METADATA, bucket_of("g")
    assert await end(broker, 1, *place) == (0, 3000)
    code, found = await read(broker, 0, *place, offset=2990)
    assert (code, found[-1][0][-4:]) == (0, pack(">i", 2999))


async def test_an_offset_that_is_gone_is_a_tombstone(broker: TransactionalBroker) -> None:
    place = GROUP_METADATA, bucket_of("g")
    commit(broker, "g", 5)
    _, ((key, _),) = await read(broker, 0, *place)
    broker.groups[home_of_coordinator_key("g", 1, broker.shards)].offsets.forget("g")
    assert await read(broker, 0, *place, offset=1) == (0, [(key, None)])


async def test_offsets_of_a_deleted_topic_are_gone(broker: TransactionalBroker) -> None:
    commit(broker, "g", 5)
    place = GROUP_METADATA, bucket_of("g")
    await read(broker, 0, *place)
    broker.drop_topic("t")
    _, ((_, value),) = await read(broker, 0, *place, offset=1)
    assert value is None


async def test_what_a_killed_shard_had_not_shown_is_shown_by_its_successor(broker: TransactionalBroker) -> None:
    place = GROUP_METADATA, bucket_of("g")
    home = home_of_coordinator_key("g", 1, broker.shards)
    commit(broker, "g", 5)
    await end(broker, home, *place)
    commit(broker, "g", 6)
    broker.start_again(home)
    code, found = await read(broker, 1 - home, *place)
    assert (code, [value[:10] for _, value in found]) == (0, [pack(">hq", 4, 5), pack(">hq", 4, 6)])


async def test_a_classic_group_is_read_with_its_members_and_assignments(broker: TransactionalBroker) -> None:
    table = broker.groups[home_of_coordinator_key("g", 1, broker.shards)].groups
    answers: list[Any] = []
    protocols = (("range", b"subscribed"),)
    request = JoinRequest("", "one", "c", "/127.0.0.1", 10_000, 10_000, "consumer", protocols, False, True)
    table.join("g", request, answers.append, 0)
    table.tick(10_000)
    joined = answers.pop()
    table.sync(
        SyncGroup("g", joined.member_id, "one", 1, (None, None), [(joined.member_id, b"assigned")]), print, 10_000
    )
    _, ((key, value),) = await read(broker, 0, GROUP_METADATA, bucket_of("g"))
    assert key == key_of((GROUP, "g"))
    assert joined.member_id.encode() in value and b"subscribed" in value and value.endswith(b"assigned")


async def test_while_the_home_is_away_clients_are_to_ask_again(broker: TransactionalBroker) -> None:
    home = home_of_coordinator_key("g", 1, broker.shards)
    commit(broker, "g", 5)
    away = broker.peers.pop(home)
    place = GROUP_METADATA, bucket_of("g")
    assert await end(broker, 1 - home, *place) == (codes.NOT_LEADER_OR_FOLLOWER, -1)
    assert await read(broker, 1 - home, *place) == (codes.NOT_LEADER_OR_FOLLOWER, [])
    broker.peers[home] = away
    assert await end(broker, 1 - home, *place) == (0, 1)


async def test_a_transactional_id_is_read(broker: TransactionalBroker) -> None:
    place = TRANSACTION_STATE, bucket_of("tx")
    metadata = TransactionMetadata(
        transactional_id="tx", producer_id=7, producer_epoch=1, timeout_ms=60_000, update_ms=1_700_000_000_000,
        state=TransactionState.ONGOING, partitions=frozenset({("t", 1), ("t", 0)}), start_ms=1_700_000_000_000,
    )  # fmt: skip
    broker.kept_transactions[home_of_coordinator_key("tx", 1, broker.shards)].put(metadata)
    assert await read(broker, 0, *place) == (0, [(b"\x00\x00\x00\x02tx", transaction_value(metadata))])


async def test_clients_may_not_write_to_them(broker: TransactionalBroker) -> None:
    assert broker.partitions[0].do("append", (GROUP_METADATA, 0, b""))[0] == codes.INVALID_TOPIC_EXCEPTION
    assert broker.partitions[0].do("append", (GROUP_METADATA, 77, b""))[0] == codes.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.partitions[0].do("delete_before", (GROUP_METADATA, 0, 0))[0] == codes.INVALID_TOPIC_EXCEPTION


def test_a_group_is_spelled_as_kafka_does() -> None:
    member = GroupMember("m", None, "c", "/h", 300_000, 10_000, b"sub", b"as")
    value, changed_ms = value_of((GROUP, "g"), GroupMetadata("consumer", 3, "range", "m", 99, (member,)))
    assert changed_ms == 99
    assert value == (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x03\x00\x05range\x00\x01m" + pack(">qi", 99, 1)
        + b"\x00\x01m\xff\xff\x00\x01c\x00\x02/h" + pack(">ii", 300_000, 10_000)
        + b"\x00\x00\x00\x03sub\x00\x00\x00\x02as"
    )  # fmt: skip


def test_a_consumer_group_is_spelled_as_kafka_does() -> None:
    """As Kafka 4.1 wrote a group of one librdkafka consumer, but for its hash of the topics."""
    topic = "4c76927b189945" + "53bb8f06c6886ca74e"
    places = [[topic, [0]]]
    member = [None, None, "rdkafka", "/127.0.0.1", 300_000, None, ["t"], None, ["u", "ip"], 0, 1, 0, places, [], places]
    raw_places = b"\x02" + bytes.fromhex(topic) + b"\x02\0\0\0\0\0"
    found = [(key_of(key), value_of(key, value)) for key, value in consumer_group("h", [1, 1, b""], [("id", member)])]
    assert found == [
        (b"\0\3\0\1h", (b"\0\0\0\0\0\1\0", -1)),
        (b"\0\6\0\1h", (b"\0\0\0\0\0\1\0", -1)),
        (
            b"\0\5\0\1h\0\2id",
            (b"\0\0\0\0\x08rdkafka\x0b/127.0.0.1\x02\x02t\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00", -1),
        ),
        (b"\0\7\0\1h\0\2id", (b"\0\0" + raw_places + b"\0", -1)),
        (b"\0\x08\0\1h\0\2id", (b"\0\0\0\0\0\1\0\0\0\0\0" + raw_places + b"\1\0", -1)),
    ]


def test_a_transaction_is_spelled_as_kafka_does() -> None:
    metadata = TransactionMetadata(
        transactional_id="tx", producer_id=7, producer_epoch=1, timeout_ms=5, update_ms=9,
        state=TransactionState.COMPLETE_COMMIT, start_ms=8, previous_producer_id=6, second=True,
    )  # fmt: skip
    assert transaction_value(metadata) == (
        pack(">hqhib", 1, 7, 1, 5, 4) + b"\x01" + pack(">qq", 9, 8)
        + b"\x02" + b"\x00\x08" + pack(">q", 6) + b"\x02\x02" + pack(">h", 2)
    )  # fmt: skip
