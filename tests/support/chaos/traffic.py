"""The traffic beside which faults happen: connections that come and go, and producers that keep count of what was acknowledged."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from harness import admitted, connect

ADDRESSES = tuple(f"127.1.0.{number}" for number in range(1, 17))


class Churn:
    """Threads that connect from a few addresses, hold what is admitted for up to half a second, and close it.

    `outcomes` counts admitted, refused and broken attempts; `longest_s` is the longest wait for an outcome.
    """

    def __init__(self, address: Callable[[], tuple[str, int]], seed: int, threads: int = 12) -> None:
        self.outcomes: Counter[str] = Counter()
        self.longest_s = 0.0
        self._address = address
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed}/{n}"),)) for n in range(threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when every connection is closed."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _run(self, chance: random.Random) -> None:
        while not self._ends.wait(chance.uniform(0, 0.05)):
            began_s = time.monotonic()
            try:
                with connect(self._address(), chance.choice(ADDRESSES)) as sock:
                    sock.settimeout(30)
                    outcome = "admitted" if admitted(sock) else "refused"
                    self.longest_s = max(self.longest_s, time.monotonic() - began_s)
                    if outcome == "admitted":
                        self._ends.wait(chance.uniform(0, 0.5))
            except OSError:
                outcome = "broken"
            self.outcomes[outcome] += 1


class Counted:
    """An idempotent producer of numbered records, at most `rate` a second, and the set of those acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: int = 300) -> None:
        self.acknowledged: set[int] = set()
        self.failed: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / rate
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when every record is acknowledged or has failed."""
        self._ends.set()
        self._thread.join()
        self._producer.flush(120)

    def faults(self) -> list[str]:
        """What is wrong with the log: acknowledged records that are not there, records that are there twice or out of order."""
        seen: Counter[int] = Counter()
        found: list[str] = []
        for partition in range(self._partitions):
            last = -1
            for message in self._read(partition):
                number = int(message.key())
                seen[number] += 1
                if number < last:
                    found.append(f"partition {partition}: {number} behind {last} at offset {message.offset()}")
                last = number
        found += [f"{number} was acknowledged and is not there" for number in sorted(self.acknowledged - seen.keys())]
        found += [f"{number} is there {count} times" for number, count in sorted(seen.items()) if count > 1]
        return found

    def _run(self) -> None:
        number = 0
        while not self._ends.is_set():
            try:
                self._producer.produce(
                    self._topic,
                    b"x" * 100,
                    key=str(number),
                    partition=number % self._partitions,
                    on_delivery=self._told,
                )
                number += 1
            except BufferError:
                pass
            self._producer.poll(self._pause_s)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(int(message.key()))
        else:
            self.failed.append(str(error))

    def _read(self, partition: int) -> list[Message]:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "chaos", "enable.auto.commit": False, "log_level": 0}
        )
        with contextlib.closing(consumer):
            place = TopicPartition(self._topic, partition, 0)
            end = consumer.get_watermark_offsets(place, timeout=30)[1]
            consumer.assign([place])
            read: list[Message] = []
            deadline_s = time.monotonic() + 120
            while (not read or read[-1].offset() < end - 1) and end and time.monotonic() < deadline_s:
                read += [message for message in consumer.consume(10_000, 0.5) if message.error() is None]
            return read
