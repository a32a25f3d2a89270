"""An unmodified librdkafka that produces as fast as it can."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

from scripts.bench.attacks.attack import Attack, Finding
from scripts.bench.machine import Server

SECONDS = 5
_RECORD = b"x" * 100
SETTINGS: dict[str, dict[str, Any]] = {
    "acks=0, linger.ms=0, batch.num.messages=1": {"acks": 0, "linger.ms": 0, "batch.num.messages": 1},
    "acks=1, linger.ms=0": {"acks": 1, "linger.ms": 0},
    "acks=1": {"acks": 1},
    "defaults": {},
}


def _produce(port: int, settings: dict[str, Any], count: Any) -> None:
    """Produces for SECONDS; `count` is how many records the broker has acknowledged, or was sent with acks=0."""
    from confluent_kafka import Producer

    def delivered(error: Any, message: Any) -> None:
        count.value += error is None

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, **settings})
    until_s = time.monotonic() + SECONDS
    while time.monotonic() < until_s:
        try:
            producer.produce("t", _RECORD, on_delivery=delivered)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    producer.flush(20)


def _attack(name: str, settings: dict[str, Any]) -> Attack:
    def run(server: Server) -> Finding:
        context = multiprocessing.get_context("fork")
        count = context.Value("q", 0, lock=False)
        process = context.Process(target=_produce, args=(server.port, settings, count))
        process.start()
        process.join()
        return Finding(f"{count.value / SECONDS:,.0f} records/s", bool(count.value))

    return Attack(f"librdkafka: {name}", run, ("--topic", "t:4"))


ATTACKS = tuple(_attack(name, settings) for name, settings in SETTINGS.items())
