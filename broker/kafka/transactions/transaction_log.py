"""The transactional ids of one shard: all in memory, and in files of the broker.

An id's records go to the file of its bucket, DIR/<bucket>.transactions, as Kafka's go to one partition of
__transaction_state. A bucket has one home among the broker's shards, so each file has one writer, and the number of shards
may change between starts. A body is one of these, packed by msgpack:

    [PUT, id, producer id, epoch, last epoch, previous id, next id, timeout ms, state, start ms, update ms, second version,
     [[topic, [partition, ...]], ...]]
    [FORGET, id]

T1  A file's sound frames, in order, give what memory holds of its bucket (broker/storage/record_file.py): the last PUT of
    each id.
T2  After a failed write file and memory are as they were before it.
T3  A file holds at most MAX_WASTE times as many records as its bucket has ids, or COMPACT_BYTES.

Source: TransactionStateManager, TransactionLog of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from broker.kafka.transactions.transaction_state import TransactionMetadata, TransactionState
from broker.runtime.logger import Logger
from broker.runtime.places import by_topic
from broker.storage.record_file import OffsetsLog, frame
from shards.ownership import PARTITIONS
from shards.ownership import partition_of as bucket_of

PUT, FORGET = range(2)
COMPACT_BYTES = 1 << 20
MAX_WASTE = 4

log = Logger()


class _Bucket:
    """The ids of one file, and how many records it holds (T3)."""

    def __init__(self, path: Path) -> None:
        self.log = OffsetsLog(path)
        self.known: dict[str, TransactionMetadata] = {}
        self.written = 0
        self.log.load(self._load)
        self.compact_at = COMPACT_BYTES

    def put(self, metadata: TransactionMetadata) -> None:
        """Raises OSError."""
        self.log.append(_packed(metadata))
        self.known[metadata.transactional_id] = metadata
        self._wrote()

    def forget(self, transactional_id: str) -> None:
        """Raises OSError."""
        self.log.append(msgpack.packb([FORGET, transactional_id]))
        del self.known[transactional_id]
        self._wrote()

    def _wrote(self) -> None:
        self.written += 1
        if self.log.size > self.compact_at and self.written > MAX_WASTE * len(self.known):
            self._compact()

    def _load(self, packed: bytes) -> None:
        try:
            body = msgpack.unpackb(packed, use_list=False)
            if body[0] == FORGET:
                self.known.pop(body[1], None)
            elif body[0] == PUT:
                metadata = _unpacked(body)
                self.known[metadata.transactional_id] = metadata
            self.written += 1
        except (TypeError, ValueError, IndexError) as fault:  # sound, but of another kind: of a later version, perhaps
            log.warning("a record of a transaction makes no sense", file=str(self.log.path), error=str(fault))

    def _compact(self) -> None:
        """Writes what is known into a new file. A disk that does not take it is asked again much later."""
        try:
            self.log.replace(frame(_packed(each)) for each in self.known.values())
            self.written = len(self.known)
            self.compact_at = COMPACT_BYTES
        except OSError as fault:
            self.compact_at = 2 * self.log.size
            log.warning("transactions were not compacted", file=str(self.log.path), error=str(fault))


class TransactionLog:
    """`owns(bucket)` says which buckets have their home here. A change raises OSError if it can't be written."""

    def __init__(self, directory: Path, owns: Callable[[int], bool] = lambda _: True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._buckets = {n: _Bucket(directory / f"{n:02d}.transactions") for n in range(PARTITIONS) if owns(n)}

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.log.close()

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return iter([each for bucket in self._buckets.values() for each in bucket.known.values()])

    def __len__(self) -> int:
        return sum(len(bucket.known) for bucket in self._buckets.values())

    def in_bucket(self, bucket: int) -> Mapping[str, TransactionMetadata]:
        """The ids of a bucket whose home is here."""
        return self._buckets[bucket].known

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        return self._buckets[bucket_of(transactional_id)].known.get(transactional_id)

    def put(self, metadata: TransactionMetadata) -> None:
        self._buckets[bucket_of(metadata.transactional_id)].put(metadata)

    def forget(self, transactional_id: str) -> None:
        self._buckets[bucket_of(transactional_id)].forget(transactional_id)


def _packed(m: TransactionMetadata) -> bytes:
    packed: bytes = msgpack.packb(
        [
            PUT, m.transactional_id, m.producer_id, m.producer_epoch, m.last_producer_epoch, m.previous_producer_id,
            m.next_producer_id, m.timeout_ms, m.state.value, m.start_ms, m.update_ms, m.second, [*by_topic(m.partitions).items()],
        ]
    )  # fmt: skip
    return packed


def _unpacked(body: Any) -> TransactionMetadata:
    """Raises TypeError, ValueError or IndexError."""
    if not isinstance(body[1], str):
        raise TypeError(f"an id called {body[1]!r}")
    return TransactionMetadata(
        transactional_id=body[1],
        producer_id=body[2],
        producer_epoch=body[3],
        last_producer_epoch=body[4],
        previous_producer_id=body[5],
        next_producer_id=body[6],
        timeout_ms=body[7],
        state=TransactionState(body[8]),
        start_ms=body[9],
        update_ms=body[10],
        second=body[11],
        partitions=frozenset((topic, partition) for topic, partitions in body[12] for partition in partitions),
    )
