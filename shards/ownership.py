"""The home of each key among the shards: this module alone knows the hashes. Every process computes the same, after every restart.

A *home* decides about a key, and the other shards ask it; of a partition it decides only about markers, cleaning and deletion,
and every shard of the leader reads and appends. The keys:

    pools, rates, client quotas         by crc32 of the key, among the shards of a broker        home_of
    the pool of the cluster             by crc32 of its key, among the shards of all brokers     home_of, member_of
    partitions                          the broker is their leader; its shards by topic in turn  home_of_partition
    groups, transactional ids           by their bucket, a partition of the internal topics      home_of_coordinator_key
    share partitions                    the broker is the partition's leader; its shard is that of the group

A *bucket* is a partition of __consumer_offsets or __transaction_state, with the groups or transactional ids that are in it (Kafka's
*coordinator keys*). It is led by one broker, their coordinator (leader_of_bucket), and written by one shard of it (home_of_bucket).
Sources of buckets: Utils.abs, GroupCoordinatorService.partitionFor, TransactionStateManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from struct import unpack
from zlib import crc32

PARTITIONS = 50
"""Buckets of groups, and of transactional ids: Kafka's default of offsets.topic.num.partitions and
transaction.state.log.num.partitions; here it can't be set."""

BrokerShard = tuple[int, int]
"""A shard by (number of its broker, number among the broker's shards)."""

_INT = 1 << 32
_AT_ONCE = 256
_POWERS = [pow(31, n, _INT) for n in range(_AT_ONCE)]


def member_of(place: BrokerShard, shards: int) -> int:
    """The number of a shard among those of all brokers, each of which has `shards`."""
    return place[0] * shards + place[1]


def shard_of_member(member: int, shards: int) -> BrokerShard:
    """The shard that has this number among those of all brokers."""
    return divmod(member, shards)


def hash_of(key: str) -> int:
    """32 bits; the same in every process and after every restart, which Python's own hash() is not."""
    return crc32(key.encode())


def home_of(key: str, shards: int) -> int:
    """The home, 0 to shards - 1, of a key, such as a pool's ("ip:10.0.0.1"). Raises ZeroDivisionError for shards 0."""
    return hash_of(key) % shards


def home_of_partition(topic: str, partition: int, shards: int) -> int:
    """The home of a partition. Those of one topic go round the shards, so that each has as many as any other."""
    return (home_of(f"topic:{topic}", shards) + partition) % shards


@lru_cache(maxsize=1024)
def bucket_of(key: str) -> int:
    """The bucket of a group or a transactional id: abs(key.hashCode()) % PARTITIONS, as Java computes these."""
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


def leader_of_bucket(bucket: int, brokers: int) -> int:
    """The broker that leads a bucket, and coordinates the keys in it."""
    return bucket % brokers


def home_of_bucket(bucket: int, brokers: int, shards: int) -> int:
    """The shard of that broker, 0 to shards - 1, that is home to the keys in a bucket; each has as many buckets."""
    return bucket // brokers % shards


def home_of_coordinator_key(key: str, brokers: int, shards: int) -> int:
    """The shard of its coordinator that is home to a group or a transactional id."""
    return home_of_bucket(bucket_of(key), brokers, shards)


def bucket_leaders(brokers: int) -> list[int]:
    """The broker that leads each bucket."""
    return [leader_of_bucket(bucket, brokers) for bucket in range(PARTITIONS)]
