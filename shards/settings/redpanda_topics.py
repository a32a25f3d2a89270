"""Redpanda's settings of how many topics and partitions there may be (shards/config/topic_room.py obeys them)."""

from __future__ import annotations

from shards.settings.config_key import REDPANDA, TURNSTILE, ConfigKey
from shards.settings.config_types import long, whole
from shards.settings.ranges import UINT32_MAX

TOPIC_ROOM = [
    ConfigKey("kafka_topics_max", whole(0, UINT32_MAX), None,
            "Topics of users that there may be; beyond it none is created. Internal topics don't count.", REDPANDA, True),
    ConfigKey("topic_partitions_per_shard", whole(1), None,
            "Replicas of users' partitions for each shard of the cluster; beyond it no topic or partition is created "
            "(Redpanda: 5000).", REDPANDA, True),
    ConfigKey("topic_partitions_reserve_shard0", whole(0), 0,
            "Replicas that each broker's first shard leaves free of topic_partitions_per_shard.", REDPANDA, True),
    ConfigKey("topic_memory_per_partition", whole(1, 100 << 20), None,
            "Memory that a replica of users' partitions is taken to need; beyond what brokers have for them no topic or partition "
            "is created (Redpanda: 200 KiB).", REDPANDA, True),
    ConfigKey("topic_partitions_memory_allocation_percent", whole(1, 80), 10,
            "How much of a broker's memory partitions may have, for topic_memory_per_partition.", REDPANDA),
    ConfigKey("turnstile.broker.memory.bytes", long(1), None,
            "Memory that a broker is taken to have, for topic_memory_per_partition, as Redpanda's --memory. Unset: 2 GiB a shard.",
            TURNSTILE, True),
]  # fmt: skip
