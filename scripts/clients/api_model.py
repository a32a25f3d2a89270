"""The admin API's OpenAPI document as what a client in any language is written from: types, and operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SCALARS = ("string", "integer", "number", "boolean")
WORDS_AT = 118


@dataclass(frozen=True)
class Kind:
    """A type. `form`: one of SCALARS, any, word (one of `words`), record (by its `name`), list (of parts[0]), map (of text to
    parts[0]), tuple (of its parts) or either (one of its parts)."""

    form: str
    parts: tuple[Kind, ...] = ()
    name: str = ""
    words: tuple[str, ...] = ()
    nullable: bool = False


class Field(NamedTuple):
    """A member of a record; `name` as JSON has it."""

    name: str
    kind: Kind
    required: bool
    says: str


class Record(NamedTuple):
    """An object of the API."""

    name: str
    says: str
    fields: tuple[Field, ...]


class Operation(NamedTuple):
    """One route. `answer` None: text, not JSON."""

    name: str
    says: str
    method: str
    path: str
    in_path: tuple[Field, ...]
    in_query: tuple[Field, ...]
    body: Kind | None
    answer: Kind | None


class ApiModel(NamedTuple):
    """Everything that a client has."""

    records: tuple[Record, ...]
    operations: tuple[Operation, ...]


def model_of(document: Mapping[str, Any]) -> ApiModel:
    """The model of an OpenAPI document as broker/admin/openapi.py makes it."""
    records = tuple(_record(name, schema) for name, schema in document["components"]["schemas"].items())
    operations = tuple(
        _operation(method.upper(), path, told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    )
    return ApiModel(records, operations)


def _record(name: str, schema: Mapping[str, Any]) -> Record:
    required = schema.get("required", ())
    fields = tuple(
        Field(each, kind_of(told), each in required, told.get("description", ""))
        for each, told in schema["properties"].items()
    )
    return Record(name, schema.get("description", ""), fields)


def _operation(method: str, path: str, told: Mapping[str, Any]) -> Operation:
    fields = {
        place: tuple(
            Field(each["name"], kind_of(each["schema"]), each["required"], each["description"])
            for each in told.get("parameters", ())
            if each["in"] == place
        )
        for place in ("path", "query")
    }
    content = told["responses"]["200"]["content"]
    body = told.get("requestBody")
    return Operation(
        told["operationId"],
        f"{told['summary']}. {told.get('description', '')}".strip(),
        method,
        path,
        fields["path"],
        fields["query"],
        kind_of(body["content"]["application/json"]["schema"]) if body else None,
        kind_of(content["application/json"]["schema"]) if "application/json" in content else None,
    )


def kind_of(schema: Mapping[str, Any]) -> Kind:
    """The type of a schema."""
    if "$ref" in schema:
        return Kind("record", name=schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return _either([kind_of(each) for each in schema["anyOf"]])
    types = schema.get("type")
    if isinstance(types, list):
        return _either([kind_of({**schema, "type": each}) for each in types])
    if types is None:
        return Kind("any")
    if types == "null":
        return Kind("null")
    if "enum" in schema:
        return Kind("word", words=tuple(schema["enum"]))
    if types == "array" and "prefixItems" in schema:
        return Kind("tuple", tuple(kind_of(each) for each in schema["prefixItems"]))
    if types == "array":
        return Kind("list", (kind_of(schema["items"]),))
    if types == "object":
        return Kind("map", (kind_of(schema["additionalProperties"]),))
    return Kind(types)


def _either(kinds: list[Kind]) -> Kind:
    flat = [part for kind in kinds for part in (kind.parts if kind.form == "either" else (kind,))]
    parts = tuple(dict.fromkeys(part for part in flat if part.form != "null"))
    nullable = any(kind.form == "null" or kind.nullable for kind in kinds)
    if len(parts) == 1:
        return Kind(parts[0].form, parts[0].parts, parts[0].name, parts[0].words, nullable)
    return Kind("either", parts, nullable=nullable)


# ---- names


def words_of(name: str) -> list[str]:
    """`client-id`, `config_version`, `AddressLimits` -> its words in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]


def camel(name: str) -> str:
    """configVersion"""
    first, *rest = words_of(name)
    return first + "".join(word.capitalize() for word in rest)


def pascal(name: str) -> str:
    """ConfigVersion"""
    return "".join(word.capitalize() for word in words_of(name))


def wrapped(text: str, start: str, width: int = WORDS_AT) -> list[str]:
    """Lines of at most `width` characters that begin with `start`."""
    lines = [start]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width and lines[-1] != start:
            lines.append(start)
        lines[-1] += (" " if lines[-1] != start else "") + word
    return lines if text else []
