"""How many topics and replicas may still be created: Redpanda's `kafka_topics_max` and `topic_partitions_per_shard`. Pure.

Internal topics count for neither. Replicas count that are named (replicas.py): a partition of three counts three times.

Source: partition_allocator (Redpanda 24.3), whose bounds by memory and by descriptors there are none of here; the error of
`kafka_topics_max` is Turnstile's choice, as none is known of Redpanda.
"""

from __future__ import annotations

import math
from typing import cast

from shards.config import internal_topics
from shards.config.changes import ConfigState
from shards.config.replicas import Result, replicas_of
from shards.settings.broker_config import EVERY_BROKER, given

_NO_TOPIC: Result = ["POLICY_VIOLATION", "There are as many topics as kafka_topics_max allows."]


class TopicRoom:
    """The room in a cluster whose brokers have so many shards each; `take` what is created of it."""

    def __init__(self, state: ConfigState, shards: int) -> None:
        values = given(EVERY_BROKER, state.static, state.settings)
        most = cast(int | None, values.get("kafka_topics_max"))
        per_shard = cast(int | None, values.get("topic_partitions_per_shard"))
        reserved = cast(int, values.get("topic_partitions_reserve_shard0", 0))
        own = state.topics.keys() - internal_topics.INTERNAL_TOPICS
        self._topics = math.inf if most is None else most - len(own)
        self._replicas, self._most_replicas = math.inf, 0
        if per_shard is not None:
            self._most_replicas = max(state.brokers * (shards * per_shard - reserved), 0)
            counted = sum(len(each) for name in own for each in replicas_of(state.topics[name]))
            self._replicas = self._most_replicas - counted

    def problem(self, name: str, topics: int, replicas: int) -> Result | None:
        """Why there is no room for `topics` (0 or 1) of this name, and so many replicas."""
        if name in internal_topics.INTERNAL_TOPICS:
            return None
        if topics > self._topics:
            return _NO_TOPIC
        if replicas > self._replicas:
            return [
                "INVALID_PARTITIONS",
                f"{replicas:,} more replicas are beyond the {self._most_replicas:,} that topic_partitions_per_shard allows.",
            ]
        return None

    def take(self, name: str, topics: int, replicas: int) -> None:
        """They are created."""
        if name not in internal_topics.INTERNAL_TOPICS:
            self._topics -= topics
            self._replicas -= replicas
