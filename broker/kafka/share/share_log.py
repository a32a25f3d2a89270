"""The share partitions of one shard: all in memory, and in SHARE_PARTITIONS files of the broker.

Those of a group go to the file of its bucket, DIR/<bucket>.share, as Kafka's go to one partition of __share_group_state. A bucket
has one home among the broker's shards, so each file has one writer, and the number of shards may change between starts. A body is
one of these, packed by msgpack:

    [WHOLE, group, topic id, partition, start offset, [[first, last, state, delivery count], ...]]
    [CHANGE, the same]                     runs that have changed; the others are as they were
    [FORGET, group, topic id or None]      of that topic, or of all

Files and memory agree as broker/storage/record_file.py says (file_gives_memory), but for acquisitions:

restart_releases_acquired  An acquired record is available after a restart, with the deliveries that it had.

An entry is a partition or a run. Kafka keeps no acquisitions, so there a delivery does not count that a broker's end has cut
short; here it does.
Source: ShareCoordinatorShard, PersisterStateBatchCombiner of Kafka 4.1.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from broker.kafka.share.in_flight import RecordState, Run
from broker.kafka.share.share_partition import SharePartition
from broker.kafka.share.share_session import TopicIdPartition
from broker.storage.record_file import CompactedFile
from shards.ownership import PARTITIONS, bucket_of

WHOLE, CHANGE, FORGET = range(3)
SHARE_PARTITIONS = PARTITIONS
"""Kafka's default of share.coordinator.state.topic.num.partitions; here it can't be set."""

WrittenState: TypeAlias = tuple[int, Sequence[Run]]
"""A start offset, and the runs in flight."""


class ShareKey(NamedTuple):
    group: str
    place: TopicIdPartition


class SharePartitionsFile(CompactedFile):
    """The share partitions of the groups of one bucket."""

    holds = "share partitions"
    live_is_costly = True

    def __init__(self, path: Path) -> None:
        self.groups: dict[str, dict[TopicIdPartition, SharePartition]] = {}
        super().__init__(path)

    @property
    def live(self) -> int:
        return sum(1 + len(each.runs) for places in self.groups.values() for each in places.values())

    def entries(self, body: Sequence[Any]) -> int:
        return 1 if body[0] == FORGET else 1 + len(body[5])

    def apply(self, body: Sequence[Any]) -> None:
        if body[0] == FORGET:
            self._forget(body[1], body[2])
        else:
            self._put(*body)

    def snapshot(self) -> Iterator[list[object]]:
        for group, places in self.groups.items():
            for place, each in places.items():
                yield _body(WHOLE, ShareKey(group, place), (each.start_offset, each.runs))

    def begin(self, key: ShareKey, start_offset: int) -> SharePartition:
        """Raises OSError."""
        body = _body(WHOLE, key, (start_offset, ()))
        self.append(body, partial(self.apply, body))
        return self.groups[key.group][key.place]

    def forget(self, group: str, topic_id: str | None) -> None:
        """Raises OSError."""
        self.append([FORGET, group, topic_id], partial(self._forget, group, topic_id))

    def _forget(self, group: str, topic_id: str | None) -> None:
        places = self.groups.get(group, {})
        for place in [each for each in places if topic_id in (None, each.topic_id)]:
            del places[place]
        if not places:
            self.groups.pop(group, None)

    def _put(self, kind: int, group: str, topic_id: str, partition: int, start: int, rows: Any) -> None:
        runs = [Run(first, last, _state_after_restart(state), deliveries) for first, last, state, deliveries in rows]
        known = self.groups.setdefault(group, {}).setdefault(
            TopicIdPartition(topic_id, partition), SharePartition(start)
        )
        if kind == WHOLE:
            known.reset(start)
        known.restore(start, runs)


class ShareLog:
    """`owns(bucket)` says which buckets have their home here. A change raises OSError if it can't be written."""

    def __init__(self, directory: Path, owns: Callable[[int], bool] = lambda _: True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._buckets = {
            n: SharePartitionsFile(directory / f"{n:02d}.share") for n in range(SHARE_PARTITIONS) if owns(n)
        }
        self._count = sum(len(places) for each in self._buckets.values() for places in each.groups.values())

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.close()

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

    def of_group(self, group: str) -> list[TopicIdPartition]:
        return [*self._of(group).groups.get(group, {})]

    def begin(self, key: ShareKey, start_offset: int) -> SharePartition:
        """A share partition whose first offset to be delivered is this, also if there was one."""
        bucket = self._of(key.group)
        is_new = key.place not in bucket.groups.get(key.group, {})
        partition = bucket.begin(key, start_offset)
        self._count += is_new
        return partition

    def write(self, key: ShareKey, partition: SharePartition, before: WrittenState) -> None:
        """Writes the changes since `before`. If they can't be written, the partition is as it was then."""
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
        """Forgets a group's partitions of one topic, or of all."""
        bucket = self._of(group)
        if any(topic_id in (None, place.topic_id) for place in bucket.groups.get(group, {})):
            before = len(bucket.groups[group])
            bucket.forget(group, topic_id)
            self._count += len(bucket.groups.get(group, {})) - before

    def _of(self, group: str) -> SharePartitionsFile:
        return self._buckets[bucket_of(group)]


def _state_after_restart(state: int) -> RecordState:
    """See restart_releases_acquired."""
    return RecordState.AVAILABLE if state == RecordState.ACQUIRED else RecordState(state)


def _body(kind: int, key: ShareKey, written: WrittenState) -> list[object]:
    start, runs = written
    rows = [[run.first, run.last, int(run.state), run.deliveries] for run in runs]
    return [kind, key.group, key.place.topic_id, key.place.partition, start, rows]


def _entries(body: Sequence[Any]) -> int:
    return 1 if body[0] == FORGET else 1 + len(body[5])
