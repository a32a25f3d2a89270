"""Where in the cluster what a transaction needs is at home: its coordinator, partitions, and offsets of groups.

A shard is (broker, shard). What is at home in this process is called directly, everything else over the mesh.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from broker.storage.topic_partition import TopicPartition
from shards.config.internal_topics import GROUP_METADATA
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.mesh.peer import PeerKey
from shards.ownership import (
    PARTITIONS,
    bucket_of,
    home_of_bucket,
    home_of_coordinator_key,
    home_of_partition,
    leader_of_bucket,
)


class Shard(NamedTuple):
    broker: int
    shard: int


class ShardCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that transactions need."""

    def call(self, key: PeerKey, method: str, *args: object, timeout_s: float = ...) -> Deferred[object]: ...

    def serve(self, method: str, function: Callable[..., object]) -> None: ...


class ClusterHomes:
    """`coordinator(key)` is the broker of a group or a transactional id; `topics` are those of the image."""

    def __init__(
        self,
        me: Shard,
        brokers: int,
        shards: int,
        mesh: ShardCalls,
        coordinator: Callable[[str], int],
        topics: Callable[[], Any],
    ) -> None:
        self.me = me
        self.brokers = brokers
        self.shards = shards
        self._mesh = mesh
        self._coordinator = coordinator
        self._topics = topics
        self._here: dict[str, Callable[..., object]] = {}

    def serve(self, method: str, function: Callable[..., object]) -> None:
        """Answers calls of `method`, from everywhere."""
        self._here[method] = function
        self._mesh.serve(method, lambda _peer, *args: function(*args))

    def call(self, home: Shard, method: str, *args: object, timeout_s: float = 5.0) -> MaybeDeferred[Any]:
        """The answer of `method` of that shard; of another shard it may be PeerLost, DeadlineExceeded or RemoteError."""
        if home == self.me:
            answer: MaybeDeferred[Any] = self._here[method](*args)
            return answer
        key = home.shard if home.broker == self.me.broker else home
        return self._mesh.call(key, method, *args, timeout_s=timeout_s)

    def of_transaction(self, transactional_id: str) -> Shard:
        return Shard(
            self._coordinator(transactional_id), home_of_coordinator_key(transactional_id, self.brokers, self.shards)
        )

    def coordinates(self, key: str) -> bool:
        """True if this broker is the coordinator of a group or a transactional id."""
        return self._coordinator(key) == self.me.broker

    def of_partition(self, topic: str, partition: int) -> Shard | None:
        """The home of a partition; None if there is no such partition."""
        found = self._topics().get(topic)
        if found is None or not 0 <= partition < len(found.leaders):
            return None
        return Shard(found.leaders[partition], home_of_partition(topic, partition, self.shards))

    def of_offsets(self, partition: int) -> Shard | None:
        """The home of the groups of a partition of __consumer_offsets; None if it has no such partition."""
        if not 0 <= partition < PARTITIONS:
            return None
        return Shard(leader_of_bucket(partition, self.brokers), home_of_bucket(partition, self.brokers, self.shards))


def offsets_place(group: str) -> TopicPartition:
    """The partition that stands for a group's offsets in a transaction."""
    return GROUP_METADATA, bucket_of(group)
