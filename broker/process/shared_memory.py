"""The memory that the shards of a cluster share: made by the supervisor before it forks, so a restarted shard has it, too."""

from __future__ import annotations

from typing import NamedTuple

from broker.storage.log_ends import LogEnds
from shards.config.cluster_plan import ClusterPlan
from shards.supervisor.return_counts import ReturnCounts


class SharedMemory(NamedTuple):
    """`ends` of all partitions' logs; `returns` of tokens, of each broker by its number."""

    ends: LogEnds
    returns: tuple[ReturnCounts, ...]

    @classmethod
    def of(cls, plan: ClusterPlan) -> SharedMemory:
        """That of a cluster that starts."""
        return cls(LogEnds(), tuple(ReturnCounts(plan.shards) for _ in range(plan.brokers)))
