"""Kafka's primitive types on the wire, for compiled readers and writers (broker/wire/codec.py) to call, and for records that
are packed as messages are.

An unsigned varint has seven bits a byte, lowest first; lengths of flexible versions are such varints, plus one so
that zero can be null. Tagged fields (KIP-482) are a count, then tag, size and value of each.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from mmap import mmap
from typing import NoReturn, TypeAlias
from uuid import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NIL_UUID = UUID(int=0)
ONE_BYTE = tuple(bytes((value,)) for value in range(128))


MAX_STRING_BYTES = 0x7FFF
MAX_TAGS = 10_000
MAX_ARRAY = 1_000_000
"""Most tagged fields of one structure, and most items of one array, as the readers of Kafka 4.4 have them; Kafka checks both
before it allocates (kafka.apache.org/44/getting-started/upgrade; CVE-2026-111115)."""
FREE_TAGS = 100
"""Tagged fields that a structure may have before they count as items; no client sends more than a few."""
COUNT_ITEMS_ABOVE_BYTES = 4096
"""Items are counted in messages longer than this: a shorter one has no room for many."""


class Malformed(ValueError):
    """The bytes are not a message of this type and version."""


class TooMany(Malformed):
    """A message has more array items than its reader may take."""


ANY = sys.maxsize


class ItemCount:
    """Array items of the message that is being read, at all depths, and tagged fields of structures with more than FREE_TAGS.
    `most`: above it, reading ends with TooMany."""

    def __init__(self) -> None:
        self.most = ANY
        self.items = 0

    def begin(self, most: int) -> None:
        self.most, self.items = most, 0

    def claim(self, items: int) -> None:
        """The items of one array. Raises TooMany, and Malformed for more than MAX_ARRAY."""
        if items > MAX_ARRAY:
            raise Malformed(f"an array of more than {MAX_ARRAY:,} items")
        self.items += items
        if self.items > self.most:
            raise TooMany(f"more than {self.most} items")


ITEMS = ItemCount()
"""One for the process: a message is read without interruption."""


def read_uvarint(buffer: Buffer, first: int, at: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, above 127, came before `at`: (value, next offset)."""
    value, shift = first & 0x7F, 7
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise Malformed("a varint over 32 bits")
            return value, at
        shift += 7
        if shift > 28:
            raise Malformed("a varint of more than five bytes")


def uvarint(value: int) -> bytes:
    if value < 128:
        return ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str | None) -> bytes:
    """STRING, NULLABLE_STRING"""
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big", signed=True) + encoded


def compact_string(text: str | None) -> bytes:
    """COMPACT_STRING, COMPACT_NULLABLE_STRING"""
    if text is None:
        return b"\0"
    encoded = text.encode()
    return uvarint(len(encoded) + 1) + encoded


def compact_array(items: Sequence[bytes]) -> bytes:
    """COMPACT_ARRAY"""
    return uvarint(len(items) + 1) + b"".join(items)


def cut_text(encoded: bytes) -> bytes:
    """The beginning of a UTF-8 text that is too long for a string of the protocol, and `...`."""
    sign = b"..."
    return encoded[: MAX_STRING_BYTES - len(sign)].decode(errors="ignore").encode() + sign


def to_timedelta(ms: int) -> timedelta:
    """Clamped to what a timedelta can be."""
    try:
        return timedelta(milliseconds=ms)
    except OverflowError:
        return timedelta.max if ms > 0 else timedelta.min


def from_timedelta(value: timedelta | int) -> int:
    if isinstance(value, int):
        return value
    return value.days * 86_400_000 + value.seconds * 1000 + value.microseconds // 1000


def to_datetime(ms: int) -> datetime | None:
    return None if ms == -1 else EPOCH + timedelta(milliseconds=ms)


def from_datetime(value: datetime | int | None) -> int:
    if value is None:
        return -1
    return value if isinstance(value, int) else from_timedelta(value - EPOCH)


@lru_cache(maxsize=4096)
def to_uuid(raw: bytes) -> UUID | None:
    return UUID(bytes=raw) if any(raw) else None


def from_uuid(value: UUID | None) -> bytes:
    return NIL_UUID.bytes if value is None else value.bytes


def malformed(what: str) -> NoReturn:
    raise Malformed(what)


def claim_tags(count: int) -> None:
    """The tagged fields of a structure that has more than FREE_TAGS. Raises TooMany, and Malformed for more than MAX_TAGS."""
    if count > MAX_TAGS:
        raise Malformed(f"more than {MAX_TAGS:,} tagged fields")
    ITEMS.claim(count)


def skip_tags(buffer: Buffer, at: int, end: int) -> int:
    """The offset behind a block of tagged fields none of which is known."""
    count = buffer[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(buffer, count, at)
    if count > FREE_TAGS:
        claim_tags(count)
    for _ in range(count):
        _tag, at, stop = read_tag(buffer, at, end)
        at = stop
    return at


def read_tag(buffer: Buffer, at: int, end: int) -> tuple[int, int, int]:
    """One tagged field's head: (tag, where its value starts, where it must end)."""
    tag = buffer[at]
    at += 1
    if tag > 127:
        tag, at = read_uvarint(buffer, tag, at)
    size = buffer[at]
    at += 1
    if size > 127:
        size, at = read_uvarint(buffer, size, at)
    if size > end - at:
        raise Malformed("a tagged field longer than the message")
    return tag, at, at + size
