"""The home of committed offsets: of the groups of this shard, as other shards and handlers ask it.

ended_transaction_stays_ended
    Offsets are committed in a transaction only if its coordinator said that it has this group, and no marker of the
    producer came since it was asked: what a marker has ended does not begin again (KIP-890).

Source: OffsetMetadataManager of Kafka 4.1.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from broker.kafka.groups.classic.consumer_protocol import subscriptions
from broker.kafka.groups.committed_offsets import CommittedOffsets
from broker.kafka.groups.shard_groups import ShardGroups
from broker.kafka.security.access import Access
from broker.runtime.logger import Logger
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then

GROUP_NOT_FOUND_SINCE = 9  # of OffsetCommit
MARKERS_KEPT = 10_000
"""Producers whose markers are counted; of one that is forgotten, a commit that is being verified is asked for again."""

CommittedPlace: TypeAlias = tuple[str, str, int, int, int, str]
"""(topic, its id in hex, partition, offset, leader epoch, metadata)."""
ProducerOfOffsets: TypeAlias = tuple[str, int, int, bool]
"""(transactional id, producer id, epoch, whether by the second version of the protocol)."""
FetchedPlace: TypeAlias = tuple[str, int, int, int, str, int]
"""(topic, partition, offset, leader epoch, metadata, code)."""

Verify = Callable[[ProducerOfOffsets, str], MaybeDeferred[int]]
"""(the producer, group) -> a code."""

log = Logger()


class FetchedOffsets(NamedTuple):
    code: int
    places: list[FetchedPlace]


class DroppedOffsets(NamedTuple):
    """The code of the group, and one for each place."""

    code: int
    codes: list[int]


class OffsetsHome(ShardGroups):
    """The groups of one shard as those that commit offsets see them. `verify` asks the coordinator of a transaction whether a
    group belongs to it; `wall_ms` is the time of day."""

    def __init__(
        self,
        offsets: CommittedOffsets,
        image: ClusterImage,
        *,
        verify: Verify,
        access: Access | None,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(offsets, image, access=access, now_ms=now_ms)
        self._verify = verify
        self._wall_ms = wall_ms
        self._markers: dict[int, int] = {}  # producer id -> how many of its transactions were ended here

    def commit(
        self,
        group: str,
        member: str,
        instance: str | None,
        generation: int,
        places: Sequence[CommittedPlace],
        version: int = 9,
    ) -> int:
        """All or nothing. `version` is that of
        OffsetCommit; `generation` is the epoch of a member of the consumer protocol."""
        code = self._may_commit(group, member, instance, generation, version, places)
        if code:
            return code
        return self._written(
            group,
            lambda: self.offsets.commit(group, _as_tuples(places), self._wall_ms()),
        )

    def commit_in_transaction(
        self, group: str, member: str, instance: str | None, generation: int,
        places: Sequence[CommittedPlace], producer: ProducerOfOffsets,
    ) -> MaybeDeferred[int]:  # fmt: skip
        """`producer`: what `verify` is asked about."""
        code = self._may_commit(group, member, instance, generation, None, places)
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
            offsets = _as_tuples(places)
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
        self,
        group: str,
        places: Sequence[tuple[str, int]] | None,
        stable: bool = False,
        member: str | None = None,
        epoch: int = -1,
    ) -> FetchedOffsets:
        """The committed offsets of `places` (None: of all).

        `stable`: UNSTABLE_OFFSET_COMMIT for an offset that an open transaction has committed (KIP-447). `member` and `epoch`:
        of a member that reads its group's offsets (KIP-848).
        """
        kept = self.consumers.get(group) or self.streams.get(group)
        code = codes.NONE if kept is None else kept.may_fetch(member, epoch)
        return FetchedOffsets(code, [] if code else self._committed(group, places, stable=stable))

    def _committed(self, group: str, places: Sequence[tuple[str, int]] | None, *, stable: bool) -> list[FetchedPlace]:
        held = self.offsets.of(group)
        wanted = held if places is None else [(topic, partition) for topic, partition in places]
        found: list[FetchedPlace] = []
        if stable and (pending := self.offsets.pending(group)):
            wanted = [*dict.fromkeys([*wanted, *pending])] if places is None else wanted
            found += [(*each, -1, -1, "", codes.UNSTABLE_OFFSET_COMMIT) for each in wanted if each in pending]
            wanted = [each for each in wanted if each not in pending]
        for topic, partition in wanted:
            committed = held.get((topic, partition))
            if committed is not None and self._is_current(topic, committed.topic_id):
                metadata = committed.metadata
                found.append((topic, partition, committed.offset, committed.leader_epoch, metadata, codes.NONE))
        return found

    def drop_offsets(self, group_id: str, places: Sequence[tuple[str, int]]) -> DroppedOffsets:
        """Topics in use by members keep their offsets (KIP-496)."""
        group, consumer = self.groups.get(group_id), self.consumers.get(group_id)
        is_unknown = (group is None or not group.members) and group_id not in self.offsets
        if is_unknown or self.shares.get(group_id) is not None:
            return DroppedOffsets(codes.GROUP_ID_NOT_FOUND, [])
        if group is not None and group.members and group.protocol_type != "consumer":
            return DroppedOffsets(codes.NON_EMPTY_GROUP, [])
        used = subscriptions(group) if group is not None else set()
        if consumer is not None:
            used = {topic for topic, _ in places if consumer.subscribes_to(topic, self.topics)}
        streams = self.streams.get(group_id)
        if streams is not None:
            used = {topic for topic, _ in places if streams.subscribes_to(topic)}
        results = [codes.GROUP_SUBSCRIBED_TO_TOPIC if topic in used else codes.NONE for topic, _ in places]
        gone = [(topic, partition) for (topic, partition), code in zip(places, results, strict=True) if not code]
        code = self._written(group_id, lambda: self.offsets.drop(group_id, gone))
        return DroppedOffsets(code, [] if code else results)

    def _may_commit(
        self,
        group: str,
        member: str,
        instance: str | None,
        generation: int,
        version: int | None,
        places: Sequence[CommittedPlace],
    ) -> int:
        """`version` is that of OffsetCommit; None: in a transaction."""
        streams = self.streams.get(group)
        if streams is not None:
            return streams.may_commit(member, generation, [(each[0], each[2]) for each in places], version)
        consumer = self.consumers.get(group)
        if consumer is not None:
            return consumer.may_commit(member, instance, generation, version, [(each[1], each[2]) for each in places])
        if self.shares.get(group) is not None:
            return codes.GROUP_ID_NOT_FOUND
        code = self.groups.may_commit(group, member, instance, generation, self._now_ms())
        if code != codes.ILLEGAL_GENERATION or self.groups.get(group) is not None:
            return code
        if group in self.offsets:
            return codes.UNKNOWN_MEMBER_ID  # the group has offsets, and no members
        return codes.GROUP_ID_NOT_FOUND if version is not None and version >= GROUP_NOT_FOUND_SINCE else code


def _as_tuples(places: Sequence[CommittedPlace]) -> list[CommittedPlace]:
    """Committed places as tuples, from the lists that msgpack carried."""
    return [(topic, i, number, offset, epoch, metadata) for topic, i, number, offset, epoch, metadata in places]
