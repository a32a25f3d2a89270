"""Control batches: the markers that end a producer's transaction in a partition's log.

A marker is a batch of one record, with the attributes of a transactional control batch, no sequence number, and no
compression. Its record has the key [version i16, type i16] and the value [version i16, coordinator epoch i32].
Source: ControlRecordType, EndTransactionMarker, MemoryRecords.withEndTransactionMarker.
"""

import struct
from typing import NamedTuple

from broker.storage.records import CONTROL, HEADER, TRANSACTIONAL, sealed
from broker.wire.primitives import Buffer

ABORT, COMMIT = 0, 1
BYTES = 78
"""The size of a marker's batch."""
_RECORD = struct.Struct(">bbbbbhhbhib")
_RECORD_BYTES = _RECORD.size - 1
_TYPE_AT = HEADER.size + 7
_COORDINATOR_EPOCH_AT = HEADER.size + 12


class EndTransactionMarker(NamedTuple):
    """`coordinator_epoch` is that of the transaction coordinator which ended the transaction; `transaction_version`, of KIP-890's
    protocols, is known to a request alone and not in the log."""

    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


def end_marker(producer_id: int, epoch: int, marker: EndTransactionMarker, now_ms: int) -> bytes:
    """The batch of a marker; its base offset and leader epoch are the log's to fill in."""
    record = _RECORD.pack(
        _zigzag(_RECORD_BYTES), 0, 0, 0, _zigzag(4), 0, COMMIT if marker.commit else ABORT, _zigzag(6), 0,
        marker.coordinator_epoch, 0,
    )  # fmt: skip
    attributes = TRANSACTIONAL | CONTROL
    return sealed(record, 1, now_ms, now_ms, attributes=attributes, producer_id=producer_id, epoch=epoch)


def marker_of(buffer: Buffer, at: int = 0) -> EndTransactionMarker:
    """The marker in the control batch at `at`. Its checksum is known to hold."""
    (kind,) = struct.unpack_from(">h", buffer, at + _TYPE_AT)
    (coordinator_epoch,) = struct.unpack_from(">i", buffer, at + _COORDINATOR_EPOCH_AT)
    return EndTransactionMarker(kind == COMMIT, coordinator_epoch)


def _zigzag(value: int) -> int:
    """A number under 64 as a varint of one byte."""
    return value << 1
