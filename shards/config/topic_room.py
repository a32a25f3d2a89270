"""The room for topics and replicas that may still be created: Redpanda's `kafka_topics_max`, `topic_partitions_per_shard` and
`topic_memory_per_partition`. Pure.

Internal topics count for neither. A partition counts once for each of its replicas (replicas.py).

The memory of a broker is a setting, `turnstile.broker.memory.bytes`: a cluster for tests has the same room on every machine.

Source: partition_allocator (Redpanda 24.3), without its bound by file descriptors; the error of `kafka_topics_max` is
Turnstile's choice, as none is known of Redpanda. MEMORY_PER_SHARD: Redpanda's sizing guidelines, 2 GB for each core.
"""

import math
from typing import NamedTuple, cast

from shards.config import internal_topics
from shards.config.config_state import ConfigState
from shards.config.replicas import Result, replicas_of
from shards.settings.broker_config import EVERY_BROKER, given

MEMORY_PER_SHARD = 2 << 30
_NO_TOPIC: Result = ["POLICY_VIOLATION", "There are as many topics as kafka_topics_max allows."]


class _ReplicaBound(NamedTuple):
    """A setting, and the replicas of users' partitions that it allows in the cluster."""

    setting: str
    most: int


class TopicRoom:
    """The room in a cluster whose brokers have so many shards each."""

    def __init__(self, state: ConfigState, shards: int) -> None:
        values = given(EVERY_BROKER, state.static, state.settings)
        most = cast(int | None, values.get("kafka_topics_max"))
        per_shard = cast(int | None, values.get("topic_partitions_per_shard"))
        reserved = cast(int, values.get("topic_partitions_reserve_shard0", 0))
        own = state.topics.keys() - internal_topics.INTERNAL_TOPICS
        self._topics = math.inf if most is None else most - len(own)
        self._bounds: list[_ReplicaBound] = []
        counted = sum(len(each) for name in own for each in replicas_of(state.topics[name]))
        if per_shard is not None:
            most_replicas = max(state.brokers * (shards * per_shard - reserved), 0)
            self._bounds.append(_ReplicaBound("topic_partitions_per_shard", most_replicas))
        per_partition = cast(int | None, values.get("topic_memory_per_partition"))
        if per_partition is not None:
            memory = cast(int | None, values.get("turnstile.broker.memory.bytes")) or shards * MEMORY_PER_SHARD
            percent = cast(int, values.get("topic_partitions_memory_allocation_percent", 10))
            most_replicas = state.brokers * (memory * percent // 100) // per_partition
            self._bounds.append(_ReplicaBound("topic_memory_per_partition", most_replicas))
        self._replicas = counted

    def problem(self, name: str, topics: int, replicas: int) -> Result | None:
        """The reason for which `topics` (0 or 1) of this name and `replicas` have no room; None: they have."""
        if name in internal_topics.INTERNAL_TOPICS:
            return None
        if topics > self._topics:
            return _NO_TOPIC
        for bound in self._bounds:
            if self._replicas + replicas > bound.most:
                why = f"{replicas:,} more replicas are beyond the {bound.most:,} that {bound.setting} allows."
                return ["INVALID_PARTITIONS", why]
        return None

    def take(self, name: str, topics: int, replicas: int) -> None:
        """Counts `topics` of this name and `replicas` as created."""
        if name not in internal_topics.INTERNAL_TOPICS:
            self._topics -= topics
            self._replicas += replicas
