"""Notices of appends to the other shards of a broker, in which a Fetch waits for more of a log (delayed_fetch.py)."""

from collections.abc import Callable
from typing import Final, Protocol

from broker.storage.shared_log import BITS
from shards.loop.deferred import Deferred
from shards.mesh.peer import PeerKey

APPENDED: Final = "partitions.appended"


class PartitionCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that partitions need."""

    def call(self, key: PeerKey, method: str, *args: object, timeout_s: float = 5.0) -> Deferred[object]: ...
    def serve(self, method: str, function: Callable[..., object]) -> None: ...


class AppendNotices:
    """The notices of one shard. A shard that receives one wakes its waiters (Partitions)."""

    def __init__(self, mesh: PartitionCalls, shard: int, shards: int) -> None:
        self._mesh = mesh
        self._shard = shard
        self._shards = shards

    def send(self, topic: str, partition: int, bits: int) -> None:
        """Tells the shards that wait that a log has grown here; `bits`: one bit for each of them, modulo BITS (shared_log.py)."""
        for shard in range(self._shards):
            if shard != self._shard and bits >> shard % BITS & 1:
                self._mesh.call(shard, APPENDED, topic, partition)
