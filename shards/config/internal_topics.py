"""Kafka's internal topics, which the coordinators of groups and of transactional ids write: names and configs.

A group's records are in partition `bucket_of(group)` of __consumer_offsets, those of a transactional id in that of
__transaction_state (shards/ownership.py). The leader of the partition is the coordinator.
Sources: Topic, AutoTopicCreationManager of Kafka 4.1.
"""

from __future__ import annotations

GROUP_METADATA = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topic.isInternal. `__share_group_state` never exists here: what share groups keep is not shown as a topic."""

_COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
CONFIGS = {
    GROUP_METADATA: {**_COMPACTED, "compression.type": "producer"},
    TRANSACTION_STATE: {
        **_COMPACTED,
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "false",
    },
}
"""The configs that each is created with."""
