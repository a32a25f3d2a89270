"""Two recordings field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from differential.plain import named
from differential.recording import Recording

ABSENT = "absent"


class Difference(NamedTuple):
    """`field`: the path of what differs, "topics[].error_code", "topics[name]" of an entry that only one
    has; the values are plain, or ABSENT."""

    conversation: str
    label: str
    field: str
    kafka: Any
    turnstile: Any

    @property
    def api(self) -> str:
        return self.conversation.split()[0]

    @property
    def version(self) -> int:
        return int(self.conversation.split()[1])

    def __str__(self) -> str:
        return f"{self.conversation}: {self.label}: {self.field}: Kafka {self.kafka!r}, Turnstile {self.turnstile!r}"


def differences(kafka: Recording, turnstile: Recording) -> Iterator[Difference]:
    """An answer that only one of them gave differs as a whole, its field is ""."""
    for name in {**kafka, **turnstile}:
        ours, theirs = turnstile.get(name, {}), kafka.get(name, {})
        for label in {**theirs, **ours}:
            for field, left, right in _differing("", theirs.get(label, ABSENT), ours.get(label, ABSENT)):
                yield Difference(name, label, field.lstrip("."), left, right)


def _differing(at: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in {**left, **right}:
            yield from _differing(f"{at}.{name}", left.get(name, ABSENT), right.get(name, ABSENT))
    elif isinstance(left, list) and isinstance(right, list):
        for one, other in _pairs(left, right):
            lone = ABSENT in (one, other)
            name = " ".join(word.strip() for word in named(other if one == ABSENT else one)) if lone else ""
            yield from _differing(f"{at}[{name}]", one, other)
    elif left != right:
        yield at, left, right


def _pairs(left: list[Any], right: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Entries with the same name, the n-th of it; where they have no names, those at the same place."""
    ours: dict[tuple[str, ...], list[Any]] = {}
    for each in right:
        ours.setdefault(named(each), []).append(each)
    for each in left:
        others = ours.get(named(each))
        yield each, others.pop(0) if others else ABSENT
    for others in ours.values():
        yield from ((ABSENT, each) for each in others)
