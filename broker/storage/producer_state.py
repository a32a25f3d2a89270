"""The producers of one partition: the epoch of each, its last batches, the sequence number it may append next, and its
transaction.

repeated_batches_get_their_offset  a batch that was appended and comes again gets its first offset again, and is not
    appended twice: the last BATCHES_KEPT of each producer are known by their sequence numbers
sequences_without_gaps  a batch is taken only if it follows the one before without a gap, or if nothing is known of its
    producer
producers_are_bounded  of more than MAX_PRODUCERS the one idle longest is forgotten, as Kafka forgets expired ones, but none
    in a transaction
ongoing_until_the_marker  a transaction is ongoing from its first batch to its marker; all of its batches are transactional
transactions_are_verified_first  a batch begins a transaction only if the coordinator said that the transaction has this
    partition (KIP-890), and no marker of the producer came since it was asked: what a marker has ended does not begin again

Source: org.apache.kafka.storage.internals.log.ProducerAppendInfo, ProducerStateEntry, VerificationStateEntry.
"""

from typing import Any, NamedTuple

from broker.storage.control_records import EndTransactionMarker
from broker.storage.records import TRANSACTIONAL, Batch, Rejected
from broker.storage.transaction_index import AbortedTxn
from broker.wire import codes

BATCHES_KEPT = 5
MAX_PRODUCERS = 10_000
LAST_EPOCH = 2**15 - 1
SEQUENCE_MODULUS = 2**31
UNVERIFIED = -1000
"""Not a Kafka code: the append of a batch that would begin a transaction, until the coordinator knows of it
(transactions_are_verified_first)."""
NOT_ASKED = -2
"""Stands for the answer of a refusal as UNVERIFIED: the coordinator was not asked yet."""


class BatchMetadata(NamedTuple):
    """A batch in the log, by its producer's numbers."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class LastMarker(NamedTuple):
    """The marker that ended the last transaction of a producer here. `timestamp` is in ms."""

    offset: int
    coordinator_epoch: int
    timestamp: int


class ProducerState(NamedTuple):
    """A producer as DescribeProducers tells it; -1 where there is nothing to tell."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    txn_start_offset: int


class ProducerStateManager:
    """State by producer id, the one active last at the end. `ongoing`: the first offset of each transaction that has not
    ended, by producer id, in the order in which they began."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[int, tuple[BatchMetadata, ...]]] = {}  # id -> epoch, last batches
        self._markers: dict[int, LastMarker] = {}
        self.ongoing: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._states)

    def check(self, batch: Batch) -> BatchMetadata | None:
        """The earlier append if `batch` is a duplicate, None if it may be appended.

        Raises Rejected: INVALID_PRODUCER_EPOCH for a fenced producer, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap.
        """
        if self.ongoing and batch.producer_id in self.ongoing and not batch.attributes & TRANSACTIONAL:
            raise Rejected(
                codes.INVALID_TXN_STATE,
                f"Producer {batch.producer_id} is in a transaction: its records must be transactional.",
            )
        known = self._states.get(batch.producer_id)
        if known is None:
            return None
        epoch, appended = known
        if batch.producer_epoch < epoch:
            raise Rejected(
                codes.INVALID_PRODUCER_EPOCH,
                f"Epoch {batch.producer_epoch} of producer {batch.producer_id} is older than its last, {epoch}.",
            )
        if batch.producer_epoch > epoch:
            if batch.base_sequence != 0:
                raise self._out_of_order(batch, "a new epoch starts with 0")
            return None
        last_sequence = _last_sequence(batch)
        for earlier in appended:
            if earlier.first_sequence == batch.base_sequence and earlier.last_sequence == last_sequence:
                return earlier
        expected = (appended[-1].last_sequence + 1) % SEQUENCE_MODULUS if appended else 0
        if batch.base_sequence != expected:
            raise self._out_of_order(batch, f"{expected} comes next")
        return None

    def record(self, batch: Batch, base_offset: int) -> None:
        """Notes that `batch` is in the log at `base_offset`; the base offset in its header is not looked at."""
        new = BatchMetadata(batch.base_sequence, _last_sequence(batch), base_offset, batch.max_timestamp)
        known = self._states.pop(batch.producer_id, None)
        kept = known[1][1 - BATCHES_KEPT :] if known is not None and known[0] == batch.producer_epoch else ()
        self._states[batch.producer_id] = (batch.producer_epoch, (*kept, new))
        if batch.attributes & TRANSACTIONAL:
            self.ongoing.setdefault(batch.producer_id, base_offset)
        if len(self._states) > MAX_PRODUCERS:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forgets the producer idle longest that has no transaction (producers_are_bounded)."""
        idle = next((producer_id for producer_id in self._states if producer_id not in self.ongoing), None)
        if idle is not None:
            del self._states[idle]
            self._markers.pop(idle, None)

    # Transactions

    def require_verified(self, batch: Batch, asked_at: int | None) -> None:
        """transactions_are_verified_first. `asked_at` is what the refusal said before the coordinator was asked;
        NOT_ASKED: it was not; None: it can't be, as the request has no transactional id. Raises Rejected."""
        begun = batch.producer_id in self.ongoing
        if asked_at is not None and begun and self._states[batch.producer_id][0] == batch.producer_epoch:
            return
        last = self._markers.get(batch.producer_id)
        ended_at = -1 if last is None else last.offset
        if asked_at != ended_at:
            raise Rejected(UNVERIFIED, "The partition is not known to be in the transaction.", (ended_at,))

    def check_marker(self, producer_id: int, epoch: int, marker: EndTransactionMarker) -> None:
        """Raises Rejected: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED for a marker that comes too late.

        Since transaction version 2 each transaction ends with a new epoch (KIP-890, KIP-1228): one with the last is the same
        marker again, or that of a transaction which has no higher epoch. Source: ProducerAppendInfo.checkProducerEpoch.
        """
        known, last = self._states.get(producer_id), self._markers.get(producer_id)
        if known is not None and epoch < known[0]:
            raise Rejected(
                codes.INVALID_PRODUCER_EPOCH,
                f"Epoch {epoch} of producer {producer_id} is older than its last, {known[0]}.",
            )
        if known is not None and epoch == known[0] and self._is_spent(producer_id, epoch, marker):
            raise Rejected(
                codes.INVALID_PRODUCER_EPOCH,
                f"Epoch {epoch} of producer {producer_id} is that of its open transaction, which ends with a higher one.",
            )
        if last is not None and marker.coordinator_epoch < last.coordinator_epoch:
            raise Rejected(
                codes.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {marker.coordinator_epoch} is older than the last, {last.coordinator_epoch}.",
            )

    def _is_spent(self, producer_id: int, epoch: int, marker: EndTransactionMarker) -> bool:
        """True for a marker that must have a higher epoch than the open transaction, and has its own."""
        return marker.transaction_version >= 2 and producer_id in self.ongoing and epoch != LAST_EPOCH

    def end(self, marker_batch: Batch, marker: EndTransactionMarker, offset: int) -> AbortedTxn | None:
        """Notes that a marker is in the log at `offset`; the transaction that it aborts, if it has records."""
        producer_id, epoch = marker_batch.producer_id, marker_batch.producer_epoch
        known = self._states.pop(producer_id, None)
        kept = known[1] if known is not None and known[0] == epoch else ()
        self._states[producer_id] = (epoch, kept)
        self._markers[producer_id] = LastMarker(offset, marker.coordinator_epoch, marker_batch.max_timestamp)
        first_offset = self.ongoing.pop(producer_id, None)
        if len(self._states) > MAX_PRODUCERS:
            self._forget_one()
        if first_offset is None or marker.commit:
            return None
        return AbortedTxn(producer_id, first_offset, offset, self.first_unstable_offset(offset + 1))

    def first_unstable_offset(self, end: int) -> int:
        """The first offset of the ongoing transaction that began first; `end` if there is none."""
        return next(iter(self.ongoing.values()), end) if self.ongoing else end

    def last_batches(self) -> dict[int, tuple[int, int]]:
        """The epoch of each producer id, and the base offset of its last batch, -1 if it has written none in that epoch."""
        return {
            producer_id: (epoch, kept[-1].base_offset if kept else -1)
            for producer_id, (epoch, kept) in self._states.items()
        }

    def describe(self) -> list[ProducerState]:
        """The state of each producer."""
        return [self._describe(*each) for each in self._states.items()]

    def _describe(self, producer_id: int, state: tuple[int, tuple[BatchMetadata, ...]]) -> ProducerState:
        epoch, kept = state
        marker = self._markers.get(producer_id)
        return ProducerState(
            producer_id,
            epoch,
            kept[-1].last_sequence if kept else -1,
            max(kept[-1].max_timestamp if kept else -1, marker.timestamp if marker else -1),
            marker.coordinator_epoch if marker else -1,
            self.ongoing.get(producer_id, -1),
        )

    # Snapshots

    def dump(self) -> list[object]:
        """The state as plain lists, for a snapshot."""
        return [
            [producer_id, epoch, list(map(list, kept)), *self._dump_transaction(producer_id)]
            for producer_id, (epoch, kept) in self._states.items()
        ]

    def _dump_transaction(self, producer_id: int) -> list[object]:
        """[its last marker or None, the first offset of its transaction or None], [] without either."""
        marker, first_offset = self._markers.get(producer_id), self.ongoing.get(producer_id)
        return [] if marker is None and first_offset is None else [marker and list(marker), first_offset]

    @classmethod
    def load(cls, dumped: list[Any]) -> "ProducerStateManager":
        producers = cls()
        ongoing: list[tuple[int, int]] = []
        for producer_id, epoch, kept, *transaction in dumped:
            producers._states[producer_id] = (epoch, tuple(BatchMetadata(*batch) for batch in kept))
            marker, first_offset = transaction or (None, None)
            if marker is not None:
                producers._markers[producer_id] = LastMarker(*marker)
            if first_offset is not None:
                ongoing.append((first_offset, producer_id))
        producers.ongoing = {producer_id: first_offset for first_offset, producer_id in sorted(ongoing)}
        return producers

    def _out_of_order(self, batch: Batch, why: str) -> Rejected:
        return Rejected(
            codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Sequence number {batch.base_sequence} of producer {batch.producer_id} is out of order: {why}.",
        )


def _last_sequence(batch: Batch) -> int:
    return (batch.base_sequence + batch.last_offset_delta) % SEQUENCE_MODULUS
