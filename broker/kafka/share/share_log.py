"""The share partitions of one shard: all in memory, and in SHARE_PARTITIONS files of the broker.

Those of a group go to the file of its bucket, DIR/<bucket>.share, as Kafka's go to one partition of __share_group_state. A bucket
has one home among the broker's shards, so each file has one writer, and the number of shards may change between starts. A body is
one of these, packed by msgpack:

    [WHOLE, group, topic id, partition, start offset, [[first, last, state, delivery count], ...]]
    [CHANGE, the same]                     runs that have changed; the others are as they were
    [FORGET, group, topic id or None]      of that topic, or of all

P1  A file's sound frames, in order, give what memory holds of its groups (broker/storage/record_file.py), but for who has
    acquired what: after a restart that is available, with the deliveries that it had.
P2  After a failed write file and memory are as they were before it.
P3  A file holds at most MAX_WASTE times as many entries (partitions and runs) as its groups do, or COMPACT_BYTES.

Kafka keeps no acquisitions, so there a delivery does not count that a broker's end has cut short; here it does.
Source: ShareCoordinatorShard, PersisterStateBatchCombiner of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgpack

from broker.kafka.share.in_flight import RecordState, Run
from broker.kafka.share.share_partition import SharePartition
from broker.kafka.share.share_session import Place
from broker.runtime.logger import Logger
from broker.storage.record_file import OffsetsLog, frame
from shards.ownership import PARTITIONS, partition_of

WHOLE, CHANGE, FORGET = range(3)
SHARE_PARTITIONS = PARTITIONS
"""Kafka's default of share.coordinator.state.topic.num.partitions; here it can't be set."""
COMPACT_BYTES = 1 << 20
MAX_WASTE = 4

log = Logger()

Kept: TypeAlias = tuple[int, Sequence[Run]]
"""A start offset, and the runs in flight."""


class ShareKey(NamedTuple):
    group: str
    place: Place


class _Bucket:
    """The groups of one file, and how many entries it holds (P3)."""

    def __init__(self, path: Path) -> None:
        self.log = OffsetsLog(path)
        self.groups: dict[str, dict[Place, SharePartition]] = {}
        self.written = 0
        self.log.load(self._load)
        self.compact_at = COMPACT_BYTES

    @property
    def live(self) -> int:
        return sum(1 + len(each.runs) for places in self.groups.values() for each in places.values())

    def append(self, body: list[Any]) -> None:
        """Raises OSError."""
        self.log.append(msgpack.packb(body))
        self.written += _entries(body)
        if self.log.size > self.compact_at:
            self._compact()

    def forget(self, group: str, topic_id: str | None) -> None:
        places = self.groups.get(group, {})
        for place in [each for each in places if topic_id in (None, each.topic_id)]:
            del places[place]
        if not places:
            self.groups.pop(group, None)

    def _load(self, packed: bytes) -> None:
        try:
            body = msgpack.unpackb(packed)
            if not isinstance(body[1], str):
                raise TypeError(f"a group called {body[1]!r}")
            self.written += _entries(body)
            if body[0] == FORGET:
                self.forget(body[1], body[2])
            else:
                self._put(*body)
        except (TypeError, ValueError, IndexError) as fault:  # sound, but of another kind: of a later version, perhaps
            log.warning("a record of a share partition makes no sense", file=str(self.log.path), error=str(fault))

    def _put(self, kind: int, group: str, topic_id: str, partition: int, start: int, rows: Any) -> None:
        runs = [Run(first, last, _kept_state(state), deliveries) for first, last, state, deliveries in rows]
        known = self.groups.setdefault(group, {}).setdefault(Place(topic_id, partition), SharePartition(start))
        if kind == WHOLE:
            known.reset(start)
        known.restore(start, runs)

    def _compact(self) -> None:
        """Writes what is known into a new file. A disk that does not take it is asked again much later."""
        live = self.live
        if self.written <= MAX_WASTE * live:
            self.compact_at = self.log.size + COMPACT_BYTES
            return
        try:
            self.log.replace(
                frame(msgpack.packb(_body(WHOLE, ShareKey(group, place), (each.start_offset, each.runs))))
                for group, places in self.groups.items()
                for place, each in places.items()
            )
            self.written = live
            self.compact_at = COMPACT_BYTES
        except OSError as fault:
            self.compact_at = 2 * self.log.size
            log.warning("share partitions were not compacted", file=str(self.log.path), error=str(fault))


class ShareLog:
    """`owns(bucket)` says which buckets have their home here. A change raises OSError if it can't be written."""

    def __init__(self, directory: Path, owns: Callable[[int], bool] = lambda _: True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._buckets = {n: _Bucket(directory / f"{n:02d}.share") for n in range(SHARE_PARTITIONS) if owns(n)}
        self._count = sum(len(places) for each in self._buckets.values() for places in each.groups.values())

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.log.close()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ShareKey]:
        return iter(
            [
                ShareKey(group, place)
                for bucket in self._buckets.values()
                for group, places in bucket.groups.items()
                for place in places
            ]
        )

    def get(self, key: ShareKey) -> SharePartition | None:
        return self._of(key.group).groups.get(key.group, {}).get(key.place)

    def of_group(self, group: str) -> list[Place]:
        return [*self._of(group).groups.get(group, {})]

    def begin(self, key: ShareKey, start_offset: int) -> SharePartition:
        """A share partition whose first offset to be delivered is this, also if there was one."""
        bucket = self._of(key.group)
        bucket.append(_body(WHOLE, key, (start_offset, ())))
        places = bucket.groups.setdefault(key.group, {})
        self._count += key.place not in places
        known = places.setdefault(key.place, SharePartition(start_offset))
        known.reset(start_offset)
        return known

    def keep(self, key: ShareKey, partition: SharePartition, before: Kept) -> None:
        """What has changed since `before`. If it can't be written, the partition is as it was then."""
        start, runs = before
        known = set(runs)
        changes = [run for run in partition.runs if run not in known]
        if not changes and partition.start_offset == start and len(partition.runs) == len(runs):
            return
        body = _body(CHANGE, key, (partition.start_offset, changes))
        if runs and partition.end_offset <= runs[-1].last:
            body = _body(WHOLE, key, (partition.start_offset, partition.runs))
        try:
            self._of(key.group).append(body)
        except OSError:
            partition.start_offset, partition.runs = start, [*runs]
            raise

    def forget(self, group: str, topic_id: str | None = None) -> None:
        """Of one topic, or of all."""
        bucket = self._of(group)
        if any(topic_id in (None, place.topic_id) for place in bucket.groups.get(group, {})):
            bucket.append([FORGET, group, topic_id])
            self._count -= len(bucket.groups[group])
            bucket.forget(group, topic_id)
            self._count += len(bucket.groups.get(group, {}))

    def _of(self, group: str) -> _Bucket:
        return self._buckets[partition_of(group)]


def _kept_state(state: int) -> RecordState:
    """P1."""
    return RecordState.AVAILABLE if state == RecordState.ACQUIRED else RecordState(state)


def _body(kind: int, key: ShareKey, kept: Kept) -> list[Any]:
    start, runs = kept
    rows = [[run.first, run.last, int(run.state), run.deliveries] for run in runs]
    return [kind, key.group, key.place.topic_id, key.place.partition, start, rows]


def _entries(body: Sequence[Any]) -> int:
    return 1 if body[0] == FORGET else 1 + len(body[5])
