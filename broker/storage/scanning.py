"""Finds the sound batches in a segment file of which any byte may be wrong.

A batch's checksum covers it from its attributes on. The fields in front of it (base offset, length, leader epoch, magic)
are known from elsewhere: offsets follow each other within a file, so they can be put right.

every_sound_batch_is_found  Every batch whose checksum holds is found, also behind damage.
runs_without_gaps  Within a run offsets are without gaps. A new run begins only behind damage.
"""

import struct
from dataclasses import dataclass, field
from mmap import mmap
from typing import NamedTuple

from broker.storage.control_records import EndTransactionMarker, marker_of
from broker.storage.records import CONTROL, HEADER, MAGIC, OVERHEAD, PLACE, Batch, checksum_holds, header_at

_MAGIC_AT = 16
_MAGIC_BYTE = bytes([MAGIC])
_MOST_LOST = 1 << 32  # records that damage can have cost between two sound batches
_OFFSET = struct.Struct(">q")


class Piece(NamedTuple):
    """A sound batch with its fields put right. `position`: where it is in the file, in bytes. `marker`: of a control batch."""

    position: int
    batch: Batch
    marker: EndTransactionMarker | None = None


@dataclass(slots=True, eq=False)
class Scan:
    """`runs` of batches without a gap; `wrong`: the batches whose fields had to be put right; `damaged`: (from, to) of
    bytes that are no batch; `torn_bytes`: how many at the end are the beginning of a batch."""

    runs: list[list[Piece]] = field(default_factory=list)
    wrong: list[Piece] = field(default_factory=list)
    damaged: list[tuple[int, int]] = field(default_factory=list)
    torn_bytes: int = 0


def scan(mapped: mmap, length: int, base_offset: int) -> Scan:
    """The batches of a file, of `length` bytes whose first record has `base_offset`."""
    found = Scan()
    run: list[Piece] = []
    position, expected = 0, base_offset
    while position < length:
        batch = _batch_at(mapped, position, length)
        if batch is None:
            end = _next_batch(mapped, position + 1, length, expected)
            batch = _with_its_length(mapped, position, end)
            if batch is None:
                if end == length and _is_torn(mapped, position, length, expected):
                    found.torn_bytes = end - position
                else:
                    found.damaged.append((position, end))
                if run:
                    found.runs.append(run)
                run, position = [], end
                continue
        if not run and position and batch.base_offset >= expected:
            expected = batch.base_offset  # how many records were in front of it can't be told, so it is believed
        right = batch._replace(base_offset=expected, leader_epoch=0, magic=MAGIC)
        run.append(Piece(position, right, marker_of(mapped, position) if right.attributes & CONTROL else None))
        if mapped[position : position + _MAGIC_AT + 1] != head_of(right):
            found.wrong.append(run[-1])
        position += right.size
        expected = right.last_offset + 1
    if run:
        found.runs.append(run)
    return found


def head_of(batch: Batch) -> bytes:
    """The bytes of a batch in front of its checksum."""
    return PLACE.pack(batch.base_offset, batch.length, batch.leader_epoch) + _MAGIC_BYTE


def _batch_at(mapped: mmap, position: int, length: int) -> Batch | None:
    """The batch at `position` if its checksum holds; its base offset, leader epoch and magic may be wrong."""
    if length - position < HEADER.size:
        return None
    batch = header_at(mapped, position)
    return batch if HEADER.size <= batch.size <= length - position and _is_sound(mapped, batch, position) else None


def _next_batch(mapped: mmap, position: int, length: int, expected: int) -> int:
    """Where the next whole batch begins, at `position` or behind it; `length` if there is none.

    Its base offset must be plausible: else a batch that a client put into a record's value could be taken for one.
    """
    while (at := mapped.find(_MAGIC_BYTE, position + _MAGIC_AT)) >= 0:
        position = at - _MAGIC_AT
        (base_offset,) = _OFFSET.unpack_from(mapped, position)
        if 0 <= base_offset - expected < _MOST_LOST and _batch_at(mapped, position, length) is not None:
            return position
        position += 1
    return length


def _with_its_length(mapped: mmap, position: int, end: int) -> Batch | None:
    """The batch from `position` to `end`, if nothing but its length is wrong."""
    if end - position < HEADER.size:
        return None
    batch = header_at(mapped, position)._replace(length=end - position - OVERHEAD)
    return batch if _is_sound(mapped, batch, position) else None


def _is_sound(mapped: mmap, batch: Batch, position: int) -> bool:
    """True if the bytes of a batch are what they were; a cleaned one may have fewer records than offsets."""
    return 0 <= batch.record_count <= batch.last_offset_delta + 1 and checksum_holds(mapped, batch, position)


def _is_torn(mapped: mmap, position: int, length: int, expected: int) -> bool:
    """True if what lies at the end is the beginning of a batch, as a process leaves it that is killed while it writes."""
    left = length - position
    if left < HEADER.size:
        return mapped[position : position + 8] == _OFFSET.pack(expected)[:left]
    batch = header_at(mapped, position)
    return batch.base_offset == expected and batch.magic == MAGIC and batch.size > left
