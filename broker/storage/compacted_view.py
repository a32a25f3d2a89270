"""A partition's log that shows a state which is kept elsewhere, as a compacted topic does: the last value of each key.

Nothing is written while no client reads. Before a read, `bring_up` appends what has become different since the last one: a record
for each key with another value, a tombstone for each that is gone. What changed twice between two reads is seen once.

view_has_each_last_record  After `bring_up` the last record of each key in the log is what the state had, and there is no
    other key but with a tombstone.
view_waste_is_bounded  A log of more than LEAST records holds at most MAX_WASTE times as many as the state has keys: then
    all are written once more, and the log begins there.
foreign_views_are_read_first  A log that another process began before this one, or of which retention has dropped
    something, is read first; only what differs is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker.storage.record_batches import Record, batch_of, end_of, records_in
from broker.storage.shared_log import SharedLog
from shards.loop.turns import Turns

LEAST = 10_000
MAX_WASTE = 4
AT_ONCE = 500
READ_BYTES = 1 << 17
MOST_BATCH_BYTES = 1 << 18

State = Mapping[Any, Any]
Encode = Callable[[Any, Any], Record]
"""(key, value) of the state -> a record; the value None: a tombstone."""


class CompactedView:
    """`seen` is whatever the caller compares to know that nothing has changed."""

    def __init__(self, log: SharedLog, encode: Encode, turns: Turns) -> None:
        self.log = log
        self.seen: Any = None
        self.held: State = {}
        """The state as the log shows it, once it was brought up."""
        self._encode = encode
        self._turns = turns
        self._loaded = False
        self._start = -1

    @property
    def is_cut(self) -> bool:
        """True if records of the log were deleted since it was brought up."""
        return self.log.start_offset != self._start

    async def bring_up(self, state: State, now_ms: int) -> None:
        """No other call for this log runs meanwhile. Raises Rejected, and OSError: the log is read anew then."""
        try:
            if self.is_cut:
                self._loaded, self.held = False, {}
            first = {} if self._loaded else await self._load()
            self._loaded = False
            await self._append(self._changes(state, first), now_ms)
            if self.log.next_offset - self.log.start_offset > max(LEAST, MAX_WASTE * len(state)):
                await self._compact(state, now_ms)
            self.held, self._loaded, self._start = state, True, self.log.start_offset
        finally:
            if not self._loaded:
                self.held, self.seen = {}, None

    async def _load(self) -> dict[bytes, bytes | None]:
        """The last value of each key in the log."""
        found: dict[bytes, bytes | None] = {}
        offset = self.log.start_offset
        while offset < self.log.next_offset:
            async with self._turns.turn():
                data = bytes(self.log.read(offset, READ_BYTES, at_least_one=True))
                found.update(records_in(data))
                offset = end_of(data, offset)
        return found

    def _changes(self, state: State, first: dict[bytes, bytes | None]) -> Iterator[Record | None]:
        """Records to append; None in between, for each key that has not changed."""
        held = self.held
        left = set(held)
        for key, value in state.items():
            left.discard(key)
            if held.get(key) == value:
                yield None
                continue
            record = self._encode(key, value)
            yield record if first.pop(record.key, None) != record.value else None
        for key in left:
            yield self._encode(key, None)
        for raw, gone in first.items():
            yield Record(raw, None, -1) if gone is not None else None

    async def _append(self, records: Iterator[Record | None], now_ms: int) -> None:
        more = True
        while more:
            async with self._turns.turn():
                batch: list[Record] = []
                size = 0
                more = False
                for count, each in enumerate(records, 1):
                    if each is not None:
                        batch.append(each if each.timestamp >= 0 else each._replace(timestamp=now_ms))
                        size += len(each.key) + len(each.value or b"")
                    if count >= AT_ONCE or size >= MOST_BATCH_BYTES:
                        more = True
                        break
                if batch:
                    self.log.append(batch_of(batch), now_ms)

    async def _compact(self, state: State, now_ms: int) -> None:
        """Writes all last records once more, and deletes what lies before them (view_waste_is_bounded)."""
        base = self.log.next_offset
        await self._append((self._encode(key, value) for key, value in state.items()), now_ms)
        self.log.delete_before(base)
