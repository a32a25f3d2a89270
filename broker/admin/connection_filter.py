"""The filter and the order of ListKafkaConnections: text that operators type, as conditions and keys to sort by. Pure.

    filter     field OP value [AND ...], OP one of = != < <= > >=: the subset of AIP-160 that Redpanda takes. A value is "text" or
               'text' with escapes, a number, true or false, an enum's name, a duration (30s, 100ms), a time (RFC 3339)
    order_by   field [asc | desc], ... (AIP-132)

understood_or_refused  What is not in this grammar is refused, and so is a field that Turnstile does not keep of a connection: a
    condition on it would match nothing, and an order by it would be none.

Source: cluster.proto of Redpanda, ListKafkaConnectionsRequest; google.aip.dev/160 and /132.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from broker.admin.connect_messages import Choices, Scalar
from broker.admin.kafka_connection import KAFKA_CONNECTION
from broker.serve.listed_connections import Condition, SortKey

FIELDS: Final = dict(KAFKA_CONNECTION.paths())
LONGEST: Final = 4096
"""Characters of a filter or an order."""
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<op><=|>=|!=|=|<|>)|(?P<word>[^\s\"'=<>!,()]+))", re.S
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
_SIMPLE: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_UNITS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?(ns|us|ms|s|m|h)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")
_EQUALITY = ("=", "!=")


class NotUnderstood(Exception):
    """The filter or order can't be understood; its message is a whole sentence for the client."""


class NotKept(Exception):
    """The filter or order names a field that Turnstile does not keep; its message is a whole sentence for the client."""


class Token(NamedTuple):
    """A part of a filter: `kind` quoted, op or word; `text` without quotes and escapes."""

    kind: str
    text: str


def conditions(text: str, kept: Collection[str]) -> list[Condition]:
    """The conditions of a filter; "" has none. `kept`: the fields that Turnstile keeps. Raises NotUnderstood, NotKept."""
    tokens = list(_tokens(text))
    found: list[Condition] = []
    while tokens:
        if found:
            joined = tokens.pop(0)
            if joined != Token("word", "AND"):
                raise NotUnderstood(f"filter: {joined.text!r} stands where AND should: only AND joins conditions.")
        if len(tokens) < 3 or (tokens[0].kind, tokens[1].kind) != ("word", "op") or tokens[2].kind == "op":
            near = " ".join(each.text for each in tokens[:3]) or "the end"
            raise NotUnderstood(f'filter: {near!r} is not a condition, such as client_id = "app".')
        field, op, value = tokens[:3]
        del tokens[:3]
        found.append(_condition(field.text, op.text, value, kept))
    return found


def sort_keys(text: str, kept: Collection[str]) -> list[SortKey]:
    """The sort keys of an order; "" has none. Raises NotUnderstood, NotKept."""
    if len(text) > LONGEST:
        raise NotUnderstood(f"order_by: more than {LONGEST} characters.")
    found = []
    for part in text.split(",") if text.strip() else ():
        field, *direction = part.split() or [""]
        _kind("order_by", field, kept)
        if direction not in ([], ["asc"], ["desc"]):
            raise NotUnderstood(f"order_by: {part.strip()!r} should be a field, and asc or desc.")
        found.append(SortKey(field, direction == ["desc"]))
    return found


def _tokens(text: str) -> Iterator[Token]:
    if len(text) > LONGEST:
        raise NotUnderstood(f"filter: more than {LONGEST} characters.")
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotUnderstood(
                f"filter: {text[at:].strip()[:20]!r} can't be read: there are no parentheses, lists or NOT."
            )
        at = found.end()
        kind = str(found.lastgroup)
        yield Token(kind, _unescaped(found[kind][1:-1]) if kind == "quoted" else found[kind])


def _unescaped(text: str) -> str:
    def of(escape: re.Match[str]) -> str:
        name = escape[1]
        if name in _SIMPLE:
            return _SIMPLE[name]
        code = int(name[1:], 16) if len(name) > 1 else -1
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            raise NotUnderstood(f"filter: {escape[0]!r} is not an escape.")
        return chr(code)

    return _ESCAPE.sub(of, text)


def _kind(where: str, field: str, kept: Collection[str]) -> Scalar | Choices:
    kind = FIELDS.get(field)
    if kind is None:
        raise NotUnderstood(f"{where}: there is no field {field!r}; there are {', '.join(kept)}.")
    if field not in kept:
        raise NotKept(f"{where}: Turnstile does not keep {field} of a connection; it keeps {', '.join(kept)}.")
    return kind


def _condition(field: str, op: str, value: Token, kept: Collection[str]) -> Condition:
    kind = _kind("filter", field, kept)
    if op not in _EQUALITY and (isinstance(kind, Choices) or kind is Scalar.BOOL):
        raise NotUnderstood(f"filter: {field} is compared by = and != alone.")
    if isinstance(kind, Choices):
        if value.text not in kind.numbers:
            raise NotUnderstood(f"filter: {field} can't be {value.text!r}: it is one of {', '.join(kind.numbers)}.")
        return Condition(field, op, value.text)
    if kind is Scalar.TEXT:
        return Condition(field, op, value.text)
    read = _READ[kind](value.text)
    if read is None:
        raise NotUnderstood(f"filter: {field} can't be {value.text!r}: it is {kind.value}.")
    return Condition(field, op, read)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _duration_ns(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    whole, part, unit = found.groups(default="")
    return int(whole) * _UNITS[unit] + int(part.ljust(9, "0")) * _UNITS[unit] // 10**9


def _time_ns(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    second, part, zone = found.groups(default="")
    try:
        at = datetime.fromisoformat(second.upper() + zone.upper().replace("Z", "+00:00"))
    except ValueError:
        return None
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 10**9 + int(part.ljust(9, "0"))


_READ: Final[dict[Scalar, Callable[[str], Any]]] = {
    Scalar.INT: _number, Scalar.BIG: _number, Scalar.BOOL: _flag, Scalar.DURATION: _duration_ns, Scalar.TIME: _time_ns,
}  # fmt: skip
