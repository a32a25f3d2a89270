"""Committed offsets and the last generation of each group: all in memory, and in files of the broker.

A group's records go to the file of its bucket, DIR/<bucket>.offsets. That is its partition of __consumer_offsets.
A bucket has one home among the broker's shards, so each file has one writer, and the number of shards may change between
starts. A body is one of these, packed by msgpack:

    [GENERATION, group, n, protocol type]                      so that generations keep rising after a restart
    [COMMIT, group, time ms, [[topic, id, [[partition, offset, leader epoch, metadata], ...]], ...]]
    [DROP, group, [[topic, partition], ...]]
    [FORGET, group]                                            the group is gone: a tombstone
    [PEND, group, time ms, topics as in COMMIT, producer id]   committed in a transaction: pending_offsets.py
    [END, "", producer id, whether committed]                  the marker of a transaction, for all groups of the bucket
    [MEMBERS, group, row of the group, {member: row or None}]  of the consumer protocol: consumer/records.py; row None: no more
    [SHARE, group, row of the group, {member: row or None}]    of a share group: share/records.py
    [STREAMS, group, row of the group, {member: row or None}]  of a streams group: streams/records.py
    [CLASSIC, group, row of the group, {member: row or None}]  of the classic protocol: classic/records.py

Files and memory agree as broker/storage/record_file.py says (file_gives_memory); an entry is an offset, a member or a
generation.

Source: GroupMetadataManager, OffsetMetadataManager, CoordinatorRecordHelpers of Kafka 4.1.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from broker.kafka.groups.pending_offsets import PendingOffsets
from broker.kafka.groups.stored_group import StoredGroup
from broker.runtime import collector
from broker.storage.record_file import CompactedFile
from broker.storage.topic_partition import TopicPartition
from shards.ownership import PARTITIONS, bucket_of

GENERATION, COMMIT, DROP, FORGET, PEND, END, MEMBERS, SHARE, STREAMS, CLASSIC = range(10)
WITH_MEMBERS = MEMBERS, SHARE, STREAMS, CLASSIC
"""Records of a group that is stored with its members."""


class OffsetAndMetadata(NamedTuple):
    """`topic_id` (hex) ties it to one incarnation of the topic: an offset of a deleted topic is never given out."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    topic_id: str


@dataclass(slots=True, eq=False)
class GroupOffsets:
    """The records of a group: committed offsets, the last generation, and `stored` of a group that is stored with its members."""

    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    generation: int = 0
    protocol_type: str | None = None
    stored: StoredGroup | None = None

    @property
    def entries(self) -> int:
        return len(self.offsets) + 1 + (len(self.stored.members) if self.stored is not None else 0)


class OffsetsFile(CompactedFile):
    """The groups of one bucket. `version` rises with every change."""

    holds = "committed offsets"

    def __init__(self, path: Path) -> None:
        self.groups: dict[str, GroupOffsets] = {}
        self.pending: PendingOffsets[OffsetAndMetadata] = PendingOffsets()
        self.version = 0
        self._live = 0
        super().__init__(path)

    @property
    def live(self) -> int:
        return self._live + self.pending.entries

    def entries(self, body: Sequence[Any]) -> int:
        kind = body[0]
        if kind in (COMMIT, PEND):
            return sum(len(parts) for _, _, parts in body[3])
        if kind == DROP:
            return len(body[2])
        return 1 + len(body[3]) if kind in WITH_MEMBERS else 1

    def apply(self, body: Sequence[Any]) -> None:
        kind, group = body[0], body[1]
        self.version += 1
        if kind == END:
            self._end(body[2], commit=body[3])
            return
        known = self.groups.get(group)
        if kind == FORGET:
            self.pending.forget(group)
            if known is not None:
                del self.groups[group]
                self._live -= known.entries
            return
        if known is None:
            known = self.groups[group] = GroupOffsets()
            self._live += 1
        held = known.entries
        if kind == COMMIT:
            _commit(known.offsets, body[2], body[3])
        elif kind == GENERATION:
            known.generation, known.protocol_type = body[2], body[3]
        elif kind == DROP:
            for topic, partition in body[2]:
                known.offsets.pop((topic, partition), None)
        elif kind == PEND:
            _commit(self.pending.of(body[4], group), body[2], body[3])
            self.pending.count()
        elif kind in WITH_MEMBERS:
            known.stored = _updated(known.stored, kind, body[2], body[3])
        self._live += known.entries - held

    def _end(self, producer_id: int, *, commit: bool) -> None:
        """Puts the offsets of a transaction in the place of those that were committed before it, and not of later ones."""
        for group, offsets in self.pending.end(producer_id).items():
            known = self.groups[group]
            held = len(known.offsets)
            for place, each in offsets.items() if commit else ():
                present = known.offsets.get(place)
                if present is None or present.committed_ms <= each.committed_ms:
                    known.offsets[place] = each
            self._live += len(known.offsets) - held

    def snapshot(self) -> Iterator[list[object]]:
        for group, held in self.groups.items():
            yield from _snapshot(group, held)
        for producer_id, group, offsets in self.pending:
            for now_ms, topics in _by_time(offsets):
                yield [PEND, group, now_ms, topics, producer_id]


class LastGeneration(NamedTuple):
    """A group's last generation (0 if it never had one), and its protocol type."""

    generation: int
    protocol_type: str | None


class BucketOffsets(NamedTuple):
    """The groups of a bucket, and a number that rises with every change of them."""

    version: int
    groups: Mapping[str, GroupOffsets]


class CommittedOffsets:
    """The groups of one shard: `owns(bucket)` says which buckets have their home here.

    A change raises OSError if it can't be written; everything is then as it was before.
    """

    def __init__(self, directory: Path, owns: Callable[[int], bool] = lambda _: True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        with collector.paused():
            self._buckets = {n: OffsetsFile(directory / f"{n:02d}.offsets") for n in range(PARTITIONS) if owns(n)}

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.close()

    # --- reading -----------------------------------------------------------------------------------------------

    def __contains__(self, group: str) -> bool:
        return self._find(group) is not None

    def __iter__(self) -> Iterator[str]:
        return iter([group for bucket in self._buckets.values() for group in bucket.groups])

    def of(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of a group, in the order of the first commits; not to be changed."""
        found = self._find(group)
        return found.offsets if found is not None else {}

    def pending(self, group: str) -> set[TopicPartition]:
        """The partitions whose offsets a transaction that is not over has committed."""
        return self._buckets[bucket_of(group)].pending.places(group)

    def generation(self, group: str) -> LastGeneration:
        """(the last generation, protocol type) of a group; (0, None) if it never had one."""
        found = self._find(group)
        return LastGeneration(found.generation, found.protocol_type) if found is not None else LastGeneration(0, None)

    def stored_group(self, group: str, kind: int) -> StoredGroup | None:
        """A group with its members as it was last written; `kind` is one of WITH_MEMBERS; None: it is none of these."""
        found = self._find(group)
        return found.stored if found is not None and found.stored is not None and found.stored.kind == kind else None

    def in_bucket(self, bucket: int) -> BucketOffsets:
        """(a number that rises with every change, the groups of a bucket); of a bucket whose home is here."""
        found = self._buckets[bucket]
        return BucketOffsets(found.version, found.groups)

    def _find(self, group: str) -> GroupOffsets | None:
        return self._buckets[bucket_of(group)].groups.get(group)

    # --- changes -----------------------------------------------------------------------------------------------

    def commit(self, group: str, offsets: Iterable[tuple[str, str, int, int, int, str]], now_ms: int) -> None:
        """`offsets`: (topic, topic id, partition, offset, leader epoch, metadata) each. All of them or none."""
        topics = _by_topic(offsets)
        if topics:
            self._append(group, [COMMIT, group, now_ms, topics])

    def pend(
        self, group: str, producer_id: int, offsets: Iterable[tuple[str, str, int, int, int, str]], now_ms: int
    ) -> None:
        """As `commit`, in a transaction: the offsets are seen once it is committed."""
        topics = _by_topic(offsets)
        if topics:
            self._append(group, [PEND, group, now_ms, topics, producer_id])

    def end_transaction(self, bucket: int, producer_id: int, *, commit: bool) -> None:
        """The marker of a transaction that may have offsets in groups of a bucket."""
        self._write(self._buckets[bucket], [END, "", producer_id, commit])

    def store_generation(self, group: str, generation: int, protocol_type: str | None) -> None:
        self._append(group, [GENERATION, group, generation, protocol_type])

    def store_group(
        self, group: str, kind: int, row: Sequence[object], members: Mapping[str, Sequence[object] | None]
    ) -> None:
        """Writes the change of a group with members, `kind` is one of WITH_MEMBERS: its row, and those of the members that
        changed."""
        self._append(group, [kind, group, row, members])

    def forget_members(self, group: str) -> None:
        """A group of any protocol is stored with its members no more; its offsets stay."""
        self._append(group, [MEMBERS, group, None, {}])

    def drop(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        held = self.of(group)
        gone = [list(each) for each in partitions if each in held]
        if gone:
            self._append(group, [DROP, group, gone])

    def forget(self, group: str) -> None:
        """The group and all of its offsets are gone."""
        if group in self:
            self._append(group, [FORGET, group])

    def _append(self, group: str, body: list[object]) -> None:
        self._write(self._buckets[bucket_of(group)], body)

    def _write(self, file: OffsetsFile, body: list[object]) -> None:
        file.append(body, partial(file.apply, body))


def _updated(
    known: StoredGroup | None, kind: int, row: Sequence[object] | None, members: Mapping[str, Sequence[object] | None]
) -> StoredGroup | None:
    if row is None:
        return None
    known = known if known is not None and known.kind == kind else StoredGroup(kind)
    known.apply(row, members)
    return known


def _by_topic(offsets: Iterable[tuple[str, str, int, int, int, str]]) -> list[list[object]]:
    topics: dict[tuple[str, str], list[tuple[int, int, int, str]]] = {}
    for topic, topic_id, partition, offset, leader_epoch, metadata in offsets:
        topics.setdefault((topic, topic_id), []).append((partition, offset, leader_epoch, metadata))
    return [[*key, parts] for key, parts in topics.items()]


def _commit(offsets: dict[TopicPartition, OffsetAndMetadata], now_ms: int, topics: Iterable[Any]) -> None:
    """Notes the offsets of a COMMIT record."""
    for topic, topic_id, parts in topics:
        # Most groups commit to the same few topics: one string for all, not one for each group.
        topic, topic_id = sys.intern(topic), sys.intern(topic_id)
        for partition, offset, leader_epoch, metadata in parts:
            offsets[topic, partition] = OffsetAndMetadata(offset, leader_epoch, metadata, now_ms, topic_id)


def _snapshot(group: str, held: GroupOffsets) -> Iterator[list[object]]:
    yield [GENERATION, group, held.generation, held.protocol_type]
    if held.stored is not None:
        yield [held.stored.kind, group, held.stored.row, held.stored.members]
    for now_ms, topics in _by_time(held.offsets):
        yield [COMMIT, group, now_ms, topics]


def _by_time(offsets: dict[TopicPartition, OffsetAndMetadata]) -> Iterator[tuple[int, list[list[object]]]]:
    """(time of the commit, its topics as in a COMMIT) of what was committed at one time."""
    by_time: dict[int, list[tuple[str, str, int, int, int, str]]] = {}
    for (topic, partition), c in offsets.items():
        by_time.setdefault(c.committed_ms, []).append(
            (topic, c.topic_id, partition, c.offset, c.leader_epoch, c.metadata)
        )
    for now_ms, places in by_time.items():
        yield now_ms, _by_topic(places)
