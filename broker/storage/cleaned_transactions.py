"""The transactions that the cleaner remembers, batch after batch, from the first segment on.

Batches of an aborted transaction are discarded when they are read. A marker goes no earlier than all batches of its transaction:
who reads committed records must find the end of what is aborted, and recovery the end of what has begun.

Source: CleanedTransactionMetadata of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.storage.records import TRANSACTIONAL, Batch
from broker.storage.transaction_index import AbortedTxn


class CleanedTransactions:
    """`aborted`: the aborted transactions that end in what is read, or behind it."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, bool] = {}  # producer id -> whether a batch of the transaction was seen
        self._committed: set[int] = set()

    def on_batch(self, batch: Batch) -> bool:
        """True if a batch of records belongs to an aborted transaction."""
        self._begin_up_to(batch.last_offset)
        if not batch.attributes & TRANSACTIONAL:
            return False
        if batch.producer_id in self._aborted:
            self._aborted[batch.producer_id] = True
            return True
        self._committed.add(batch.producer_id)
        return False

    def on_marker(self, batch: Batch) -> bool:
        """True if no batch of the transaction is left that a marker ends."""
        self._begin_up_to(batch.last_offset)
        seen = self._aborted.pop(batch.producer_id, False) or batch.producer_id in self._committed
        self._committed.discard(batch.producer_id)
        return not seen

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            self._aborted.setdefault(self._to_come.pop().producer_id, False)
