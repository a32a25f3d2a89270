"""The part of the benchmark's suite that uses consumer groups: 15 tests."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient


def fill(place, count):
    producer = Producer(place.client())
    for number in range(count):
        producer.produce(place.topic, str(number), partition=number % 4)
    assert producer.flush(20) == 0


def member(place, **settings):
    started = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "group_id": place.group}
    consumer = Consumer(place.client(**started, **settings))
    consumer.subscribe([place.topic])
    return consumer


def take(consumer, count):
    values = []
    while len(values) < count:
        message = consumer.poll(20)
        assert message is not None and message.error() is None
        values.append(int(message.value()))
    return sorted(values)


@pytest.mark.parametrize("count", [1, 8, 100])
def test_one_member_gets_everything(place, count):
    fill(place, count)
    consumer = member(place)
    assert take(consumer, count) == list(range(count))
    consumer.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_strategies(place, strategy):
    fill(place, 8)
    consumer = member(place, partition_assignment_strategy=strategy)
    assert take(consumer, 8) == list(range(8)) and len(consumer.assignment()) == 4
    consumer.close()


@pytest.mark.parametrize("wait", [True, False])
def test_the_next_member_goes_on_where_the_last_committed(place, wait):
    fill(place, 4)
    first = member(place)
    take(first, 4)
    first.commit(asynchronous=not wait)
    first.close()
    fill(place, 2)
    second = member(place)
    assert take(second, 2) == [0, 1]
    second.close()


@pytest.mark.parametrize("count", range(1, 5))
def test_committed_offsets_are_kept(place, count):
    consumer = Consumer(place.client(group_id=place.group))
    offsets = [TopicPartition(place.topic, partition, 5 + partition) for partition in range(count)]
    consumer.commit(offsets=offsets, asynchronous=False)
    found = consumer.committed([TopicPartition(place.topic, partition) for partition in range(4)], timeout=10)
    assert [each.offset for each in found[:count]] == [5 + partition for partition in range(count)]
    consumer.close()


def test_two_groups_get_everything_each(place):
    fill(place, 4)
    for group in (place, place._replace(group=f"{place.group}-other")):
        consumer = member(group)
        assert take(consumer, 4) == list(range(4))
        consumer.close()


def test_a_group_is_listed_and_described(place):
    fill(place, 1)
    consumer = member(place)
    take(consumer, 1)
    admin = AdminClient(place.client())
    assert place.group in {each.group_id for each in admin.list_consumer_groups().result(10).valid}
    described = admin.describe_consumer_groups([place.group])[place.group].result(10)
    assert len(described.members) == 1
    consumer.close()


def test_static_membership(place):
    fill(place, 4)
    consumer = member(place, group_instance_id="one")
    assert take(consumer, 4) == list(range(4))
    consumer.close()
