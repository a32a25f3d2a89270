"""The answer to a request that is not served: the error, where its API has a place for it.

An answer with an error code of its own has the error there. Each topic, partition, group, ... that the request names has it
beside its name, down to the first structure that has a place for one. All else has its default, or is empty. A Metadata
request that names no topic has no place before version 13: its answer then names no broker, which clients take for none.

Source: AbstractRequest.getErrorResponse of each API.
"""

import dataclasses
from collections.abc import Collection
from functools import cache
from typing import Final, NamedTuple

from broker.wire import wire
from broker.wire.codec import Message
from broker.wire.shapes import Field

_PRODUCE: Final = 0
_MESSAGE: Final = "error_message"
_NAMES: Final = (
    frozenset({"name", "topic", "topic_name", "user"}),
    frozenset({"index", "partition", "partition_index", "partition_id"}),
)
"""Names of requests and answers for the same thing."""


class _Form(NamedTuple):
    """The answer of an API in a version: the fields of its structures, by class name, and those that have an error."""

    classes: dict[str, list[Field]]
    with_error: frozenset[str]


class _Error(NamedTuple):
    code: int
    message: str | None


def error_answer(call: wire.Versioned, request: Message, code: int, message: str | None) -> Message | None:
    """The response that has `code` for everything the request asks; None for one that wants no answer (acks=0)."""
    if call.api_key == _PRODUCE and getattr(request, "acks", None) == 0:
        return None
    types = wire.types(call.api_key, call.api_version)
    form = _form(call.api_key, call.api_version)
    return _made(types, form, types.top.__name__, request, _Error(code, message))


def _made(types: wire.Types, form: _Form, name: str, source: object, error: _Error) -> Message:
    """The structure `name` about `source`: a structure of the request, or a name or number in it."""
    fields = form.classes[name]
    is_top = name == types.top.__name__
    has_own = any(_is_error(field) for field in fields)
    values: dict[str, object] = {}
    for field in fields:
        if _is_error(field):
            values[field.name] = error.code
        elif field.name == _MESSAGE:
            values[field.name] = error.message
        elif field.entity is not None and field.array and field.entity.__name__ in form.with_error:
            items = _items(source, field.name) if is_top or not has_own else ()
            values[field.name] = tuple(_made(types, form, field.entity.__name__, item, error) for item in items)
        elif field.default is dataclasses.MISSING or not is_top:
            values.update(_plain(field, source))
            if values.get(field.name, ...) is None and field.entity is not None and not field.nullable:
                values[field.name] = _made(types, form, field.entity.__name__, None, error)
    if not isinstance(source, Message):
        _name(values, fields, source)
    made: Message = getattr(types, name)(**values)
    return made


def _is_error(field: Field) -> bool:
    return field.kind == "error_code" and field.tag is None and not field.array


def _plain(field: Field, source: object) -> dict[str, object]:
    """The field as the request has it, else its default or what is shortest."""
    if not field.array and field.entity is None and isinstance(source, Message):
        for name in (field.name, *_words_for(field.name)):
            if name in source.field_names:
                return {field.name: getattr(source, name)}
    return {field.name: wire.shortest(field)} if field.default is dataclasses.MISSING else {}


def _words_for(name: str) -> Collection[str]:
    return next((words for words in _NAMES if name in words), ())


def _name(values: dict[str, object], fields: list[Field], source: object) -> None:
    """Puts an item of a list of names, or of numbers, in the request into the first field that can have it."""
    kinds = ("string",) if isinstance(source, str) else ("int32",) if isinstance(source, int) else ("uuid",)
    for field in fields:
        if field.kind in kinds and not field.array and field.name != _MESSAGE:
            values[field.name] = source
            return


def _items(source: object, name: str) -> tuple[object, ...]:
    """The items that the request names: its array of that name, else its first array."""
    if not isinstance(source, Message):
        return ()
    arrays = [each for each in source.field_names if isinstance(getattr(source, each), (tuple, list))]
    found = name if name in arrays else next(iter(arrays), None)
    return () if found is None else tuple(getattr(source, found))


@cache
def _form(api_key: int, version: int) -> _Form:
    classes = wire.fields_of_version(api_key, version, "response")
    found: set[str] = set()
    while True:
        more = {
            name
            for name, fields in classes.items()
            if any(_is_error(each) or (each.entity and each.array and each.entity.__name__ in found) for each in fields)
        }
        if more == found:
            return _Form(classes, frozenset(found))
        found = more
