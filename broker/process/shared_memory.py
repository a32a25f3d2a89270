"""The memory that the shards of a cluster share: made by the supervisor before it forks, so a restarted shard has it, too."""

from __future__ import annotations

from typing import NamedTuple

from broker.storage.log_ends import LogEnds
from shards.config.cluster_plan import ClusterPlan
from shards.ownership import BrokerShard, member_of
from shards.supervisor.return_counts import ReturnCounts, ShardReturns


class Returns(NamedTuple):
    """The returns of tokens that one shard counts with the others: of its broker's pools, and of the pool of the cluster."""

    of_broker: ShardReturns
    of_cluster: ShardReturns


class SharedMemory(NamedTuple):
    """`ends` of all partitions' logs. Returns of tokens: `of_brokers` by their numbers, `of_cluster` with the shards of all."""

    ends: LogEnds
    of_brokers: tuple[ReturnCounts, ...]
    of_cluster: ReturnCounts

    @classmethod
    def of(cls, plan: ClusterPlan) -> SharedMemory:
        """The shared memory of a cluster that starts."""
        of_brokers = tuple(ReturnCounts(plan.shards) for _ in range(plan.brokers))
        return cls(LogEnds(), of_brokers, ReturnCounts(plan.brokers * plan.shards))

    def start(self, place: BrokerShard, shards: int) -> Returns:
        """The counts of the shard at `place`, one of `shards` of its broker. To be called once by its process, in the main
        thread."""
        broker, shard = place
        of_broker = self.of_brokers[broker].start(shard)
        return Returns(of_broker, self.of_cluster.start(member_of(place, shards)))
