"""Metadata of ids that no topic has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def _fields(types: Any) -> dict[str, Any]:
    one = types.MetadataRequestTopic(topic_id=UUID(int=7), name=None)
    return {
        "topics": (one,) * 50_000, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False
    }  # fmt: skip


def run(server: Server) -> None:
    ask(server.port, *[frame("metadata", 12, _fields)] * 50)


ATTACK = Attack("Metadata of 50,000 ids, 50 times", run)
