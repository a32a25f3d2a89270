"""Limits that Kafka and Redpanda have by different names: where both are set, the tighter one rules. Pure.

tighter_of_both_rules  What a broker obeys is Kafka's setting as tightened by Redpanda's of the same meaning, never loosened by it.

Source: `kafka_batch_max_bytes`, `kafka_request_max_bytes`, `group_min_session_timeout_ms` and `group_max_session_timeout_ms` of
Redpanda 26.2. Caps and rates of connections have their own rules (shards/limits/connection_limits.py).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from shards.settings.config_types import Value


class SameLimit(NamedTuple):
    """`kafka`: the name in Kafka. `tighter`: of two values the one that lets less pass."""

    kafka: str
    tighter: Callable[[int, int], int]


SAME_LIMITS: Mapping[str, SameLimit] = {
    "kafka_batch_max_bytes": SameLimit("message.max.bytes", min),
    "kafka_request_max_bytes": SameLimit("socket.request.max.bytes", min),
    "group_min_session_timeout_ms": SameLimit("group.min.session.timeout.ms", max),
    "group_max_session_timeout_ms": SameLimit("group.max.session.timeout.ms", min),
}
"""The limits that both vocabularies have, by Redpanda's name."""


def tightened(values: Mapping[str, Value]) -> dict[str, Value]:
    """Values in force by name, once Redpanda's have tightened Kafka's."""
    found = dict(values)
    for name, same in SAME_LIMITS.items():
        if found.get(name) is not None:
            found[same.kafka] = same.tighter(cast(int, found[same.kafka]), cast(int, found[name]))
    return found
