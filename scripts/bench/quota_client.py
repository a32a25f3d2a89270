"""One librdkafka client under a quota: `python -m scripts.bench.quota_client ORDER`, ORDER being JSON.

Prints one JSON object: bytes per second until `to_s` after its first record, and the throttle times it was told. Every
dozen seconds an old sample leaves the quota's window and a burst of up to ten windows' worth passes. So the rate runs
over whole cycles: from the start of the first burst after `from_s` to that of the last one.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

RECORD_BYTES = 1000
SILENCE_S = 0.3


class Seen:
    """The records that came through, and when; throttle times in milliseconds."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.began = 0.0
        self.total = 0
        self.steps: list[tuple[float, int]] = []
        self.throttles: list[float] = []

    def settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.order["bootstrap"],
            "client.id": self.order["client_id"],
            "throttle_cb": lambda event: self.throttles.append(event.throttle_time * 1000),
        }

    def moved(self, size: int) -> None:
        now = time.monotonic()
        self.began = self.began or now
        self.total += size
        if self.steps and now - self.steps[-1][0] < 0.002:
            self.steps[-1] = (self.steps[-1][0], self.total)  # of the same answer
        else:
            self.steps.append((now, self.total))

    def running(self) -> bool:
        return not self.began or time.monotonic() < self.began + self.order["to_s"]

    def _bursts(self, since: float, least_bytes: int) -> list[tuple[float, int]]:
        """(when it began, bytes before it) of each burst of at least so many bytes; of all answers when there is none."""
        found, start, before = [], 0.0, 0
        for (then, total), (now, more) in pairwise(self.steps):
            if now - then >= SILENCE_S:
                start, before = now, total
            if more - before >= least_bytes and start >= since and (not found or found[-1][0] != start):
                found.append((start, before))
        return found if len(found) > 1 else [step for step in self.steps if step[0] >= since]

    def report(self) -> dict[str, Any]:
        told = [each for each in self.throttles if each > 0]
        bursts = self._bursts(self.began + self.order["from_s"], self.order["burst_bytes"])
        (first, before), (last, after) = bursts[0], bursts[-1]
        return {
            "bytes_per_s": (after - before) / (last - first) if last > first else None,
            "throttles": len(told),
            "throttle_ms": sum(told) / len(told) if told else 0.0,
            "throttled_ms": sum(told),
        }


def produce(seen: Seen) -> None:
    """Produces as fast as the broker lets it."""
    producer = Producer({**seen.settings(), "linger.ms": 5})
    value = b"x" * RECORD_BYTES

    def delivered(error: object, _message: object) -> None:
        if error is None:
            seen.moved(RECORD_BYTES)

    while seen.running():
        try:
            producer.produce(seen.order["topic"], value, partition=0, on_delivery=delivered)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    producer.purge()
    producer.poll(0)


def consume(seen: Seen) -> None:
    """Consumes from the beginning of partition 0."""
    consumer = Consumer({**seen.settings(), "group.id": seen.order["client_id"], "enable.auto.commit": False})
    consumer.assign([TopicPartition(seen.order["topic"], 0, 0)])
    while seen.running():
        for message in consumer.consume(1000, timeout=0.05):
            if message.error() is None:
                seen.moved(len(message.value()))
    consumer.close()


def main() -> None:
    """Carry out the order."""
    seen = Seen(json.loads(sys.argv[1]))
    {"produce": produce, "consume": consume}[seen.order["role"]](seen)
    print(json.dumps(seen.report()), flush=True)


if __name__ == "__main__":
    main()
