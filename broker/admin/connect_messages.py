"""Messages of the Connect protocol in both of its codecs, JSON and Protocol Buffers, from one description of each. Pure.

A message is a mapping of its fields' names, as the .proto has them, to values: what is not in it is absent from JSON too, and takes
its default where Protocol Buffers are read. Times and durations are whole nanoseconds.

Source: connectrpc.com/docs/protocol, the JSON mapping of proto3 (a 64-bit number is text, a Duration "1.5s").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from broker.admin.protobuf import VARINT, NotProtobuf, fields, length_field, varint_field

Values: TypeAlias = Mapping[str, Any]
_S: Final = 1_000_000_000


class Scalar(Enum):
    """A type of field: a number of 32 bits, one of 64, text, true or false, a Timestamp, a Duration."""

    INT = "a whole number"
    BIG = "a whole number of 64 bits"
    TEXT = "text"
    BOOL = "true or false"
    TIME = "a time such as 2026-01-31T10:22:54Z"
    DURATION = "a duration such as 30s or 100ms"


@dataclass(frozen=True)
class Choices:
    """An enum: its values' numbers by their names."""

    numbers: Mapping[str, int]


@dataclass(frozen=True)
class Field:
    """One field of a message."""

    name: str
    number: int
    kind: Scalar | Choices | MessageType
    repeated: bool = False

    @property
    def json_name(self) -> str:
        """lowerCamelCase."""
        first, *others = self.name.split("_")
        return first + "".join(each.title() for each in others)


@dataclass(frozen=True)
class MessageType:
    """A type of message: its fields."""

    fields: tuple[Field, ...]

    def paths(self, before: str = "") -> Iterator[tuple[str, Scalar | Choices]]:
        """The path, such as `source.ip_address`, and kind of each field that is not a message; what is in repeated messages is left
        out."""
        for field in self.fields:
            if isinstance(field.kind, MessageType):
                if not field.repeated:
                    yield from field.kind.paths(f"{before}{field.name}.")
            else:
                yield before + field.name, field.kind


def to_json(message: MessageType, values: Values) -> dict[str, Any]:
    """The values as JSON has them."""
    return {
        field.json_name: [_json(field.kind, each) for each in values[field.name]]
        if field.repeated
        else _json(field.kind, values[field.name])
        for field in message.fields
        if field.name in values
    }


def _json(kind: Scalar | Choices | MessageType, value: Any) -> object:
    if isinstance(kind, MessageType):
        return to_json(kind, value)
    if kind is Scalar.BIG:
        return str(value)
    if kind is Scalar.TIME:
        seconds, ns = divmod(value, _S)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ns:09}Z"
    if kind is Scalar.DURATION:
        seconds, ns = divmod(value, _S)
        return f"{seconds}.{ns:09}".rstrip("0").rstrip(".") + "s"
    return value


def to_protobuf(message: MessageType, values: Values) -> bytes:
    """The values on the wire; proto3 leaves out what is the default."""
    return b"".join(
        _field(field, each)
        for field in message.fields
        if field.name in values
        for each in (values[field.name] if field.repeated else (values[field.name],))
    )


def _field(field: Field, value: Any) -> bytes:
    kind = field.kind
    if isinstance(kind, MessageType):
        return length_field(field.number, to_protobuf(kind, value))
    if kind in (Scalar.TIME, Scalar.DURATION):
        seconds, ns = divmod(value, _S)
        return length_field(
            field.number, b"".join(varint_field(n, each) for n, each in ((1, seconds), (2, ns)) if each)
        )
    if isinstance(kind, Choices):
        value = kind.numbers[value]
    if not value:
        return b""
    return length_field(field.number, value.encode()) if kind is Scalar.TEXT else varint_field(field.number, int(value))


def from_protobuf(message: MessageType, data: bytes) -> dict[str, object]:
    """The fields of a message that a client sent, by name; the type may have numbers, texts and booleans only. Fields that the type
    does not have are skipped. Raises NotProtobuf."""
    known = {field.number: field for field in message.fields}
    found: dict[str, object] = {}
    try:
        for number, kind, value in fields(data):
            field = known.get(number)
            if field is None:
                continue
            if (kind == VARINT) is (field.kind is Scalar.TEXT):
                raise NotProtobuf(f"{field.name} is of another type")
            found[field.name] = value.decode() if field.kind is Scalar.TEXT else _signed(value)
    except (IndexError, UnicodeDecodeError):
        raise NotProtobuf("the message ends too early, or its text is not UTF-8") from None
    return found


def _signed(value: int) -> int:
    return value - (value >> 63 << 64)


def nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """`{"source.port": 9}` as `{"source": {"port": 9}}`."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        place = found
        for each in parents:
            place = place.setdefault(each, {})
        place[name] = value
    return found


def numbered(*names: str) -> Choices:
    """An enum whose values count from 0."""
    return Choices({name: number for number, name in enumerate(names)})


def message(*given: Sequence[Any]) -> MessageType:
    """A message of (name, kind) numbered from 1, or (name, kind, True) of a repeated field."""
    return MessageType(tuple(Field(each[0], number, *each[1:]) for number, each in enumerate(given, 1)))
