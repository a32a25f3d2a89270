"""The groups whose home is this shard, with their clock and their files.

Every operation takes and returns what msgpack carries, so a call from another shard and one from here are the same.
Joins and syncs may be answered later; all else is answered at once. A shard that is killed forgets its groups' members
and keeps their offsets: the members are told UNKNOWN_MEMBER_ID and join again. Groups of the consumer protocol are kept with
their members (consumer_groups.py), and go on; so are share groups (share_groups.py). Its successor answers other shards only
from when `run` has begun: before, it does not know the topics, and would say that nothing was ever committed.

storage_error_changes_nothing
    An operation whose change can't be written answers KAFKA_STORAGE_ERROR, and nothing has changed.

ended_transaction_stays_ended
    Offsets are committed in a transaction only if its coordinator said that it has this group, and no marker of the
    producer came since it was asked: what a marker has ended does not begin again (KIP-890).

one_protocol_per_group
    A group id is of one protocol at a time. A group without members becomes one of the other protocol by the first member
    that joins it so; one with members stays what it is, as in Kafka by group.consumer.migration.policy=disabled. Kafka
    lets classic members into a group of the consumer protocol all the same; here they are told
    INCONSISTENT_GROUP_PROTOCOL. A share group stays one, and no other becomes one.

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
from broker.kafka.groups.classic.consumer_protocol import subscriptions
from broker.kafka.groups.classic.group_table import GroupTable
from broker.kafka.groups.classic.members import JoinGroupResult, JoinRequest
from broker.kafka.groups.classic.messages import (
    ClassicHeartbeat,
    DescribeClassicGroup,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.consumer.consumer_groups import ConsumerGroups
from broker.kafka.groups.consumer.consumer_topics import ConsumerTopics
from broker.kafka.groups.consumer.home import ConsumerCoordinator
from broker.kafka.groups.consumer.messages import ConsumerHeartbeat, DescribeConsumerGroup
from broker.kafka.groups.group_configs import GroupConfigs
from broker.kafka.groups.messages import (
    CommitOffsets,
    CommitOffsetsInTransaction,
    DeleteGroup,
    DeleteOffsets,
    FetchOffsets,
    ListGroups,
)
from broker.kafka.groups.router import GroupCalls, Operations
from broker.kafka.groups.share.home import ShareCoordinator, ShareState
from broker.kafka.groups.share.share_groups import ShareGroups
from broker.kafka.security.access import Access
from broker.runtime.logger import Logger
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import Deferred, MaybeDeferred, then
from shards.loop.turns import Turns

CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
"""Types of groups, as ListGroups spells them."""
GROUP_NOT_FOUND_SINCE = 9  # of OffsetCommit
EXPIRY_CHECK_S = 60.0
IDLE_GROUP_MS = 600_000
"""An empty group without offsets is dropped after this long (Kafka: offsets.retention.check.interval.ms)."""
EXPIRED_AT_ONCE = 500
"""Groups looked at between two checkpoints of `expire`: a millisecond's work."""
MARKERS_KEPT = 10_000
"""Producers whose markers are counted; of one that is forgotten, a commit that is being verified is asked for again."""
_MINUTE_MS = 60_000

Verify = Callable[[Sequence[Any], str], MaybeDeferred[int]]
"""([transactional id, producer id, epoch, whether by the second version], group) -> a code."""

log = Logger()


class GroupCoordinator:
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
        self.offsets = offsets
        self._image = image
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        configs = GroupConfigs(image)
        self.groups = GroupTable(
            limits=configs.classic,
            new_id=lambda: str(uuid.uuid4()),
            past=offsets.generation,
            remember=self._remember,
            on_fault=lambda group, fault: log.error("a group was ended by a mistake", group=group, exc_info=fault),
        )
        self.topics = ConsumerTopics(image, access)
        self.consumers = ConsumerGroups(
            offsets,
            self.topics,
            config=configs.consumer,
            most_members=partial(configs.most, "turnstile.consumer.members.max"),
            now_ms=now_ms,
        )
        consumer = ConsumerCoordinator(
            self.consumers,
            self.topics,
            make_way=self._make_way,
            is_other=self._is_known,
            served=self._look_again,
            now_ms=now_ms,
        )
        self.shares = ShareGroups(
            offsets,
            self.topics,
            config=configs.share,
            most_members=partial(configs.most, "turnstile.share.members.max"),
            most_groups=partial(configs.most, "turnstile.share.groups.max"),
            now_ms=now_ms,
        )
        self.share = ShareCoordinator(
            self.shares,
            image,
            turns,
            state=share_state,
            is_taken=lambda group: self._is_known(group) and self.shares.get(group) is None,
            served=self._look_again,
            now_ms=now_ms,
        )
        self.operations: Operations = {
            JoinGroup: self.join,
            SyncGroup: self.sync,
            ClassicHeartbeat: self.heartbeat,
            LeaveGroup: self.leave,
            DescribeClassicGroup: self.describe,
            ListGroups: self.list,
            DeleteGroup: self.delete,
            CommitOffsets: self.commit,
            CommitOffsetsInTransaction: self.commit_in_transaction,
            FetchOffsets: self.fetch,
            DeleteOffsets: self.drop_offsets,
            ConsumerHeartbeat: consumer.heartbeat,
            DescribeConsumerGroup: consumer.describe,
            **self.share.operations,
        }
        """What other shards and handlers may ask for."""
        self._verify = verify
        self._markers: dict[int, int] = {}  # producer id -> how many of its transactions were ended here
        self._open: Deferred[None] = Deferred()
        self._wake = trio.Event()
        self._asleep_until_ms: float = 0

    async def run(self) -> None:
        """Meets the groups' deadlines and drops what has expired, until cancelled. Begun when the image holds the cluster."""
        self.topics.image_changed(["topic"])
        self.consumers.load()
        self.shares.load()
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
            while any([each.tick(now_ms) for each in (self.groups, self.consumers, self.shares)]):  # noqa: C419  all of them
                await trio.lowlevel.checkpoint()
            if now_ms >= check_ms:
                await self.expire()
                check_ms = now_ms + int(EXPIRY_CHECK_S * 1000)

    def serve_on(self, mesh: GroupCalls) -> None:
        """Offers the operations to the other shards; they are answered from when `run` has begun."""
        router.serve_on(mesh, self.operations, self._open)

    # --- operations --------------------------------------------------------------------------------------------

    def join(self, group: str, fields: Sequence[Any]) -> MaybeDeferred[Any]:
        """`fields` of a JoinRequest -> fields of a JoinGroupResult."""
        answer: Deferred[Any] = Deferred()
        request = JoinRequest(*fields)
        code = self._make_classic(group, asks_for_id=request.asks_for_id)
        if code:
            return JoinGroupResult(code, request.member_id)
        protocols = tuple((name, bytes(data)) for name, data in request.protocols)
        self.groups.join(group, request._replace(protocols=protocols), answer.resolve, self._now_ms())
        self._look_again()
        return answer.result() if answer.resolved else answer

    def sync(
        self, group: str, member: str, instance: str | None, generation: int,
        protocol: Sequence[str | None], assignments: Sequence[Any],
    ) -> MaybeDeferred[Any]:  # fmt: skip
        """-> the fields of a SyncGroupResult."""
        answer: Deferred[Any] = Deferred()
        shares = [(member_id, bytes(share)) for member_id, share in assignments]
        request = SyncGroup(group, member, instance, generation, (protocol[0], protocol[1]), shares)
        self.groups.sync(request, answer.resolve, self._now_ms())
        self._look_again()
        return answer.result() if answer.resolved else answer

    def heartbeat(self, group: str, member: str, instance: str | None, generation: int) -> int:
        return self.groups.heartbeat(group, member, instance, generation, self._now_ms())

    def leave(self, group: str, members: Sequence[Any]) -> list[int]:
        """A code per (member id, instance id)."""
        consumer = self.consumers.get(group)
        if consumer is not None:
            return [self.consumers.remove(consumer, member, instance, self._now_ms()) for member, instance in members]
        results = self.groups.leave(group, [(member, instance) for member, instance in members], self._now_ms())
        self._look_again()
        return results

    def commit(
        self, group: str, member: str, instance: str | None, generation: int, places: Sequence[Any], version: int = 9
    ) -> int:
        """`places`: [topic, topic id (hex), partition, offset, leader epoch, metadata] each. All or nothing. `version` is that of
        OffsetCommit; `generation` is the epoch of a member of the consumer protocol."""
        code = self._may_commit(group, member, instance, generation, version)
        if code:
            return code
        return self._written(
            group, lambda: self.offsets.commit(group, [tuple(each) for each in places], self._wall_ms())
        )

    def commit_in_transaction(
        self, group: str, member: str, instance: str | None, generation: int, places: Sequence[Any],
        producer: Sequence[Any],
    ) -> MaybeDeferred[int]:  # fmt: skip
        """`places` as in `commit`; `producer`: what `verify` is asked about: [transactional id, producer id, epoch, second]."""
        code = self._may_commit(group, member, instance, generation, None)
        if code == codes.STALE_MEMBER_EPOCH:
            code = codes.ILLEGAL_GENERATION
        if code:
            return code
        producer_id = producer[1]
        ended = self._markers.get(producer_id, 0)

        def verified(code: int) -> int:
            if code:
                return code
            if self._markers.get(producer_id, 0) != ended:  # ended_transaction_stays_ended
                return codes.COORDINATOR_LOAD_IN_PROGRESS  # asked again, and refused if it is over
            offsets = [tuple(each) for each in places]
            return self._written(group, lambda: self.offsets.pend(group, producer_id, offsets, self._wall_ms()))

        return then(self._verify(producer, group), verified)

    def end_transaction(self, bucket: int, producer_id: int, epoch: int, commit: bool) -> list[int]:
        """The marker of a transaction: [a code]."""
        try:
            self.offsets.end_transaction(bucket, producer_id, commit=commit)
        except OSError as fault:
            log.error("a marker of committed offsets was not written", error=str(fault))
            return [codes.KAFKA_STORAGE_ERROR]
        self._markers[producer_id] = self._markers.pop(producer_id, 0) + 1
        if len(self._markers) > MARKERS_KEPT:
            del self._markers[next(iter(self._markers))]
        return [codes.NONE]

    def fetch(
        self, group: str, places: Sequence[Any] | None, stable: bool = False, member: str | None = None, epoch: int = -1
    ) -> list[Any]:
        """[a code, [topic, partition, offset, leader epoch, metadata, code] of each of `places` (None: of all) that was committed].

        `stable`: UNSTABLE_OFFSET_COMMIT for one that a transaction has committed which is not over (KIP-447). `member` and
        `epoch` are of one that reads its group's offsets, by KIP-848.
        """
        consumer = self.consumers.get(group)
        code = codes.NONE if consumer is None else consumer.may_fetch(member, epoch)
        return [code, [] if code else self._committed(group, places, stable=stable)]

    def _committed(self, group: str, places: Sequence[Any] | None, *, stable: bool) -> list[list[Any]]:
        held = self.offsets.of(group)
        wanted = held if places is None else [(topic, partition) for topic, partition in places]
        found: list[list[Any]] = []
        if stable and (pending := self.offsets.pending(group)):
            wanted = [*dict.fromkeys([*wanted, *pending])] if places is None else wanted
            found += [[*each, -1, -1, "", codes.UNSTABLE_OFFSET_COMMIT] for each in wanted if each in pending]
            wanted = [each for each in wanted if each not in pending]
        for topic, partition in wanted:
            committed = held.get((topic, partition))
            if committed is not None and self._is_current(topic, committed.topic_id):
                metadata = committed.metadata
                found.append([topic, partition, committed.offset, committed.leader_epoch, metadata, codes.NONE])
        return found

    def drop_offsets(self, group_id: str, places: Sequence[Any]) -> list[Any]:
        """[code of the group, a code per place]; topics in use by members keep their offsets (KIP-496)."""
        group, consumer = self.groups.get(group_id), self.consumers.get(group_id)
        is_unknown = (group is None or not group.members) and group_id not in self.offsets
        if is_unknown or self.shares.get(group_id) is not None:
            return [codes.GROUP_ID_NOT_FOUND, []]
        if group is not None and group.members and group.protocol_type != "consumer":
            return [codes.NON_EMPTY_GROUP, []]
        used = subscriptions(group) if group is not None else set()
        if consumer is not None:
            used = {topic for topic, _ in places if consumer.subscribes_to(topic, self.topics)}
        results = [codes.GROUP_SUBSCRIBED_TO_TOPIC if topic in used else codes.NONE for topic, _ in places]
        gone = [(topic, partition) for (topic, partition), code in zip(places, results, strict=True) if not code]
        code = self._written(group_id, lambda: self.offsets.drop(group_id, gone))
        return [code, [] if code else results]

    def describe(self, group_id: str) -> list[Any]:
        """[state, protocol type, protocol, members], [] for a group that there is not in the classic protocol; members as
        [id, instance id, client id, client host, metadata, assignment]."""
        group = self.groups.get(group_id)
        if group is None:
            if group_id not in self.offsets or self._has_members_kept(group_id):
                return []
            return [GroupState.EMPTY.value, self.offsets.generation(group_id)[1] or "", "", []]
        stable = group.state is GroupState.STABLE
        protocol = (group.protocol or "") if stable else ""
        members = [
            [m.id, m.instance_id, m.client_id, m.client_host, m.metadata(protocol), m.assignment]
            for m in group.members.values()
        ]
        return [group.state.value, group.protocol_type or "", protocol, members]

    def list(self) -> list[list[str]]:
        """[id, protocol type, state, type] of every group."""
        found = {group.id: [group.id, group.protocol_type or "", group.state.value, CLASSIC] for group in self.groups}
        found.update({group.id: [group.id, CONSUMER, group.state, CONSUMER] for group in self.consumers})
        found.update({group.id: [group.id, SHARE, group.state, SHARE] for group in self.shares})
        for group_id in self.offsets:
            if group_id not in found:
                kind = self.offsets.generation(group_id)[1] or ""
                found[group_id] = [group_id, kind, GroupState.EMPTY.value, CLASSIC]
        return [*found.values()]

    def delete(self, group_id: str) -> MaybeDeferred[int]:
        group = self.groups.get(group_id)
        if not self._is_known(group_id):
            return codes.GROUP_ID_NOT_FOUND
        share = self.shares.get(group_id)
        if share is not None:
            return self.share.delete(share, lambda: self._written(group_id, lambda: self._forget(group_id)))
        consumer = self.consumers.get(group_id)
        if (group is not None and (group.members or group.pending)) or (consumer is not None and consumer.members):
            return codes.NON_EMPTY_GROUP
        return self._written(group_id, lambda: self._forget(group_id))

    def reset(self) -> None:
        """Drops every group and all that was committed. Raises OSError."""
        self.groups.clear()
        self.consumers.clear()
        self.shares.clear()
        for group_id in self.offsets:
            self.offsets.forget(group_id)

    # --- expiry ------------------------------------------------------------------------------------------------

    async def expire(self) -> None:
        """Drops offsets of topics that are gone and of groups long empty, and groups of which nothing is left."""
        for count, group_id in enumerate({*self.offsets, *(group.id for group in self.groups)}):
            if count % EXPIRED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if self._written(group_id, partial(self._expire, group_id)):
                return  # a disk that takes nothing is asked again at the next check

    def _expire(self, group_id: str) -> None:
        share = self.shares.get(group_id)
        if share is not None:
            self.shares.forget_topics(
                share, lambda topic_id: self._image.topics.by_id(uuid.UUID(hex=topic_id)) is not None
            )
            return
        retention_ms = self._image.get("offsets.retention.minutes") * _MINUTE_MS
        now_ms, oldest_ms = self._now_ms(), self._wall_ms() - retention_ms
        group, consumer = self.groups.get(group_id), self.consumers.get(group_id)
        empty = (group is None or (group.state is GroupState.EMPTY and not group.pending)) and not (
            consumer is not None and consumer.members
        )
        changed_ms = max((each.changed_ms for each in (group, consumer) if each is not None), default=None)
        long_empty = empty and (changed_ms is None or changed_ms <= now_ms - retention_ms)
        held = self.offsets.of(group_id)
        gone = [
            each
            for each, committed in held.items()
            if not self._is_current(each[0], committed.topic_id) or (long_empty and committed.committed_ms < oldest_ms)
        ]
        idle = changed_ms is None or changed_ms <= now_ms - IDLE_GROUP_MS
        if empty and idle and len(gone) == len(held) and not self.offsets.pending(group_id):
            self._forget(group_id)
        else:
            self.offsets.drop(group_id, gone)

    # --- all protocols ---------------------------------------------------------------------------------------------

    def _is_known(self, group_id: str) -> bool:
        """Whether there is a group of any protocol by that id."""
        return self.groups.get(group_id) is not None or group_id in self.offsets

    def _has_members_kept(self, group_id: str) -> bool:
        """Whether it is a group of another than the classic protocol."""
        return self.consumers.get(group_id) is not None or self.shares.get(group_id) is not None

    def _may_commit(self, group: str, member: str, instance: str | None, generation: int, version: int | None) -> int:
        """`version` is that of OffsetCommit; None: in a transaction."""
        consumer = self.consumers.get(group)
        if consumer is not None:
            return consumer.may_commit(member, instance, generation, version)
        if self.shares.get(group) is not None:
            return codes.GROUP_ID_NOT_FOUND
        code = self.groups.may_commit(group, member, instance, generation, self._now_ms())
        if code != codes.ILLEGAL_GENERATION or self.groups.get(group) is not None:
            return code
        if group in self.offsets:
            return codes.UNKNOWN_MEMBER_ID  # it has offsets, and no members
        return codes.GROUP_ID_NOT_FOUND if version is not None and version >= GROUP_NOT_FOUND_SINCE else code

    def _make_way(self, group_id: str) -> bool:
        """Whether no group of the classic protocol is in the way of one of the consumer protocol (one_protocol_per_group)."""
        group = self.groups.get(group_id)
        if (group is not None and group.members) or self.shares.get(group_id) is not None:
            return False
        self.groups.forget(group_id)
        return True

    def _make_classic(self, group_id: str, *, asks_for_id: bool) -> int:
        """NONE if a member of the classic protocol may join (one_protocol_per_group). One that only asks for its id converts
        nothing yet."""
        consumer = self.consumers.get(group_id)
        if self.shares.get(group_id) is not None:
            return codes.INCONSISTENT_GROUP_PROTOCOL
        if consumer is None:
            return codes.NONE
        if consumer.members:
            return codes.INCONSISTENT_GROUP_PROTOCOL
        if asks_for_id:
            return codes.NONE
        if self._written(group_id, lambda: self.offsets.convert(group_id)):
            return codes.COORDINATOR_NOT_AVAILABLE
        self.consumers.drop(group_id)
        return codes.NONE

    def _remember(self, group: str, generation: int, protocol_type: str | None) -> None:
        try:
            self.offsets.remember(group, generation, protocol_type)
        except OSError as fault:
            # A generation is worth keeping, but no reason to keep a group from working.
            log.error("a generation was not written", group=group, error=str(fault))

    def _written(self, group: str, change: Callable[[], None]) -> int:
        """NONE, or KAFKA_STORAGE_ERROR if `change` could not be written (storage_error_changes_nothing)."""
        try:
            change()
        except OSError as fault:
            log.error("a change of committed offsets was not written", group=group, error=str(fault))
            return codes.KAFKA_STORAGE_ERROR
        return codes.NONE

    def _forget(self, group: str) -> None:
        self.offsets.forget(group)
        self.groups.forget(group)
        self.consumers.drop(group)
        self.shares.drop(group)

    def _is_current(self, topic: str, topic_id: str) -> bool:
        found = self._image.topics.get(topic)
        return found is not None and found.id.hex == topic_id

    def _look_again(self) -> None:
        """Something may be due earlier than `run` sleeps."""
        due_ms = self._next_deadline_ms()
        if due_ms is not None and due_ms < self._asleep_until_ms:
            self._wake.set()

    def _next_deadline_ms(self) -> int | None:
        due = (each.next_deadline_ms() for each in (self.groups, self.consumers, self.shares))
        return min((each for each in due if each is not None), default=None)
