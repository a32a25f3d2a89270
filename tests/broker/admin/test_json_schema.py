"""Which JSON Schema a type has."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

import pytest

from broker.admin.json_schema import Schemas


class Leaf(TypedDict):
    """A leaf,
    of a tree."""

    name: Annotated[str, "What it is called."]
    size: NotRequired[Annotated[float, "Metres."]]
    parent: Tree | None


class Tree(TypedDict):
    leaves: list[Leaf]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (int, {"type": "integer"}),
        (object, {}),
        (str | None, {"type": ["string", "null"]}),
        (int | float | None, {"type": ["number", "null"]}),
        (list[str] | bool, {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "boolean"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            tuple[str, object],
            {"type": "array", "prefixItems": [{"type": "string"}, {}], "minItems": 2, "maxItems": 2},
        ),
        (Annotated[int, 5, "Bytes."], {"type": "integer", "description": "Bytes."}),
    ],
)
def test_a_type_has_a_schema(kind: object, schema: object) -> None:
    assert Schemas("#/").of(kind) == schema


def test_a_typed_dict_is_named_once_also_where_it_refers_to_itself() -> None:
    schemas = Schemas("#/named/")
    assert schemas.of(Tree) == schemas.of(Tree) == {"$ref": "#/named/Tree"}
    assert schemas.named == {
        "Tree": {
            "type": "object",
            "properties": {"leaves": {"type": "array", "items": {"$ref": "#/named/Leaf"}}},
            "required": ["leaves"],
        },
        "Leaf": {
            "type": "object",
            "description": "A leaf, of a tree.",
            "properties": {
                "name": {"type": "string", "description": "What it is called."},
                "size": {"type": "number", "description": "Metres."},
                "parent": {"anyOf": [{"$ref": "#/named/Tree"}, {"type": "null"}]},
            },
            "required": ["name", "parent"],
        },
    }


def test_two_types_of_one_name_are_refused() -> None:
    schemas = Schemas("#/")
    schemas.of(TypedDict("Leaf", {"name": str}))
    with pytest.raises(TypeError, match="two types are called Leaf"):
        schemas.of(Leaf)


def test_a_type_that_json_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="has no JSON Schema"):
        Schemas("#/").of(bytes)
