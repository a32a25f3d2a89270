"""Requests of any API and version out of plain values: {"topics": [{"name": "a", "partitions": [0]}]}.

A field that is not given has the schema's default, else the dullest value that Kafka reads. A field that this version lacks is
left out, so that the same values serve every version of an API.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from wired import KEYS, dull_value

from broker.wire import wire
from broker.wire.codec import Message
from broker.wire.shapes import Field, fields_of


class NotInVersion(Exception):
    """A null that this version can't say."""


def request(api: str, version: int, values: Mapping[str, Any]) -> Message:
    """Durations are given in milliseconds. Raises NotInVersion, and TypeError for a field that no version has."""
    types = wire.request_types(KEYS[api], version)
    module = wire._module(KEYS[api], version, "request")
    return _message(api, getattr(module, types.top.__name__), types, values)


def _message(api: str, entity: type, types: Any, values: Mapping[str, Any]) -> Message:
    classes = wire.request_fields(KEYS[api])
    if unknown := values.keys() - {name for fields in classes.values() for name in fields}:
        raise TypeError(f"no version of {api} has {', '.join(sorted(unknown))}")
    made = {}
    for field in fields_of(entity):
        if field.name in values:
            made[field.name] = _value(api, field, types, values[field.name])
        elif field.default is dataclasses.MISSING:
            made[field.name] = dull_value(field)
    message: Message = getattr(types, entity.__name__)(**made)
    return message


def _value(api: str, field: Field, types: Any, value: Any) -> Any:
    if value is None:
        if not field.nullable and field.kind != "uuid":
            raise NotInVersion(f"{field.name} of {api} can't be null")
        return None
    if field.array:
        return tuple(_value(api, field._replace(array=False, nullable=False), types, each) for each in value)
    if field.entity is not None:
        return _message(api, field.entity, types, value)
    return value
