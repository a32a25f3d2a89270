"""The aborted transactions of one partition, in the order in which they ended.

aborted_until_log_start  An entry is there from the moment its marker is in the log until the log starts behind its last
    offset, or the cleaner has removed that marker.
index_files_end_before_next_segment  What ended in a segment is in that segment's `.txnindex` file before a later segment
    begins; a segment without such a file has no aborted transaction. What ended in the last segment is known from a scan of
    it.

Memory: 32 bytes for each aborted transaction that the log still holds; its marker alone takes 78 bytes of the log.
Source: TransactionIndex, AbortedTxn of Kafka 4.1.
"""

from array import array
from bisect import bisect_left
from typing import Any, NamedTuple


class AbortedTxn(NamedTuple):
    """`first_offset` of its records; `last_offset`: its marker's. `last_stable_offset`: the log's, once it had ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Columns of AbortedTxn, sorted by `last_offset`."""

    def __init__(self) -> None:
        self._columns = tuple(array("q") for _ in AbortedTxn._fields)

    def __len__(self) -> int:
        return len(self._columns[0])

    def append(self, aborted: AbortedTxn) -> None:
        for column, value in zip(self._columns, aborted, strict=True):
            column.append(value)

    def collect(self, offset: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of each that may have records in [offset, end)."""
        producer_ids, first_offsets, last_offsets, stable_offsets = self._columns
        found = []
        for index in range(bisect_left(last_offsets, offset), len(last_offsets)):
            if first_offsets[index] < end:
                found.append((producer_ids[index], first_offsets[index]))
            if stable_offsets[index] >= end:
                break
        return found

    def entries(self) -> list[AbortedTxn]:
        return [AbortedTxn(*row) for row in zip(*self._columns, strict=True)]

    def drop_before(self, offset: int) -> None:
        """The log starts at `offset` now."""
        kept_from = bisect_left(self._columns[2], offset)
        if kept_from:
            self._columns = tuple(column[kept_from:] for column in self._columns)

    def dump(self, start: int, end: int) -> list[bytes]:
        """The transactions that ended in [start, end), for a file."""
        first, behind = bisect_left(self._columns[2], start), bisect_left(self._columns[2], end)
        return [column[first:behind].tobytes() for column in self._columns]

    def load(self, dumped: list[Any]) -> None:
        """Adds what `dump` gave; it ended behind all that is known."""
        for column, added in zip(self._columns, dumped, strict=True):
            column.frombytes(added)
