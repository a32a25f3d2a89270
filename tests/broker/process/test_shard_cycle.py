"""shard_cycle.py: the order in which the parts of a shard follow its image, and in which a pass ends."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

from broker.process.shard_cycle import image_steps, pass_steps


class Recording:
    """A part of a shard; notes in `called` when it is told of the image, or flushed."""

    def __init__(self, name: str, called: list[Any]) -> None:
        self._name, self._called = name, called

    def image_changed(self, kinds: Collection[str]) -> None:
        self._called.append((self._name, kinds))

    def flush(self) -> None:
        self._called.append(self._name)


def test_the_parts_follow_the_image_in_this_order_and_hear_which_records_differ() -> None:
    called: list[Any] = []
    parts: dict[str, Any] = {
        name: Recording(name, called)
        for name in ("shard_listeners", "throttling", "clients", "telemetry", "topics", "shares", "logs", "access")
    }
    kafka: Any = SimpleNamespace(**{name: parts[name] for name in ("access", "logs", "shares", "topics", "telemetry")})
    kinds = frozenset({"topic", "acl"})
    for step in image_steps(kafka, parts["throttling"], parts["clients"], parts["shard_listeners"]):
        step(kinds)
    order = ["access", "logs", "shares", "topics", "telemetry", "throttling", "clients", "shard_listeners"]
    assert called == [(name, kinds) for name in order]


def test_a_pass_ends_in_this_order() -> None:
    called: list[Any] = []
    parts: dict[str, Any] = {
        name: Recording(name, called) for name in ("mesh", "quotas", "counters", "journal", "shard_listeners")
    }
    for step in pass_steps(**parts):
        step()
    assert called == ["shard_listeners", "journal", "counters", "quotas", "mesh"]
