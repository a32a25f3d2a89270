"""A process that holds a partition's lock and does not go on, as a stopped shard may, in a running cluster."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from harness import Cluster, running, until

from broker.storage.log_ends import KEY, MOST_LOGS

PLACE_BYTES = 128


@contextmanager
def held(cluster: Cluster, topic: str, partition: int) -> Iterator[None]:
    """This process has the partition's lock, as if it were a shard."""
    folder = f"/proc/{cluster.shard_pid(0)}/fd"
    path = next(f"{folder}/{each}" for each in os.listdir(folder) if "log-ends" in os.readlink(f"{folder}/{each}"))
    hashed = blake2b(f"0/{topic}/{partition}".encode(), digest_size=8).digest()
    key = (int.from_bytes(hashed, "little") >> 1) | 2
    with open(path, "r+b", buffering=0) as memory:
        place = key % MOST_LOGS
        found = os.pread(memory.fileno(), 8, place * PLACE_BYTES + 8 * KEY)
        assert int.from_bytes(found, "little") == key
        fcntl.lockf(memory, fcntl.LOCK_EX, 1, place)
        yield


def test_producers_of_other_partitions_go_on_and_its_own_come_again(tmp_path):
    with running(tmp_path / "d", "--topic", "t:2", shards=2) as cluster:
        delivered: dict[int, list[int]] = {0: [], 1: []}
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 0})

        def produce(values: range) -> None:
            for value in values:
                for partition in (0, 1):
                    producer.produce(
                        "t",
                        b"%d" % value,
                        partition=partition,
                        on_delivery=lambda error, got: delivered[got.partition()].append(got.offset()),
                    )
                producer.poll(0)

        produce(range(10))
        assert producer.flush(10) == 0
        with held(cluster, "t", 0):
            produce(range(10, 100))
            until(
                lambda: producer.poll(0.05) is not None and len(delivered[1]) == 100, what="the other partition goes on"
            )
            assert len(delivered[0]) == 10
            assert cluster.get("/healthz")["status"] == "ok"
        assert producer.flush(20) == 0
        assert delivered == {0: [*range(100)], 1: [*range(100)]}
        assert consumed(cluster, 0) == [b"%d" % value for value in range(100)]


def consumed(cluster: Cluster, partition: int) -> list[bytes]:
    with Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"}) as consumer:
        consumer.assign([TopicPartition("t", partition, OFFSET_BEGINNING)])
        found: list[bytes] = []
        until(
            lambda: found.extend(each.value() for each in consumer.consume(100, 0.1)) or len(found) >= 100,
            what="records",
        )
    return found
