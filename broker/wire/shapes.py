"""Kafka's message definitions, as kio's dataclasses state them: fields, kinds, defaults."""

import dataclasses
import struct
from collections.abc import Callable
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from broker.wire import primitives

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}


class Field(NamedTuple):
    name: str
    kind: str  # a key of FIXED, "string", "bytes" or "entity"
    array: bool
    nullable: bool  # of the array, if it is one
    entity: type | None  # kio's class, for kind "entity"
    tag: int | None
    default: object  # dataclasses.MISSING: must be given


def _strip_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) in (UnionType, Union):
        inner = [arg for arg in get_args(kind) if arg is not NoneType]
        return inner[0], len(inner) < len(get_args(kind))
    return kind, False


def _field(field: dataclasses.Field[Any]) -> Field:
    inner, nullable = _strip_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = _strip_none(get_args(inner)[0])
    kind = field.metadata.get("kafka_type", "entity")
    tag = field.metadata.get("tag")
    default = field.default
    if default is dataclasses.MISSING and tag is not None:
        default = () if array else {"string": "", "bytes": b"", "uuid": None, "bool": False}.get(kind, 0)
    if field.name == "throttle_time":
        default = timedelta(0)
    return Field(
        name=field.name,
        kind="bytes" if kind == "records" else kind,
        array=array,
        nullable=nullable,
        entity=inner if kind == "entity" else None,
        tag=tag,
        default=default,
    )


def fields_of(entity: type) -> list[Field]:
    return [_field(field) for field in dataclasses.fields(entity)]


class Shape:
    """One structure: its fields, and the names that its compiled functions use.

    `D_<field>` is the field's default and `T_<field>` the compiled class of a nested structure, as `nested` gives it.
    """

    def __init__(self, entity: type, nested: Callable[[type], Any]) -> None:
        self.flexible: bool = entity.__flexible__  # type: ignore[attr-defined]
        self.fields = fields_of(entity)
        self.plain = [field for field in self.fields if field.tag is None]
        self.tagged = sorted(
            (field for field in self.fields if field.tag is not None), key=lambda field: field.tag or 0
        )
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "unpack_from": struct.unpack_from,
            "pack": struct.pack,
            **vars(primitives),
        }
        for field in self.fields:
            if field.entity is not None:
                self.names[f"T_{field.name}"] = nested(field.entity)
            self.names[f"D_{field.name}"] = self._default(field)

    def default(self, field: Field) -> Any:
        """dataclasses.MISSING if there is none."""
        return self.names[f"D_{field.name}"]

    def _default(self, field: Field) -> Any:
        """A nested structure's default is kio's instance of it: ours has the same values."""
        if field.kind == "entity" and not field.array and field.default not in (None, dataclasses.MISSING):
            return _convert(field.default, self.names[f"T_{field.name}"])
        return field.default

    def least_size_bytes(self) -> int:
        def one(field: Field) -> int:
            if field.array:
                return 1 if self.flexible else 4
            if field.kind in FIXED:
                return struct.calcsize(">" + FIXED[field.kind])
            if field.kind == "entity":
                return 1 if field.nullable else int(self.names[f"T_{field.name}"].least_size_bytes)
            return 1 if self.flexible else {"string": 2, "bytes": 4}[field.kind]

        return sum(one(field) for field in self.plain) + self.flexible


def _convert(value: Any, target: Any) -> Any:
    """kio's instance as one of ours; used for defaults only, which hold no arrays of structures."""
    return target(**{name: getattr(value, name) for name in target.field_names})
