"""JSON Schema (2020-12) of Python's types: what a TypedDict, a list or a union of them is as JSON. Pure.

The types are str, int, float, bool, None, object (any JSON), Literal, unions, list, dict with keys of text, tuple of a fixed
length, and TypedDict. A text in Annotated becomes the description, and so does the docstring of a TypedDict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema: TypeAlias = dict[str, object]
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


class Schemas:
    """Makes schemas. A TypedDict is referred to by its name; `named` has the schema of each that was met."""

    def __init__(self, place: str) -> None:
        """`place`: where `named` will stand, such as `#/components/schemas/`."""
        self.named: dict[str, Schema] = {}
        self._place = place
        self._kinds: dict[str, object] = {}

    def of(self, kind: object) -> Schema:
        """The schema of a type. Raises TypeError for a type that has none."""
        if kind is object:
            return {}
        if kind in _SCALARS:
            return {"type": _SCALARS[kind]}
        if is_typeddict(kind):
            return self._reference(kind)
        of, args = get_origin(kind), get_args(kind)
        if of is Annotated:
            descriptions = [each for each in args[1:] if isinstance(each, str)]
            return {**self.of(args[0]), **({"description": descriptions[0]} if descriptions else {})}
        if of is Literal:
            return {"type": "string", "enum": list(args)}
        if of in (Union, UnionType):
            return _either([self.of(each) for each in args])
        if of is list:
            return {"type": "array", "items": self.of(args[0])}
        if of is tuple:
            return {
                "type": "array", "prefixItems": [self.of(each) for each in args], "minItems": len(args), "maxItems": len(args),
            }  # fmt: skip
        if of is dict:
            return {"type": "object", "additionalProperties": self.of(args[1])}
        raise TypeError(f"{kind} has no JSON Schema")

    def _reference(self, kind: Any) -> Schema:
        name: str = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"two types are called {name}")
        if name not in self.named:
            self.named[name] = {}  # in case it refers to itself
            self.named[name] |= self._object(kind)
        return {"$ref": f"{self._place}{name}"}

    def _object(self, kind: object) -> Schema:
        properties, required = {}, []
        for name, hint in get_type_hints(kind, include_extras=True).items():
            is_optional = get_origin(hint) is NotRequired
            properties[name] = self.of(get_args(hint)[0] if is_optional else hint)
            if not is_optional:
                required.append(name)
        about = {"description": " ".join(kind.__doc__.split())} if kind.__doc__ else {}
        return {"type": "object", **about, "properties": properties, **({"required": required} if required else {})}


def _either(parts: Sequence[Mapping[str, object]]) -> Schema:
    """One of several schemas; those that are a type alone are one of several types."""
    types = [part["type"] for part in parts if part.keys() == {"type"}]
    if "number" in types and "integer" in types:
        types.remove("integer")
    plain = [{"type": types if len(types) > 1 else types[0]}] if types else []
    others = [dict(part) for part in parts if part.keys() != {"type"}]
    found = [*others, *plain]
    return found[0] if len(found) == 1 else {"anyOf": found}
