"""Topics of 10,000 partitions, ten of them, and forty clients that ask for all at once."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from typing import Any

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def _create(number: int, types: Any) -> dict[str, Any]:
    topic = types.CreatableTopic(
        name=f"large-{number}", num_partitions=10_000, replication_factor=1, assignments=(), configs=()
    )
    return {"topics": (topic,), "timeout": timedelta(seconds=30), "validate_only": False}


def _all(types: Any) -> dict[str, Any]:
    return {"topics": None, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False}


def run(server: Server) -> None:
    for number in range(10):
        ask(server.port, frame("create_topics", 7, partial(_create, number)))
    request = frame("metadata", 12, _all)
    clients = [threading.Thread(target=ask, args=(server.port, request)) for _ in range(40)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


ATTACK = Attack("Metadata of 100,000 partitions, 40 clients at once", run)
