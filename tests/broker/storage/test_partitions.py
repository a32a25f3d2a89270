"""Partitions across shards, and the small APIs over them."""

from typing import Any

import pytest
from batches import batch
from shards_in_process import Broker

from broker.wire import codes

LIST_OFFSETS, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_LOG_DIRS = 2, 21, 23, 35
NOW = 1_700_000_000_000


def append(broker: Broker, topic: str, number: int, *values: bytes) -> None:
    home = broker.homes(topic, 64)[number]
    broker.partitions[home].log(topic, number).append(batch(*values), NOW)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(-1, (3, -1)), (-2, (1, -1)), (-3, (2, NOW)), (-4, (1, -1)), (-5, (-1, -1)), (NOW, (1, NOW)), (NOW + 1, (-1, -1))],
)
@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.parametrize("version", [1, 4, 7, 10])
async def test_list_offsets_answers_for_each_timestamp(
    broker: Broker, timestamp: int, expected: tuple[int, int], home: int, version: int
) -> None:
    number = broker.at("t", home)
    append(broker, "t", number, b"a", b"b", b"c")
    broker.partitions[home].log("t", number).delete_before(1)
    if timestamp == -3:
        expected = (1, NOW)  # the first of those with the largest timestamp
    response = await broker.ask(
        0,
        LIST_OFFSETS,
        version,
        lambda types: types.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            timeout=0,
            topics=[
                types.ListOffsetsTopic(
                    name="t",
                    partitions=[
                        types.ListOffsetsPartition(partition_index=number, timestamp=timestamp, current_leader_epoch=-1)
                    ],
                )
            ],
        ),
    )
    (partition,) = response.topics[0].partitions
    told = partition.error_code, (partition.offset, partition.timestamp)
    known = timestamp >= {1: -2, 4: -2, 7: -3, 10: -5}[version]
    assert told == ((codes.NONE, expected) if known else (codes.UNSUPPORTED_VERSION, (-1, -1)))


@pytest.mark.parametrize(("offset", "code", "low"), [(2, 0, 2), (-1, 0, 3), (4, codes.OFFSET_OUT_OF_RANGE, -1)])
@pytest.mark.parametrize("home", [0, 1])
async def test_delete_records_moves_the_low_watermark(
    broker: Broker, offset: int, code: int, low: int, home: int
) -> None:
    number = broker.at("t", home)
    append(broker, "t", number, b"a", b"b", b"c")
    response = await broker.ask(
        0,
        DELETE_RECORDS,
        2,
        lambda types: types.DeleteRecordsRequest(
            timeout=1000,
            topics=[
                types.DeleteRecordsTopic(
                    name="t", partitions=[types.DeleteRecordsPartition(partition_index=number, offset=offset)]
                )
            ],
        ),
    )
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (code, low)
    broker.start_again(home)
    assert broker.partitions[home].log("t", number).start_offset == max(low, 0)


@pytest.mark.parametrize(
    ("known", "asked", "expected"),
    [(-1, 0, (0, 0, 1)), (0, 0, (0, 0, 1)), (0, 1, (0, -1, -1)), (5, 0, (codes.UNKNOWN_LEADER_EPOCH, -1, -1))],
)
def test_offset_for_leader_epoch(broker: Broker, known: int, asked: int, expected: tuple[int, int, int]) -> None:
    number = broker.at("t", 0)
    append(broker, "t", number, b"a")
    response = broker.send(
        0,
        OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda types: types.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                types.OffsetForLeaderTopic(
                    topic="t",
                    partitions=[
                        types.OffsetForLeaderPartition(partition=number, current_leader_epoch=known, leader_epoch=asked)
                    ],
                )
            ],
        ),
    )
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_epoch, partition.end_offset) == expected


def described(broker: Broker, version: int, topics: Any) -> dict[tuple[str, int], int]:
    response = broker.send(
        0,
        DESCRIBE_LOG_DIRS,
        version,
        lambda types: types.DescribeLogDirsRequest(
            topics=None
            if topics is None
            else [types.DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics.items()]
        ),
    )
    (result,) = response.results
    assert getattr(result, "total_bytes", 1) > 0
    return {
        (topic.name, each.partition_index): each.partition_size for topic in result.topics for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 5))
def test_log_dirs_have_the_sizes_of_all_shards(broker: Broker, version: int) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    for number in (here, there):
        append(broker, "t", number, b"a")
    size = len(batch(b"a"))
    everything = described(broker, version, None)
    assert len(everything) == 64
    assert (everything["t", here], everything["t", there], sum(everything.values())) == (size, size, 2 * size)
    assert described(broker, version, {"t": [there, 99], "nope": [0]}) == {("t", there): size}


def test_offset_of_any_home_is_answered_at_once(broker: Broker) -> None:
    for home in (0, 1):
        append(broker, "t", broker.at("t", home), b"a")
        assert broker.partitions[0].ask("offset_at", [("t", broker.at("t", home), -1, -1)]) == [(codes.NONE, -1, 1)]
