"""The transactional ids of one shard: all in memory, and in files of the broker.

An id's records go to the file of its bucket, DIR/<bucket>.transactions, as Kafka's go to one partition of
__transaction_state. A bucket has one home among the broker's shards, so each file has one writer, and the number of shards
may change between starts. A body is one of these, packed by msgpack:

    [PUT, id, producer id, epoch, last epoch, previous id, next id, timeout ms, state, start ms, update ms, second version,
     [[topic, [partition, ...]], ...]]
    [FORGET, id]

Files and memory agree as broker/storage/record_file.py says (file_gives_memory): the last PUT of each id counts. An entry is
a record.

Source: TransactionStateManager, TransactionLog of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from broker.kafka.transactions.transaction_state import TransactionMetadata, TransactionState
from broker.runtime.partitions_by_topic import by_topic
from broker.storage.record_file import CompactedFile
from shards.ownership import PARTITIONS, bucket_of

PUT, FORGET = range(2)


class TransactionsFile(CompactedFile):
    """The transactional ids of one bucket."""

    holds = "transactions"

    def __init__(self, path: Path) -> None:
        self.known: dict[str, TransactionMetadata] = {}
        super().__init__(path)

    @property
    def live(self) -> int:
        return len(self.known)

    def entries(self, body: Sequence[object]) -> int:
        return 1

    def apply(self, body: Sequence[Any]) -> None:
        if body[0] == FORGET:
            self.known.pop(body[1], None)
        elif body[0] == PUT:
            self._put(_metadata(body))

    def snapshot(self) -> Iterator[list[object]]:
        return map(_body, self.known.values())

    def put(self, metadata: TransactionMetadata) -> None:
        """Raises OSError."""
        self.append(_body(metadata), partial(self._put, metadata))

    def _put(self, metadata: TransactionMetadata) -> None:
        self.known[metadata.transactional_id] = metadata

    def forget(self, transactional_id: str) -> None:
        """Raises OSError."""
        body = [FORGET, transactional_id]
        self.append(body, partial(self.apply, body))


class TransactionLog:
    """`owns(bucket)` says which buckets have their home here. A change raises OSError if it can't be written."""

    def __init__(self, directory: Path, owns: Callable[[int], bool] = lambda _: True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._buckets = {n: TransactionsFile(directory / f"{n:02d}.transactions") for n in range(PARTITIONS) if owns(n)}

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.close()

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


def _body(m: TransactionMetadata) -> list[object]:
    return [
        PUT, m.transactional_id, m.producer_id, m.producer_epoch, m.last_producer_epoch, m.previous_producer_id,
        m.next_producer_id, m.timeout_ms, m.state.value, m.start_ms, m.update_ms, m.second, [*by_topic(m.partitions).items()],
    ]  # fmt: skip


def _metadata(body: Sequence[Any]) -> TransactionMetadata:
    """Raises TypeError, ValueError or IndexError."""
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
