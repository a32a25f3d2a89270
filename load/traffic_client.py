"""One real client in a process of its own: `python -m load.traffic_client ORDER`, ORDER being JSON.

Prints "ready" when its topic is there, works until its standard input ends, then prints one JSON object of what it
did. Connections are librdkafka's own count, taken from its statistics, so that a run can be reconciled.
"""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

STATISTICS_MS = 200


class Statistics:
    """Counts the connections one librdkafka handle has opened, over all brokers."""

    def __init__(self) -> None:
        self.connections = 0
        self.rounds = 0

    def __call__(self, text: str) -> None:
        """librdkafka's stats_cb."""
        brokers = json.loads(text)["brokers"].values()
        self.connections = sum(broker["connects"] for broker in brokers)
        self.rounds += 1

    def settings(self, bootstrap: str) -> dict[str, Any]:
        """Settings every client has."""
        return {
            "bootstrap.servers": bootstrap,
            "statistics.interval.ms": STATISTICS_MS,
            "stats_cb": self,
            "reconnect.backoff.max.ms": 1000,
            "log_level": 0,
        }


def stop_asked() -> bool:
    """Whether our standard input has ended."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def create_topic(order: dict[str, Any]) -> int:
    """Make the topic, unless it is there; how many connections that took."""
    seen = Statistics()
    admin = AdminClient(seen.settings(order["bootstrap"]))
    future = admin.create_topics([NewTopic(order["topic"], order["partitions"], 1)])[order["topic"]]
    try:
        future.result(timeout=30)
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise
    last_word(seen, admin.poll)
    return seen.connections


def last_word(seen: Statistics, poll: Any) -> None:
    """Poll until statistics came that are younger than this call, so that no connection is left out."""
    wanted, deadline = seen.rounds + 2, time.monotonic() + 5
    while seen.rounds < wanted and time.monotonic() < deadline:
        poll(0.05)


def produce(order: dict[str, Any]) -> dict[str, int]:
    """Produce at the ordered rate until told to stop, then flush."""
    seen, done = Statistics(), {"produced": 0, "failed": 0}

    def delivered(error: object, _message: object) -> None:
        done["failed" if error else "produced"] += 1

    producer = Producer({**seen.settings(order["bootstrap"]), "linger.ms": 5})
    value, sent, began = b"x" * order["size_bytes"], 0, time.monotonic()
    while not stop_asked():
        due = int((time.monotonic() - began) * order["records_per_s"])
        while sent < due:
            try:
                producer.produce(order["topic"], value, on_delivery=delivered)
            except BufferError:
                break
            sent += 1
        producer.poll(0.01)
    left = producer.flush(10)
    last_word(seen, producer.poll)
    return {**done, "failed": done["failed"] + left, "connections": seen.connections}


def consume(order: dict[str, Any]) -> dict[str, int]:
    """Consume in the ordered group until told to stop."""
    seen, consumed = Statistics(), 0

    def take(timeout_s: float) -> None:
        nonlocal consumed
        consumed += sum(1 for message in consumer.consume(500, timeout=timeout_s) if message.error() is None)

    settings = {"group.id": order["group"], "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    consumer = Consumer({**seen.settings(order["bootstrap"]), **settings})
    consumer.subscribe([order["topic"]])
    while not stop_asked():
        take(0.1)
    last_word(seen, take)
    consumer.close()
    return {"consumed": consumed, "connections": seen.connections}


def main() -> None:
    """Carry out the order."""
    order = json.loads(sys.argv[1])
    connections = create_topic(order)
    print("ready", flush=True)
    done = {"produce": produce, "consume": consume}[order["role"]](order)
    done["connections"] += connections
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
