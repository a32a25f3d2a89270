"""Produce in every version, by name and by id, here and at another shard; and everything it may be refused for."""

import inspect
from typing import Any
from uuid import UUID

import pytest
from batches import batch, values_of
from shards_in_process import Broker

from broker.storage.partitions import MOST_AT_ONCE
from broker.storage.records import TRANSACTIONAL
from broker.wire import apis, codes
from shards.errors import ClientFault

PRODUCE = 0
VERSIONS = range(apis.APIS[PRODUCE].min_version, apis.APIS[PRODUCE].max_version + 1)


def produce(
    broker: Broker,
    data: dict[int, bytes | None],
    *,
    version: int = 9,
    shard: int = 0,
    acks: int = -1,
    topic: str = "t",
    topic_id: int = 1,
    transactional_id: str | None = None,
) -> Any:
    return broker.send(
        shard,
        PRODUCE,
        version,
        lambda types: types.ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout=30_000,
            topic_data=[
                types.TopicProduceData(
                    name=topic,
                    topic_id=UUID(int=topic_id),
                    partition_data=[types.PartitionProduceData(index=n, records=raw) for n, raw in data.items()],
                )
            ],
        ),
    )


def outcome(response: Any) -> list[tuple[int, int]]:
    return [(each.error_code, each.base_offset) for each in response.responses[0].partition_responses]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_every_version_are_in_the_log(broker: Broker, version: int) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    assert outcome(produce(broker, {here: batch(b"a", b"b")}, version=version)) == [(0, 0)]
    response = produce(broker, {there: batch(b"c"), here: batch(b"d")}, version=version)
    assert outcome(response) == [(0, 0), (0, 2)]
    assert values_of(broker.partitions[0].log("t", here).read(0, 1 << 20, True)) == [b"a", b"b", b"d"]
    assert values_of(broker.partitions[1].log("t", there).read(0, 1 << 20, True)) == [b"c"]


def test_no_other_shard_is_asked(broker: Broker) -> None:
    for number, _ in enumerate(broker.homes("t", 64)):
        assert outcome(produce(broker, {number: batch(b"v")})) == [(0, 0)]
    assert broker.partitions[0].mesh.calls == []


def test_batches_of_all_shards_follow_each_other(broker: Broker) -> None:
    got = [outcome(produce(broker, {0: batch(b"%d" % turn, b"x")}, shard=turn % 2)) for turn in range(6)]
    assert got == [[(0, 2 * turn)] for turn in range(6)]
    for partitions in broker.partitions:
        assert values_of(partitions.log("t", 0).read(0, 1 << 20, True))[::2] == [b"%d" % turn for turn in range(6)]


def test_an_idempotent_producer_goes_on_at_another_shard(broker: Broker) -> None:
    raw = [batch(b"%d" % number, producer_id=3, epoch=0, sequence=number) for number in range(3)]
    shards = [(0, 0, (0, 0)), (1, 0, (0, 0)), (1, 2, (codes.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)), (1, 1, (0, 1))]
    shards += [(0, 1, (0, 1)), (0, 2, (0, 2)), (1, 0, (0, 0))]
    for shard, number, expected in shards:
        assert outcome(produce(broker, {5: raw[number]}, shard=shard)) == [expected]


async def test_many_partitions_are_answered_in_turns(broker: Broker) -> None:
    wanted = range(2 * MOST_AT_ONCE)
    response = await produce(broker, dict.fromkeys(wanted, batch(b"v")))
    codes_of = [code for code, _ in outcome(response)]
    assert codes_of == [0] * 64 + [codes.UNKNOWN_TOPIC_OR_PARTITION] * (len(wanted) - 64)


def test_each_partition_has_its_own_error(broker: Broker) -> None:
    here, there = broker.at("t", 0), broker.at("t", 1)
    broken = batch(b"x" * 30)[:-1] + b"?"
    response = produce(broker, {here: broken, there: broken, 64: batch(b"v"), -1: batch(b"v")})
    assert outcome(response) == [
        (codes.CORRUPT_MESSAGE, -1),
        (codes.CORRUPT_MESSAGE, -1),
        (codes.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (codes.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert "checksum" in response.responses[0].partition_responses[0].error_message


def test_unknown_topics_by_name_and_by_id(broker: Broker) -> None:
    assert outcome(produce(broker, {0: batch(b"v")}, topic="nope")) == [(codes.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert outcome(produce(broker, {0: batch(b"v")}, version=13, topic_id=9)) == [(codes.UNKNOWN_TOPIC_ID, -1)]
    assert outcome(produce(broker, {0: batch(b"v")}, version=13, topic_id=0)) == [(codes.UNKNOWN_TOPIC_ID, -1)]


def test_produce_to_another_brokers_partition_is_refused(broker: Broker) -> None:
    broker.put_topic("far", leaders=[1], topic_id=2)
    assert outcome(produce(broker, {0: batch(b"v")}, topic="far")) == [(codes.NOT_LEADER_OR_FOLLOWER, -1)]


def test_an_idempotent_producer_that_retries_through_a_restart_is_in_the_log_once(broker: Broker) -> None:
    there = broker.at("t", 1)
    raw = [batch(b"%d" % number, producer_id=3, epoch=0, sequence=number) for number in range(3)]
    for each in raw[:2]:
        produce(broker, {there: each})
    broker.start_again(1)
    assert [outcome(produce(broker, {there: each})) for each in raw] == [[(0, 0)], [(0, 1)], [(0, 2)]]
    assert values_of(broker.partitions[1].log("t", there).read(0, 1 << 20, True)) == [b"0", b"1", b"2"]


def test_acks_0_is_not_answered_and_its_failure_closes(broker: Broker) -> None:
    here = broker.at("t", 0)
    assert produce(broker, {here: batch(b"v")}, acks=0) is None
    assert broker.partitions[0].log("t", here).next_offset == 1
    with pytest.raises(ClientFault):
        produce(broker, {here: b"nonsense"}, acks=0)


def test_odd_acks_and_transactional_batches_without_an_id_are_refused(broker: Broker) -> None:
    assert outcome(produce(broker, {0: batch(b"v")}, acks=2)) == [(codes.INVALID_REQUIRED_ACKS, -1)]
    begins = batch(b"v", producer_id=1, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    here = broker.at("t", 0)
    assert outcome(produce(broker, {here: begins})) == [(codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)]


def test_zstd_is_taken_since_version_7(broker: Broker) -> None:
    here = broker.at("t", 0)
    raw = batch(attributes=4)
    assert outcome(produce(broker, {here: raw}, version=6)) == [(codes.UNSUPPORTED_COMPRESSION_TYPE, -1)]
    assert outcome(produce(broker, {here: raw}, version=7)) == [(0, 0)]


@pytest.mark.parametrize("shard", [0, 1])
async def test_the_records_without_key_are_named(broker: Broker, shard: int) -> None:
    broker.put_topic("kept", topic_id=3, cleanup_policy="compact")
    raw = batch(b"a", b"b", keys=[b"k", None])
    response = produce(broker, {0: raw}, topic="kept", shard=shard)
    response = await response if inspect.isawaitable(response) else response
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == codes.INVALID_RECORD
    assert [each.batch_index for each in partition.record_errors] == [1]


def test_a_topic_config_counts_from_when_it_is_in_force(broker: Broker) -> None:
    here = broker.at("t", 0)
    assert outcome(produce(broker, {here: batch(b"v" * 200)})) == [(0, 0)]
    broker.put_topic("t", 64, max_message_bytes="100")
    assert outcome(produce(broker, {here: batch(b"v" * 200)})) == [(codes.MESSAGE_TOO_LARGE, -1)]


def test_log_append_time_is_told(broker: Broker) -> None:
    broker.put_topic("stamped", 64, topic_id=4, message_timestamp_type="LogAppendTime")
    response = produce(broker, {broker.at("stamped", 0): batch(b"v")}, topic="stamped")
    assert response.responses[0].partition_responses[0].log_append_time is not None
    assert produce(broker, {broker.at("t", 0): batch(b"v")}).responses[0].partition_responses[0].log_append_time is None
