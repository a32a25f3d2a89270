"""The outcome that a member reports of records that it had acquired, as ShareFetch and ShareAcknowledge carry it. Pure.

A batch has one type for all of its offsets, or one for each. Source: KafkaApis.validateAcknowledgementBatches,
SharePartition.fetchAckTypeMapForBatch; KIP-1222 for RENEW.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple


class AcknowledgeType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcknowledgementBatch(NamedTuple):
    """Offsets `first` to `last`, both included."""

    first: int
    last: int
    types: Sequence[int]

    def runs(self) -> Iterator[tuple[int, int, AcknowledgeType]]:
        """(first, last, type) of neighbours with one type, in order."""
        if len(self.types) == 1:
            yield self.first, self.last, AcknowledgeType(self.types[0])
            return
        for kind, offsets in groupby(
            range(self.first, self.last + 1), key=lambda offset: self.types[offset - self.first]
        ):
            each = [*offsets]
            yield each[0], each[-1], AcknowledgeType(kind)


def are_valid(batches: Sequence[AcknowledgementBatch], *, renews: bool) -> bool:
    """True if the batches of one partition make sense. `renews`: the request says that it may have RENEW."""
    most = AcknowledgeType.RENEW if renews else AcknowledgeType.REJECT
    behind = -1
    for batch in batches:
        if batch.first > batch.last or batch.first < behind or not batch.types:
            return False
        if len(batch.types) > 1 and len(batch.types) != batch.last - batch.first + 1:
            return False
        if not all(AcknowledgeType.GAP <= kind <= most for kind in batch.types):
            return False
        behind = batch.last
    return True
