"""The filter of the cleaner: the records of one batch that it leaves.

kept_records_do_not_change  Offsets, sequence numbers, the producer and the timestamps of records never change; a batch
    keeps its base offset and its last. The record of a marker has no time of its own: that is the largest of its batch.
unreadable_batches_are_kept  What can't be read for certain, as its checksum does not hold or its records are malformed, is
    kept as it is.
last_batch_of_a_producer_stays  The last batch of a producer stays, empty if it must: its sequence number is what the next
    one follows. So does the last marker of a producer that has written nothing since.
tombstones_get_a_horizon  A tombstone, or a marker whose transaction is empty, gets a horizon when it is met first:
    delete.retention.ms from then, in place of the batch's base timestamp (KIP-534). Behind the horizon it goes.

Source: Cleaner.cleanInto, MemoryRecords.filterTo of Kafka 4.1. Where Kafka keeps an empty control batch for
last_batch_of_a_producer_stays, the marker stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b

from broker.storage import compression
from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.compression import NotUnpacked
from broker.storage.record_entries import RecordEntry, entries, packed_varint
from broker.storage.record_scan import MalformedRecords
from broker.storage.records import (
    COMPRESSION,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    Batch,
    checksum_holds,
    with_records,
)

Aside = Callable[[], None]
"""A step that takes long, and may be done in a thread."""
Steps = Iterator[Aside | None]
"""Work in small steps: after each it can be left alone for a while."""
RECORDS_A_STEP = 200
_AT_ONCE_BYTES = 32 << 10
_NONE = -1


def digest(key: bytes) -> bytes:
    """The digest by which keys are compared. Kafka's is MD5, of the same length."""
    return blake2b(key, digest_size=16).digest()


class OffsetMap:
    """The last offset of each key in what is dirty, up to `latest`: records behind that are not known. SkimpyOffsetMap."""

    def __init__(self) -> None:
        self.offsets: dict[bytes, int] = {}
        self.latest = _NONE


def empty_batch(base_offset: int, end: int) -> bytes:
    """A batch of no records and no producer, in the place of those in [base_offset, end)."""
    return with_records(
        Batch(base_offset, 0, 0, MAGIC, 0, 0, end - base_offset - 1, _NONE, _NONE, _NONE, _NONE, _NONE, 0), b""
    )


def readable(data: bytes, batch: Batch) -> tuple[bytes, int] | None:
    """The records of a batch and where they begin; None: unreadable_batches_are_kept."""
    try:
        if not checksum_holds(data, batch):
            return None
        buffer, start = compression.records_of(data, batch.attributes & COMPRESSION)
    except NotUnpacked:
        return None
    return bytes(buffer), start  # the unpacked bytes are valid for this step alone


class RecordFilter:
    """The filter of one cleaning of a log. `last_batches`: as ProducerStateManager.last_batches gives them."""

    def __init__(
        self,
        keys: OffsetMap,
        transactions: CleanedTransactions,
        last_batches: dict[int, tuple[int, int]],
        now_ms: int,
        retention_ms: int,
    ) -> None:
        self._keys = keys
        self._transactions = transactions
        self._last_batches = last_batches
        self._now_ms = now_ms
        self._horizon_ms = now_ms + retention_ms
        self.left: bytes | None = None
        """The records that are left of the last batch; None: nothing."""

    def filter(self, batch: Batch, data: bytes) -> Steps:
        """Looks at the batch that is `data`; the result is in `left`."""
        self.left = data
        if batch.attributes & CONTROL:
            self.left = self._marker(batch, data)
            return
        discarded = self._transactions.on_batch(batch)
        if discarded or not batch.record_count:
            self.left = self._without_records(batch) if checksum_holds(data, batch) else data
            return
        try:
            yield from self._records(batch, data)
        except (MalformedRecords, IndexError):
            self.left = data

    def _is_last(self, batch: Batch) -> bool:
        """True if the batch is the last of its producer (last_batch_of_a_producer_stays)."""
        epoch, base_offset = self._last_batches.get(batch.producer_id, (_NONE, _NONE))
        if batch.attributes & CONTROL:
            return base_offset == _NONE and epoch == batch.producer_epoch
        return base_offset == batch.base_offset

    def _marker(self, batch: Batch, data: bytes) -> bytes | None:
        empty = self._transactions.on_marker(batch)
        if not empty or not checksum_holds(data, batch):
            return data
        if batch.attributes & DELETE_HORIZON:
            return data if self._now_ms < batch.base_timestamp or self._is_last(batch) else None
        attributes = batch.attributes | DELETE_HORIZON
        return with_records(batch._replace(attributes=attributes, base_timestamp=self._horizon_ms), data[HEADER.size :])

    def _without_records(self, batch: Batch) -> bytes | None:
        if batch.producer_id < 0 or not self._is_last(batch):
            return None
        attributes = batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL)
        return with_records(batch._replace(attributes=attributes, base_timestamp=_NONE, record_count=0), b"")

    def _records(self, batch: Batch, data: bytes) -> Steps:
        found = readable(data, batch)
        if found is None:
            return
        buffer, start = found
        kept: list[RecordEntry] = []
        tombstones = False
        for number, entry in enumerate(entries(buffer, start, batch.record_count), 1):
            if self._is_kept(batch, buffer, entry):
                kept.append(entry)
                tombstones |= entry.value_end < 0
            if not number % RECORDS_A_STEP:
                yield None
        needs_horizon = tombstones and not batch.attributes & DELETE_HORIZON
        if not kept:
            self.left = self._without_records(batch)
        elif len(kept) < batch.record_count or needs_horizon:
            yield from self._rewrite(batch, buffer, kept, self._horizon_ms if needs_horizon else None)

    def _is_kept(self, batch: Batch, buffer: bytes, entry: RecordEntry) -> bool:
        offset = batch.base_offset + entry.offset_delta
        if offset > self._keys.latest:
            return True
        if entry.key_end < 0 or offset < self._keys.offsets.get(digest(buffer[entry.key_at : entry.key_end]), _NONE):
            return False
        return entry.value_end >= 0 or not batch.attributes & DELETE_HORIZON or self._now_ms < batch.base_timestamp

    def _rewrite(self, batch: Batch, buffer: bytes, kept: list[RecordEntry], horizon_ms: int | None) -> Steps:
        if horizon_ms is None:
            attributes, base_timestamp = batch.attributes, batch.base_timestamp
            pieces = [buffer[entry.start : entry.end] for entry in kept]
        else:
            attributes, base_timestamp = batch.attributes | DELETE_HORIZON, horizon_ms
            moved = batch.base_timestamp - horizon_ms
            pieces = []
            for number, entry in enumerate(kept, 1):
                pieces.append(_with_delta(buffer, entry, entry.timestamp_delta + moved))
                if not number % RECORDS_A_STEP:
                    yield None
        latest = batch.max_timestamp
        if not batch.attributes & LOG_APPEND_TIME:
            latest = batch.base_timestamp + max(entry.timestamp_delta for entry in kept)
        records = b"".join(pieces)
        packed: list[bytes] = []

        def pack() -> None:
            packed.append(compression.packed(batch.attributes & COMPRESSION, records))

        if len(records) > _AT_ONCE_BYTES and batch.attributes & COMPRESSION:
            yield pack
        else:
            pack()
        header = batch._replace(
            attributes=attributes, base_timestamp=base_timestamp, max_timestamp=latest, record_count=len(kept)
        )
        self.left = with_records(header, packed[0])


def _with_delta(buffer: bytes, entry: RecordEntry, timestamp_delta: int) -> bytes:
    """The record with another timestamp delta (ms)."""
    body = (
        buffer[entry.body_at : entry.body_at + 1] + packed_varint(timestamp_delta) + buffer[entry.offset_at : entry.end]
    )
    return packed_varint(len(body)) + body
