"""One real client in a process of its own: `python -m turnstile.load.traffic_client ORDER`, ORDER being JSON.

Prints "ready" when its topic is there, works until its standard input ends, then prints one JSON object: its records,
throttle times and connections, so that a run can be reconciled.
"""

from __future__ import annotations

import json
import logging
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from turnstile.load import quota_clients
from turnstile.load.throttles import Throttles
from turnstile.load.traffic_order import TrafficCounts, TrafficOrder

CREATE_S = 30
CLOSE_S = 20
"""A consumer that leaves its group waits for the coordinator, for ever when the cluster is gone: SIGALRM ends the process."""

ClientConfig = dict[str, Any]
"""The configuration of a client of librdkafka: texts, numbers, callbacks and a logger by their names."""


class Connections(logging.Handler):
    """Counts the connections one librdkafka handle makes, refused ones too.

    From its debug log, which says "CONNECTED" once for each: its statistics forget a connection together with the
    bootstrap broker it was made to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made = 0
        self.throttles = Throttles()

    def emit(self, record: logging.LogRecord) -> None:
        self.made += record.getMessage().startswith("CONNECTED ")

    def settings(self, order: TrafficOrder, **more: object) -> ClientConfig:
        """Settings every client has."""
        log = logging.Logger("librdkafka", logging.DEBUG)
        log.addHandler(self)
        settings = {"bootstrap.servers": order["bootstrap"], "reconnect.backoff.max.ms": 1000, "debug": "broker"}
        if order["user"]:
            login = {"sasl.username": order["user"], "sasl.password": order["password"]}
            settings |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", **login}
        return {**settings, "logger": log, **more}

    def under_quota(self, order: TrafficOrder) -> ClientConfig:
        """Settings of a client that goes by its name, and is asked for its throttle times."""
        throttled = lambda event: self.throttles.add(event.throttle_time * 1000)  # noqa: E731 - a callback of one line
        return self.settings(order, **{"client.id": order["client_id"], "throttle_cb": throttled})

    def last_word(self, poll: Callable[[float], object]) -> None:
        """Serve what the log still has, which `poll` does on the way."""
        for _ in range(5):
            poll(0.05)


def stop_asked() -> bool:
    """True if our standard input has ended."""
    stdin = select.poll()
    stdin.register(sys.stdin, select.POLLIN)
    return bool(stdin.poll(0))


def create_topic(order: TrafficOrder) -> int:
    """Make the topic, unless it is there; how many connections that took. Ends the process with a sentence if it can't be made."""
    seen = Connections()
    failures: list[KafkaError] = []
    admin = AdminClient(seen.settings(order, error_cb=failures.append))
    future = admin.create_topics([NewTopic(order["topic"], order["partitions"], 1)])[order["topic"]]
    try:
        future.result(timeout=CREATE_S)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, TimeoutError) or error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            seen.last_word(admin.poll)
            sys.exit(f"{order['label']}: topic {order['topic']} can't be made: {_why(error, failures)}")
    seen.last_word(admin.poll)
    return seen.made


def _why(error: Exception, failures: Sequence[KafkaError]) -> str:
    """A broker's answer; else the reason for which none was reached, as librdkafka tells before it says that all are down."""
    said = [each.str() for each in failures if each.code() != KafkaError._ALL_BROKERS_DOWN]
    if said:
        return said[-1]
    return f"no answer within {CREATE_S} s" if isinstance(error, TimeoutError) else str(error.args[0].str())


def produce(order: TrafficOrder) -> TrafficCounts:
    """Produce at the ordered rate until told to stop, then flush."""
    seen, done = Connections(), {"produced": 0, "failed": 0}

    def delivered(error: object, _message: object) -> None:
        done["failed" if error else "produced"] += 1

    producer = Producer({**seen.under_quota(order), "linger.ms": 5})
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
    seen.last_word(producer.poll)
    throttled = {order["label"]: seen.throttles.as_json()}
    failed = done["failed"] + left
    return {"produced": done["produced"], "failed": failed, "connections": seen.made, "throttled": throttled}


def consume(order: TrafficOrder) -> TrafficCounts:
    """Consume in the ordered group until told to stop."""
    seen, consumed = Connections(), 0

    def take(timeout_s: float) -> None:
        nonlocal consumed
        consumed += sum(1 for message in consumer.consume(500, timeout=timeout_s) if message.error() is None)

    settings = {"group.id": order["group"], "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
    consumer = Consumer({**seen.under_quota(order), **settings})
    consumer.subscribe([order["topic"]])
    while not stop_asked():
        take(0.1)
    seen.last_word(take)
    signal.alarm(CLOSE_S)
    consumer.close()
    signal.alarm(0)
    return {"consumed": consumed, "connections": seen.made, "throttled": {order["label"]: seen.throttles.as_json()}}


def main() -> None:
    """Carry out the order."""
    order: TrafficOrder = json.loads(sys.argv[1])
    role = order["role"]
    connections = 0 if role == "mutate" else create_topic(order)
    print("ready", flush=True)
    if role in ("insist", "mutate"):
        done = (quota_clients.insist if role == "insist" else quota_clients.mutate)(order, stop_asked)
    else:
        done = (produce if role == "produce" else consume)(order)
    done["connections"] += connections
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
