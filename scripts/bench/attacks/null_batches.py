"""Produce without a record for a million partitions: 8 MB."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def _fields(types: Any) -> dict[str, Any]:
    one = types.PartitionProduceData(index=0, records=None)
    topic = types.TopicProduceData(name="t", partition_data=(one,) * 1_000_000)
    return {"transactional_id": None, "acks": 1, "timeout": timedelta(seconds=1), "topic_data": (topic,)}


def run(server: Server) -> None:
    ask(server.port, frame("produce", 9, _fields))


ATTACK = Attack("Produce of 1,000,000 null batches", run, ("--topic", "t:1"))
