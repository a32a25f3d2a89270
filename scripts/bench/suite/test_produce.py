"""The part of the benchmark's suite that produces: 20 tests."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

ANY = -1


def produced(place, count=10, value=b"order", partition=ANY, **settings):
    """(partition, offset) of each record, in the order of acknowledgement."""
    where, failed = [], []

    def delivered(error, message):
        (failed if error else where).append(error or (message.partition(), message.offset()))

    producer = Producer(place.client(**settings))
    for number in range(count):
        producer.produce(place.topic, value, key=str(number), partition=partition, on_delivery=delivered)
    assert producer.flush(20) == 0 and failed == []
    return where


def high_watermarks(place):
    consumer = Consumer(place.client(group_id=place.group))
    ends = [consumer.get_watermark_offsets(TopicPartition(place.topic, each), timeout=10)[1] for each in range(4)]
    consumer.close()
    return ends


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("count", [1, 100])
def test_every_record_is_kept(place, acks, count):
    assert len(produced(place, count, acks=acks)) == count
    if acks != 0:
        assert sum(high_watermarks(place)) == count


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed(place, compression):
    produced(place, 50, b"x" * 500, compression_type=compression)
    assert sum(high_watermarks(place)) == 50


@pytest.mark.parametrize("partition", range(4))
def test_to_one_partition_in_order(place, partition):
    assert produced(place, 20, partition=partition) == [(partition, offset) for offset in range(20)]


@pytest.mark.parametrize("size", [0, 1, 10_000, 500_000])
def test_of_many_sizes(place, size):
    assert len(produced(place, 2, b"x" * size)) == 2


def test_idempotent(place):
    produced(place, 50, enable_idempotence=True)
    assert sum(high_watermarks(place)) == 50


def test_too_large_is_refused_by_the_client(place):
    with pytest.raises(KafkaException):
        Producer(place.client(message_max_bytes=2000)).produce(place.topic, b"x" * 5000)
