"""The groups whose home is this shard, with their clock and their files.

Every operation takes and returns what msgpack carries, so a call from another shard and one from here are the same. Joins and
syncs may be answered later; all else is answered at once. Groups are stored with their members, and go on when their shard was
killed (modern/modern_groups.py, classic/records.py). Its successor answers other shards only once `run` has begun: before, it
does not know the topics, and would say that nothing was ever committed.

Source: GroupCoordinatorService, GroupMetadataManager, OffsetMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio

from broker.kafka.groups import router
from broker.kafka.groups.classic.home import ClassicCoordinator
from broker.kafka.groups.classic.messages import (
    ClassicHeartbeat,
    DescribeClassicGroup,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer.home import ConsumerCoordinator
from broker.kafka.groups.consumer.messages import ConsumerHeartbeat, DescribeConsumerGroup
from broker.kafka.groups.messages import (
    CommitOffsets,
    CommitOffsetsInTransaction,
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    GroupListing,
    ListGroups,
)
from broker.kafka.groups.modern.home import HomeOfGroups
from broker.kafka.groups.offsets_home import OffsetsHome, Verify
from broker.kafka.groups.router import GroupCalls, Operations
from broker.kafka.groups.share.home import ShareCoordinator, ShareState
from broker.kafka.groups.streams.home import StreamsCoordinator
from broker.kafka.security.access import Access
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.loop.turns import Turns

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Types of groups, as ListGroups spells them."""
EXPIRY_CHECK_S = 60.0
IDLE_GROUP_MS = 600_000
"""An empty group without offsets is dropped after this long (Kafka: offsets.retention.check.interval.ms)."""
EXPIRED_AT_ONCE = 500
"""Groups looked at between two checkpoints of `expire`: a millisecond's work."""
_MINUTE_MS = 60_000


class GroupCoordinator(OffsetsHome):
    """The groups of one shard. `now_ms` is a clock that only goes forward, `wall_ms` the time of day.

    `verify` asks the coordinator of a transaction whether a group belongs to it. `share_state` reaches the share partitions of
    share groups, `access` says which topics their members may see (None: every one).
    """

    def __init__(
        self,
        offsets: CommittedOffsets,
        image: ClusterImage,
        turns: Turns,
        *,
        verify: Verify = lambda *_: codes.COORDINATOR_NOT_AVAILABLE,
        share_state: ShareState | None = None,
        access: Access | None = None,
        now_ms: Callable[[], int] = lambda: int(trio.current_time() * 1000),
        wall_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        super().__init__(offsets, image, verify=verify, access=access, now_ms=now_ms, wall_ms=wall_ms)
        classic = ClassicCoordinator(
            self.groups,
            offsets,
            admit_classic=self._admit_classic,
            is_other=self._is_modern,
            served=self._look_again,
            now_ms=now_ms,
        )
        home = HomeOfGroups(self._is_known, self._make_way, self._look_again, now_ms)
        consumer = ConsumerCoordinator(self.consumers, self.topics, home)
        streams = StreamsCoordinator(self.streams, self.topics, home)
        self.share = ShareCoordinator(self.shares, image, turns, home, state=share_state)
        self.operations: Operations = {
            JoinGroup: classic.join,
            SyncGroup: classic.sync,
            ClassicHeartbeat: classic.heartbeat,
            LeaveGroup: self.leave,
            DescribeClassicGroup: classic.describe,
            ListGroups: self.list,
            DeleteGroup: self.delete,
            CommitOffsets: self.commit,
            CommitOffsetsInTransaction: self.commit_in_transaction,
            FetchOffsets: self.fetch,
            DeleteOffsets: self.drop_offsets,
            ConsumerHeartbeat: consumer.heartbeat,
            DescribeConsumerGroup: consumer.describe,
            **self.share.operations,
            **streams.operations,
        }
        """The messages that other shards and handlers may send."""
        self._open: Deferred[None] = Deferred()
        self._wake = trio.Event()
        self._asleep_until_ms: float = 0

    async def run(self) -> None:
        """Meets the groups' deadlines and drops what has expired, until cancelled. To be called once the image has the cluster."""
        self.topics.image_changed(["topic"])
        self.groups.load(self._now_ms())
        for groups in self._modern_groups():
            groups.load()
        self._open.resolve(None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.topics.run)
            await self._meet_deadlines()

    async def _meet_deadlines(self) -> None:
        check_ms = self._now_ms() + int(EXPIRY_CHECK_S * 1000)
        while True:
            due_ms = self._next_deadline_ms()
            self._asleep_until_ms = check_ms if due_ms is None else min(check_ms, due_ms)
            self._wake = trio.Event()
            with trio.move_on_after(max(0.0, (self._asleep_until_ms - self._now_ms()) / 1000)):
                await self._wake.wait()
            now_ms = self._now_ms()
            while any([each.tick(now_ms) for each in (self.groups, *self._modern_groups())]):  # noqa: C419  all of them
                await trio.lowlevel.checkpoint()
            if now_ms >= check_ms:
                await self.expire()
                check_ms = now_ms + int(EXPIRY_CHECK_S * 1000)

    def serve_on(self, mesh: GroupCalls) -> None:
        """Offers the operations to the other shards; they are answered once `run` has begun."""
        router.serve_on(mesh, self.operations, self._open)

    # --- operations --------------------------------------------------------------------------------------------

    def leave(self, group: str, members: Sequence[Any]) -> list[int]:
        """A code per (member id, instance id)."""
        consumer = self.consumers.get(group)
        if consumer is not None:
            return [self.consumers.remove(consumer, member, instance, self._now_ms()) for member, instance in members]
        results = self.groups.leave(group, [(member, instance) for member, instance in members], self._now_ms())
        self._look_again()
        return results

    def list(self) -> list[GroupListing]:
        """Every group."""
        found = {
            each.id: GroupListing(each.id, each.protocol_type or "", each.state.value, CLASSIC) for each in self.groups
        }
        found.update({each.id: GroupListing(each.id, CONSUMER, each.state, CONSUMER) for each in self.consumers})
        found.update({each.id: GroupListing(each.id, SHARE, each.state, SHARE) for each in self.shares})
        found.update(
            {each.id: GroupListing(each.id, STREAMS, self.streams.state(each), STREAMS) for each in self.streams}
        )
        for group_id in self.offsets:
            if group_id not in found:
                kind = self.offsets.generation(group_id)[1] or ""
                found[group_id] = GroupListing(group_id, kind, GroupState.EMPTY.value, CLASSIC)
        return [*found.values()]

    def delete(self, group_id: str) -> MaybeDeferred[int]:
        group = self.groups.get(group_id)
        if not self._is_known(group_id):
            return codes.GROUP_ID_NOT_FOUND
        share = self.shares.get(group_id)
        if share is not None:
            return self.share.delete(share, lambda: self._written(group_id, lambda: self._forget(group_id)))
        modern = self.consumers.get(group_id) or self.streams.get(group_id)
        if (group is not None and (group.members or group.pending)) or (modern is not None and modern.members):
            return codes.NON_EMPTY_GROUP
        return self._written(group_id, lambda: self._forget(group_id))

    # --- expiry ------------------------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Drops offsets of topics that are gone and of groups long empty, and groups of which nothing is left."""
        for count, group_id in enumerate({*self.offsets, *(group.id for group in self.groups)}):
            if count % EXPIRED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if self._written(group_id, partial(self._expire, group_id)):
                return  # the disk takes nothing: tried again at the next check

    def _expire(self, group_id: str) -> None:
        share = self.shares.get(group_id)
        if share is not None:
            self.shares.forget_topics(
                share, lambda topic_id: self._image.topics.by_id(uuid.UUID(hex=topic_id)) is not None
            )
            return
        retention_ms = self._image.get("offsets.retention.minutes") * _MINUTE_MS
        now_ms, oldest_ms = self._now_ms(), self._wall_ms() - retention_ms
        group, modern = self.groups.get(group_id), self.consumers.get(group_id) or self.streams.get(group_id)
        empty = (group is None or (group.state is GroupState.EMPTY and not group.pending)) and not (
            modern is not None and modern.members
        )
        changed_ms = max((each.changed_ms for each in (group, modern) if each is not None), default=None)
        long_empty = empty and (changed_ms is None or changed_ms <= now_ms - retention_ms)
        offsets = self.offsets.of(group_id)
        gone = [
            each
            for each, committed in offsets.items()
            if not self._is_current(each[0], committed.topic_id) or (long_empty and committed.committed_ms < oldest_ms)
        ]
        idle = changed_ms is None or changed_ms <= now_ms - IDLE_GROUP_MS
        if empty and idle and len(gone) == len(offsets) and not self.offsets.pending(group_id):
            self._forget(group_id)
        else:
            self.offsets.drop(group_id, gone)

    def _look_again(self) -> None:
        """Wakes `run` if something is due before it would wake by itself."""
        due_ms = self._next_deadline_ms()
        if due_ms is not None and due_ms < self._asleep_until_ms:
            self._wake.set()
