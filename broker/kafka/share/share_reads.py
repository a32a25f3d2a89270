"""The reads of a partition's log by the home of a share partition: where batches begin and end, and which are of aborted
transactions.

Records are read by the shard that answers the client. The home only looks at headers, a piece of the log at a time, until there
are as many records as are asked for.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.kafka.share.share_partition import OffsetSpan
from broker.storage.partitions import Partitions
from broker.storage.records import CONTROL, HEADER, TRANSACTIONAL, Batch, header_at
from broker.wire import codes

PIECE_BYTES = 256 << 10


class ShareRead(NamedTuple):
    """`spans`: the batches from the offset on; `dropped`: those of them whose transactions were aborted."""

    code: int
    log_start: int = -1
    log_end: int = -1
    spans: tuple[OffsetSpan, ...] = ()
    dropped: tuple[OffsetSpan, ...] = ()

    @property
    def size(self) -> int:
        return sum(span.size for span in self.spans)


def read(
    partitions: Partitions,
    topic: str,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    max_records: int,
    committed: bool,
    at_least_one: bool = True,
) -> ShareRead:
    """Whole batches of `max_bytes` at most, one behind the other; `at_least_one` if there is any, however large."""
    spans: list[OffsetSpan] = []
    dropped: list[OffsetSpan] = []
    at, left = offset, max_bytes
    while True:
        piece = min(left, PIECE_BYTES)
        code, end, start, data, _, aborted = partitions.do(
            "read", (topic, partition, -1, at, piece, committed, at_least_one and not spans)
        )
        batches = [*_batches(data)]
        found = _in_a_row(batches, spans[-1].last + 1 if spans else None)
        spans += [_span(batch) for batch in found]
        dropped += [_span(batch) for batch in _of_aborted(found, aborted)]
        left -= sum(batch.size for batch in batches)
        is_over = not found or found[-1] is not batches[-1]
        if code or is_over or left <= 0 or spans[-1].last - offset + 1 >= max_records:
            return ShareRead(codes.NONE if spans else code, start, end, tuple(spans), tuple(dropped))
        at = spans[-1].last + 1


def _in_a_row(batches: Iterable[Batch], at: int | None) -> list[Batch]:
    """The batches with records, up to the first hole; what is in front of the first is one, unless it has to begin at `at`.

    A batch that the cleaner has emptied is a hole, too: of it there is nothing to acquire.
    """
    found: list[Batch] = []
    for batch in batches:
        if batch.record_count and at in (None, batch.base_offset):
            found.append(batch)
            at = batch.last_offset + 1
        elif at is not None:
            break
    return found


def _span(batch: Batch) -> OffsetSpan:
    return OffsetSpan(batch.base_offset, batch.last_offset, batch.size)


def _batches(data: bytes) -> Iterator[Batch]:
    """The headers of those that are there whole."""
    at = 0
    while at + HEADER.size <= len(data):
        batch = header_at(data, at)
        at += batch.size
        if at > len(data):
            return
        yield batch


def _of_aborted(batches: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """`aborted`: (producer id, first offset) of transactions; each ends with its producer's next marker."""
    to_come = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    producers: set[int] = set()
    for batch in batches:
        while to_come and to_come[-1][1] <= batch.last_offset:
            producers.add(to_come.pop()[0])
        if batch.attributes & CONTROL:
            producers.discard(batch.producer_id)
        elif batch.attributes & TRANSACTIONAL and batch.producer_id in producers:
            yield batch
