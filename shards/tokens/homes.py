"""Which shard is home to a key. The only place that knows the hash."""

from zlib import crc32


def home_of(key: str, shards: int) -> int:
    """The home, 0 to shards - 1, of a key: a pool ("ip:10.0.0.1"), a group, ...

    The same in every process and after every restart, which Python's own hash() is not. Raises ZeroDivisionError for
    shards 0.
    """
    return crc32(key.encode()) % shards


def home_of_partition(topic: str, partition: int, shards: int) -> int:
    """The home of a partition. Those of one topic go round the shards, so that each has as many as any other."""
    return (home_of(f"topic:{topic}", shards) + partition) % shards
