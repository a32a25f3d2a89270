"""Writes broker/wire/requests.py: the classes of requests, for type checkers and readers.

    python scripts/make_requests.py

A class has the fields of all versions; one that some version lacks may be read there all the same and has its default
(broker/wire/wire.py). tests/broker/wire/test_requests.py fails when the file is not what this writes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from broker.wire import apis, wire
from broker.wire.shapes import Field

TARGET = Path(__file__).resolve().parents[1] / "broker" / "wire" / "requests.py"
NOT_SERVED = frozenset({64})
_HEAD = '''"""The requests of every API that is served, as handlers see them. Written by scripts/make_requests.py: do not edit.

A request is an instance of a class that broker/wire/wire.py compiles for its version; these classes state the
fields of all versions together, and are never instantiated. A field that a version lacks has its default there.
"""

from datetime import timedelta
from uuid import UUID

from broker.wire.codec import Message
'''
_SIMPLE = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "UUID"}


def text() -> str:
    """The whole module."""
    served = [(key, api) for key, api in apis.APIS.items() if key not in NOT_SERVED]
    messages = [(api.name, wire.request_fields(key)) for key, api in served]
    times = Counter(name for _, classes in messages for name in classes)
    parts = [_HEAD]
    for api, classes in messages:
        names = {name: name if times[name] == 1 else f"{_prefix(api)}{name}" for name in classes}
        for name, fields in _innermost_first(classes):
            lines = [f"class {names[name]}(Message):"]
            lines += [f"    {field.name}: {_type(field, names)}" for field in fields.values()] or ["    pass"]
            parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def _prefix(api: str) -> str:
    prefixes = {
        "incremental_alter_configs": "Incremental",
        "describe_producers": "Producers",
        "consumer_group_heartbeat": "Owned",
        "share_fetch": "Share",
        "share_acknowledge": "ShareAcknowledge",
    }
    return prefixes.get(api, "")


def _innermost_first(classes: dict[str, dict[str, Field]]) -> list[tuple[str, dict[str, Field]]]:
    """A class after those that its fields are of."""
    done: dict[str, dict[str, Field]] = {}

    def visit(name: str) -> None:
        if name not in done:
            for field in classes[name].values():
                if field.entity is not None:
                    visit(field.entity.__name__)
            done[name] = classes[name]

    for name in classes:
        visit(name)
    return [*done.items()]


def _type(field: Field, names: dict[str, str]) -> str:
    kind = names[field.entity.__name__] if field.entity is not None else _SIMPLE.get(field.kind, "int")
    if field.kind.startswith("timedelta"):
        kind = "timedelta"
    if field.array:
        kind = f"tuple[{kind}, ...]"
    return f"{kind} | None" if field.nullable else kind


if __name__ == "__main__":
    TARGET.write_text(text())
