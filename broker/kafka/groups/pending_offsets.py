"""Offsets committed by transactions that have not ended: no consumer sees them yet. By producer id and group.

pending_until_the_marker  An offset is pending from its TxnOffsetCommit to its transaction's marker, or until its group is
    forgotten.
pending_places_are_unstable  For the partitions of `places(group)`, a consumer that requires stable offsets waits (KIP-447).

Source: OffsetMetadataManager.pendingTransactionalOffsets of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from broker.storage.topic_partition import TopicPartition

T = TypeVar("T")


class PendingOffsets(Generic[T]):
    """The pending offsets of one bucket of groups. T: an offset with its metadata. `entries`: the number of offsets."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[TopicPartition, T]]] = {}
        self.entries = 0

    def __iter__(self) -> Iterator[tuple[int, str, dict[TopicPartition, T]]]:
        """(producer id, group, offsets) of each transaction and group."""
        for producer_id, groups in self._by_producer.items():
            for group, offsets in groups.items():
                yield producer_id, group, offsets

    def of(self, producer_id: int, group: str) -> dict[TopicPartition, T]:
        """The pending offsets of one transaction for a group. The caller adds to them, and then calls `count`."""
        return self._by_producer.setdefault(producer_id, {}).setdefault(group, {})

    def places(self, group: str) -> set[TopicPartition]:
        """The partitions for which a group has a pending offset."""
        if not self._by_producer:
            return set()
        return {place for groups in self._by_producer.values() for place in groups.get(group, ())}

    def end(self, producer_id: int) -> dict[str, dict[TopicPartition, T]]:
        """Removes the offsets of a transaction that has ended. Returns them, by group."""
        ended = self._by_producer.pop(producer_id, {})
        self.count()
        return ended

    def forget(self, group: str) -> None:
        """Removes the pending offsets of a group that is forgotten."""
        for producer_id, groups in list(self._by_producer.items()):
            if groups.pop(group, None) is not None and not groups:
                del self._by_producer[producer_id]
        self.count()

    def count(self) -> None:
        """Brings `entries` up to date."""
        self.entries = sum(len(offsets) for _, _, offsets in self)
