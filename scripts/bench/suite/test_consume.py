"""The part of the benchmark's suite that consumes without a group: 15 tests."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition


def fill(place, values, partition=0, **more):
    producer = Producer(place.client())
    for value in values:
        producer.produce(place.topic, value, partition=partition, **more)
    assert producer.flush(20) == 0


def read(place, partitions, count, **settings):
    consumer = Consumer(place.client(group_id=place.group, enable_auto_commit=False, **settings))
    consumer.assign(partitions)
    messages = []
    while len(messages) < count:
        found = consumer.consume(count - len(messages), timeout=20)
        assert found and all(each.error() is None for each in found)
        messages += found
    consumer.close()
    return messages


@pytest.mark.parametrize("count", [1, 10, 500])
def test_from_the_beginning(place, count):
    values = [str(number).encode() for number in range(count)]
    fill(place, values)
    assert [m.value() for m in read(place, [TopicPartition(place.topic, 0, OFFSET_BEGINNING)], count)] == values


@pytest.mark.parametrize("offset", [0, 1, 9])
def test_from_an_offset(place, offset):
    fill(place, [str(number).encode() for number in range(10)])
    messages = read(place, [TopicPartition(place.topic, 0, offset)], 10 - offset)
    assert [m.offset() for m in messages] == list(range(offset, 10))


@pytest.mark.parametrize("partition", range(4))
def test_one_partition_alone(place, partition):
    fill(place, [b"other"], (partition + 1) % 4)
    fill(place, [b"one"], partition)
    assert [m.value() for m in read(place, [TopicPartition(place.topic, partition, 0)], 1)] == [b"one"]


def test_all_partitions(place):
    for partition in range(4):
        fill(place, [b"%d" % partition], partition)
    messages = read(place, [TopicPartition(place.topic, each, 0) for each in range(4)], 4)
    assert {m.value() for m in messages} == {b"0", b"1", b"2", b"3"}


def test_what_comes_later(place):
    fill(place, [b"before"])
    consumer = Consumer(place.client(group_id=place.group))
    consumer.assign([TopicPartition(place.topic, 0, 1)])
    assert consumer.poll(0.1) is None
    fill(place, [b"after"])
    assert consumer.poll(20).value() == b"after"
    consumer.close()


def test_headers_and_timestamps(place):
    fill(place, [b"one"], headers=[("trace", b"abc")], timestamp=1_700_000_000_000)
    [message] = read(place, [TopicPartition(place.topic, 0, 0)], 1)
    assert message.headers() == [("trace", b"abc")] and message.timestamp()[1] == 1_700_000_000_000


def test_by_time(place):
    for hour in range(3):
        fill(place, [b"%d" % hour], timestamp=1_700_000_000_000 + hour * 3_600_000)
    consumer = Consumer(place.client(group_id=place.group))
    [found] = consumer.offsets_for_times([TopicPartition(place.topic, 0, 1_700_000_000_001)], timeout=10)
    assert found.offset == 1
    consumer.close()


def test_a_second_read_finds_the_same(place):
    fill(place, [b"one", b"two"])
    once, again = (read(place, [TopicPartition(place.topic, 0, 0)], 2) for _ in range(2))
    assert [m.value() for m in once] == [m.value() for m in again]
