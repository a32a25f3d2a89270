"""Where share partitions are at home, and how their group's coordinator reaches them.

The share partition (group, topic, partition) is at home in the shard `home_of_group(group)` of the broker that leads the
partition: all shares of a group are decided by one shard of each broker, beside the group itself where that broker coordinates
it. What is asked of several partitions is asked once of each broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from shards.mesh.deferred import MaybeDeferred


class SharePlace(NamedTuple):
    topic_id: UUID
    partition: int


class ShareOffset(NamedTuple):
    """`code` is a Kafka error, 0 for none; `start_offset` is -1 while the share partition is not initialised, `lag` -1 if unknown."""

    code: int
    start_offset: int = -1
    leader_epoch: int = 0
    lag: int = -1


class ShareCalls(Protocol):
    """CONTRACT with the group half (worktree sg): what a shard that coordinates a share group may ask, from any shard."""

    def offsets(self, group: str, places: Sequence[SharePlace]) -> MaybeDeferred[list[ShareOffset]]:
        """For DescribeShareGroupOffsets: one for each place, in order."""
        ...

    def groups(self, group: str) -> MaybeDeferred[list[SharePlace]]:
        """All places of which the group has a state, on all brokers (DescribeShareGroupOffsets with topics null)."""
        ...

    def alter(self, group: str, offsets: Sequence[tuple[SharePlace, int]]) -> MaybeDeferred[list[int]]:
        """For AlterShareGroupOffsets of an empty group: a code for each. What was in flight is forgotten."""
        ...

    def delete(self, group: str, topic_ids: Sequence[UUID] | None) -> MaybeDeferred[int]:
        """For DeleteShareGroupOffsets, and for DeleteGroups (None: all topics): the state is gone. A code for all."""
        ...

    # A first ShareFetch initialises a share partition (share.auto.offset.reset); no call is needed when a member joins, and none
    # when it leaves: sessions end with the connection or the final epoch, and what they held is released then (Kafka does so,
    # too). Membership is not checked by ShareFetch, as in Kafka.
