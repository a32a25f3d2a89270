"""The wire format of Protocol Buffers: fields of a message, read and written.

Written by hand: protobuf weighs more than the admin API, for a format of five wire types. The meaning of fields stands where they
are read (otlp.py) and written (connect_messages.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from broker.wire.primitives import uvarint

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5
_SIZES: Final = {FIXED64: 8, FIXED32: 4}
_64_BITS: Final = (1 << 64) - 1


class NotProtobuf(ValueError):
    """The bytes are no message."""


class WireField(NamedTuple):
    """One field of a message as it was sent. `value`: an int of a varint, else bytes."""

    number: int
    kind: int
    value: Any


def fields(message: bytes) -> Iterator[WireField]:
    """Every field, in the order sent. Raises NotProtobuf, or IndexError where the message ends too early."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: object
        if kind == VARINT:
            value, at = _read_varint(message, at)
        else:
            size = _SIZES.get(kind)
            if kind == LENGTH:
                size, at = _read_varint(message, at)
            if size is None or at + size > len(message):
                raise NotProtobuf(f"byte {at} belongs to no field")
            value, at = message[at : at + size], at + size
        yield WireField(number, kind, value)


def varint_field(number: int, value: int) -> bytes:
    """A whole number, a bool or an enum's number; negative ones as 64 bits."""
    return uvarint(number << 3 | VARINT) + uvarint(value & _64_BITS)


def length_field(number: int, value: bytes) -> bytes:
    """Text as UTF-8, or another message."""
    return uvarint(number << 3 | LENGTH) + uvarint(len(value)) + value


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotProtobuf(f"the number before byte {at} has no end")
