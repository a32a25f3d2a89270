"""The groups whose home is this shard, with their clock and their files.

Every operation takes and returns what msgpack carries, so a call from another shard and one from here are the same.
Joins and syncs may be answered later; all else is answered at once. A shard that is killed forgets its groups' members
and keeps their offsets: the members are told UNKNOWN_MEMBER_ID and join again. Its successor answers other shards only
from when `run` has begun: before, it does not know the topics, and would say that nothing was ever committed.

C1  An operation whose change can't be written answers KAFKA_STORAGE_ERROR, and nothing has changed.
C2  Offsets are committed in a transaction only if its coordinator said that it has this group, and no marker of the
    producer came since it was asked: what a marker has ended does not begin again (KIP-890).

Source: GroupCoordinatorService, GroupMetadataManager, OffsetMetadataManager of Kafka 4.1.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import structlog
import trio

from broker.groups.committed_offsets import CommittedOffsets
from broker.groups.consumer_protocol import subscriptions
from broker.groups.group_table import GroupTable
from broker.groups.members import GroupConfig, JoinRequest
from broker.groups.rebalance import GroupState
from broker.protocol import codes
from shards.config.image import ClusterImage
from shards.mesh.deferred import Deferred, MaybeDeferred, then

OPERATIONS = (
    "join", "sync", "heartbeat", "leave", "commit", "commit_in_transaction", "fetch", "drop_offsets", "describe", "list",
    "delete",
)  # fmt: skip
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

log = structlog.get_logger(__name__)


class GroupCalls(Protocol):
    """The part of shards.mesh.mesh.Mesh that groups need."""

    def call(self, key: Any, method: str, *args: Any, timeout_s: float = ...) -> Deferred[Any]: ...

    def serve(self, method: str, function: Callable[..., Any]) -> None: ...


class GroupCoordinator:
    """The groups of one shard. `now_ms` is a clock that only goes forward, `wall_ms` the time of day."""

    def __init__(
        self,
        offsets: CommittedOffsets,
        image: ClusterImage,
        *,
        now_ms: Callable[[], int] = lambda: int(trio.current_time() * 1000),
        wall_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self.offsets = offsets
        self._image = image
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self.groups = GroupTable(
            limits=self._limits,
            new_id=lambda: str(uuid.uuid4()),
            past=offsets.generation,
            remember=self._remember,
            on_fault=lambda group, fault: log.error("a group was ended by a mistake", group=group, exc_info=fault),
        )
        self.verify: Verify = lambda *_: codes.COORDINATOR_NOT_AVAILABLE
        """Asks the coordinator of a transaction whether a group belongs to it; set by who knows where that is."""
        self._markers: dict[int, int] = {}  # producer id -> how many of its transactions were ended here
        self._open: Deferred[None] = Deferred()
        self._wake = trio.Event()
        self._asleep_until_ms: float = 0

    async def run(self) -> None:
        """Meets the groups' deadlines and drops what has expired, until cancelled. Begun when the image holds the cluster."""
        self._open.resolve(None)
        check_ms = self._now_ms() + int(EXPIRY_CHECK_S * 1000)
        while True:
            due_ms = self.groups.next_deadline_ms()
            self._asleep_until_ms = check_ms if due_ms is None else min(check_ms, due_ms)
            self._wake = trio.Event()
            with trio.move_on_after(max(0.0, (self._asleep_until_ms - self._now_ms()) / 1000)):
                await self._wake.wait()
            now_ms = self._now_ms()
            self.groups.tick(now_ms)
            if now_ms >= check_ms:
                await self.expire()
                check_ms = now_ms + int(EXPIRY_CHECK_S * 1000)

    def serve_on(self, mesh: GroupCalls) -> None:
        """Offers the operations to the other shards, as `group.<operation>`."""
        for operation in OPERATIONS:
            mesh.serve(f"group.{operation}", partial(self._serve, getattr(self, operation)))

    def _serve(self, function: Callable[..., Any], peer: Any, *args: Any) -> Any:
        return function(*args) if self._open.resolved else self._open.then(lambda _: function(*args))

    # --- operations --------------------------------------------------------------------------------------------

    def join(self, group: str, fields: Sequence[Any]) -> MaybeDeferred[Any]:
        """`fields` of a JoinRequest -> fields of a JoinGroupResult."""
        answer: Deferred[Any] = Deferred()
        request = JoinRequest(*fields)
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
        self.groups.sync(
            group, member, instance, generation, (protocol[0], protocol[1]), shares, answer.resolve, self._now_ms()
        )
        self._look_again()
        return answer.result() if answer.resolved else answer

    def heartbeat(self, group: str, member: str, instance: str | None, generation: int) -> int:
        return self.groups.heartbeat(group, member, instance, generation, self._now_ms())

    def leave(self, group: str, members: Sequence[Any]) -> list[int]:
        """A code per (member id, instance id)."""
        results = self.groups.leave(group, [(member, instance) for member, instance in members], self._now_ms())
        self._look_again()
        return results

    def commit(self, group: str, member: str, instance: str | None, generation: int, places: Sequence[Any]) -> int:
        """`places`: [topic, topic id (hex), partition, offset, leader epoch, metadata] each. All or nothing."""
        code = self.groups.may_commit(group, member, instance, generation, self._now_ms())
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
        code = self.groups.may_commit(group, member, instance, generation, self._now_ms())
        if code:
            return code
        producer_id = producer[1]
        ended = self._markers.get(producer_id, 0)

        def verified(code: int) -> int:
            if code:
                return code
            if self._markers.get(producer_id, 0) != ended:
                return codes.COORDINATOR_LOAD_IN_PROGRESS  # C2: the client asks again, and is refused if it is over
            offsets = [tuple(each) for each in places]
            return self._written(group, lambda: self.offsets.pend(group, producer_id, offsets, self._wall_ms()))

        return then(self.verify(producer, group), verified)

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

    def fetch(self, group: str, places: Sequence[Any] | None, stable: bool = False) -> list[list[Any]]:
        """[topic, partition, offset, leader epoch, metadata, code] of each of `places` (None: of all) that was committed.

        `stable`: UNSTABLE_OFFSET_COMMIT for one that a transaction has committed which is not over (KIP-447).
        """
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
        group = self.groups.get(group_id)
        if (group is None or not group.members) and group_id not in self.offsets:
            return [codes.GROUP_ID_NOT_FOUND, []]
        if group is not None and group.members and group.protocol_type != "consumer":
            return [codes.NON_EMPTY_GROUP, []]
        used = subscriptions(group) if group is not None else set()
        results = [codes.GROUP_SUBSCRIBED_TO_TOPIC if topic in used else codes.NONE for topic, _ in places]
        gone = [(topic, partition) for (topic, partition), code in zip(places, results, strict=True) if not code]
        code = self._written(group_id, lambda: self.offsets.drop(group_id, gone))
        return [code, [] if code else results]

    def describe(self, group_id: str) -> list[Any]:
        """[state, protocol type, protocol, members], [] for a group that does not exist; members as
        [id, instance id, client id, client host, metadata, assignment]."""
        group = self.groups.get(group_id)
        if group is None:
            if group_id not in self.offsets:
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
        """[id, protocol type, state] of every group."""
        found = {group.id: [group.id, group.protocol_type or "", group.state.value] for group in self.groups}
        for group_id in self.offsets:
            if group_id not in found:
                found[group_id] = [group_id, self.offsets.generation(group_id)[1] or "", GroupState.EMPTY.value]
        return [*found.values()]

    def delete(self, group_id: str) -> int:
        group = self.groups.get(group_id)
        if group is None and group_id not in self.offsets:
            return codes.GROUP_ID_NOT_FOUND
        if group is not None and (group.members or group.pending):
            return codes.NON_EMPTY_GROUP
        return self._written(group_id, lambda: self._forget(group_id))

    def reset(self) -> None:
        """Drops every group and all that was committed. Raises OSError."""
        self.groups.clear()
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
        retention_ms = self._image.get("offsets.retention.minutes") * _MINUTE_MS
        now_ms, oldest_ms = self._now_ms(), self._wall_ms() - retention_ms
        group = self.groups.get(group_id)
        empty = group is None or (group.state is GroupState.EMPTY and not group.pending)
        long_empty = empty and (group is None or group.changed_ms <= now_ms - retention_ms)
        held = self.offsets.of(group_id)
        gone = [
            each
            for each, committed in held.items()
            if not self._is_current(each[0], committed.topic_id) or (long_empty and committed.committed_ms < oldest_ms)
        ]
        idle = group is None or group.changed_ms <= now_ms - IDLE_GROUP_MS
        if empty and idle and len(gone) == len(held) and not self.offsets.pending(group_id):
            self._forget(group_id)
        else:
            self.offsets.drop(group_id, gone)

    # --- small parts -------------------------------------------------------------------------------------------

    def _limits(self) -> GroupConfig:
        get = self._image.get
        return GroupConfig(
            get("group.min.session.timeout.ms"),
            get("group.max.session.timeout.ms"),
            get("group.max.size"),
            get("group.initial.rebalance.delay.ms"),
        )

    def _remember(self, group: str, generation: int, protocol_type: str | None) -> None:
        try:
            self.offsets.remember(group, generation, protocol_type)
        except OSError as fault:
            # A generation is worth keeping, but no reason to keep a group from working.
            log.error("a generation was not written", group=group, error=str(fault))

    def _written(self, group: str, change: Callable[[], None]) -> int:
        """NONE, or KAFKA_STORAGE_ERROR if `change` could not be written (C1)."""
        try:
            change()
        except OSError as fault:
            log.error("a change of committed offsets was not written", group=group, error=str(fault))
            return codes.KAFKA_STORAGE_ERROR
        return codes.NONE

    def _forget(self, group: str) -> None:
        self.offsets.forget(group)
        self.groups.forget(group)

    def _is_current(self, topic: str, topic_id: str) -> bool:
        found = self._image.topics.get(topic)
        return found is not None and found.id.hex == topic_id

    def _look_again(self) -> None:
        """Something may be due earlier than `run` sleeps."""
        due_ms = self.groups.next_deadline_ms()
        if due_ms is not None and due_ms < self._asleep_until_ms:
            self._wake.set()
