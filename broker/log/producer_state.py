"""Idempotent producers of one partition: the epoch of each, its last batches, and the sequence number it may append next.

P1  a batch that was appended and comes again gets its first offset again, and is not appended twice: the last
    BATCHES_KEPT of each producer are known by their sequence numbers
P2  a batch is taken only if it follows the one before without a gap, or if nothing is known of its producer
P3  of more than MAX_PRODUCERS the one idle longest is forgotten, as Kafka forgets expired ones

Source: org.apache.kafka.storage.internals.log.ProducerAppendInfo, ProducerStateEntry.
"""

from typing import Any, NamedTuple

from broker.log.records import Batch, Rejected
from broker.protocol import codes

BATCHES_KEPT = 5
MAX_PRODUCERS = 10_000
SEQUENCE_MODULUS = 2**31


class BatchMetadata(NamedTuple):
    """A batch in the log, by its producer's numbers."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class ProducerStateManager:
    """State by producer id, the one active last at the end."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[int, tuple[BatchMetadata, ...]]] = {}  # id -> epoch, last batches

    def __len__(self) -> int:
        return len(self._states)

    def check(self, batch: Batch) -> BatchMetadata | None:
        """The earlier append if `batch` is a duplicate, None if it may be appended.

        Raises Rejected: INVALID_PRODUCER_EPOCH for a fenced producer, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap.
        """
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
        expected = (appended[-1].last_sequence + 1) % SEQUENCE_MODULUS
        if batch.base_sequence != expected:
            raise self._out_of_order(batch, f"{expected} comes next")
        return None

    def record(self, batch: Batch, base_offset: int) -> None:
        """Notes that `batch` is in the log at `base_offset`; the base offset in its header is not looked at."""
        new = BatchMetadata(batch.base_sequence, _last_sequence(batch), base_offset, batch.max_timestamp)
        known = self._states.pop(batch.producer_id, None)
        kept = known[1][1 - BATCHES_KEPT :] if known is not None and known[0] == batch.producer_epoch else ()
        self._states[batch.producer_id] = (batch.producer_epoch, (*kept, new))
        if len(self._states) > MAX_PRODUCERS:
            del self._states[next(iter(self._states))]

    def dump(self) -> list[Any]:
        """The state as plain lists, for a snapshot."""
        return [[producer_id, epoch, list(map(list, kept))] for producer_id, (epoch, kept) in self._states.items()]

    @classmethod
    def load(cls, dumped: list[Any]) -> "ProducerStateManager":
        producers = cls()
        for producer_id, epoch, kept in dumped:
            producers._states[producer_id] = (epoch, tuple(BatchMetadata(*batch) for batch in kept))
        return producers

    def _out_of_order(self, batch: Batch, why: str) -> Rejected:
        return Rejected(
            codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Sequence number {batch.base_sequence} of producer {batch.producer_id} is out of order: {why}.",
        )


def _last_sequence(batch: Batch) -> int:
    return (batch.base_sequence + batch.last_offset_delta) % SEQUENCE_MODULUS
