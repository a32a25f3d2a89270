"""Which shard is home to a key. The only place that knows the hash."""

from zlib import crc32


def home_of(key: str, shards: int) -> int:
    """The home, 0 to shards - 1, of a key: a pool ("ip:10.0.0.1"), a partition ("partition:t:0"), a group, ...

    The same in every process and after every restart, which Python's own hash() is not. Raises ZeroDivisionError for
    shards 0.
    """
    return crc32(key.encode()) % shards
