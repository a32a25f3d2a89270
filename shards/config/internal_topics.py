"""Kafka's internal topics, which the coordinators of groups and of transactional ids write: names, partitions, configs.

A group's records are in partition `partition_of(group)` of __consumer_offsets, those of a transactional id in the partition of
__transaction_state that is computed in the same way. The leader of that partition is the coordinator.
Sources: Topic, Utils.abs, GroupCoordinatorService.partitionFor, TransactionStateManager, AutoTopicCreationManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from struct import unpack

GROUP_METADATA = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topic.isInternal; there is never the last one here: what share groups keep is not shown as a topic."""

PARTITIONS = 50
"""Of each: Kafka's default of offsets.topic.num.partitions and transaction.state.log.num.partitions; here it can't be set."""

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
"""What each is created with."""

_INT = 1 << 32
_AT_ONCE = 256
_POWERS = [pow(31, n, _INT) for n in range(_AT_ONCE)]


@lru_cache(maxsize=1024)
def partition_of(key: str) -> int:
    """The partition of a group or a transactional id: abs(key.hashCode()) % PARTITIONS, as Java computes these."""
    return java_abs_hash(key) % PARTITIONS


def java_abs_hash(text: str) -> int:
    """Utils.abs(text.hashCode())"""
    units: Sequence[int] = text.encode() if text.isascii() else _utf16(text)
    total = 0
    for first in range(0, len(units), _AT_ONCE):
        part = units[first : first + _AT_ONCE]
        total = (total * pow(31, len(part), _INT) + sum(map(mul, reversed(part), _POWERS))) % _INT
    if total < _INT // 2:
        return total
    return (_INT - total) % (_INT // 2)  # Utils.abs(Integer.MIN_VALUE) is 0


def _utf16(text: str) -> tuple[int, ...]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return unpack(f">{len(encoded) // 2}H", encoded)


def leader_of(partition: int, brokers: int) -> int:
    """The broker that leads a partition, and coordinates what is in it."""
    return partition % brokers


def home_of_bucket(partition: int, brokers: int, shards: int) -> int:
    """The shard of that broker, 0 to shards - 1, that is home to what is in a partition; each has as many."""
    return partition // brokers % shards


def home_of_key(key: str, brokers: int, shards: int) -> int:
    """The shard of its coordinator that is home to a group or a transactional id."""
    return home_of_bucket(partition_of(key), brokers, shards)


def leaders(brokers: int) -> list[int]:
    """`leader_of` each partition."""
    return [leader_of(partition, brokers) for partition in range(PARTITIONS)]
