"""Entries `key:number` of a setting that has own numbers for some keys instead of a general one: of addresses (overrides.py), of
users (user_overrides.py).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple


class Override(NamedTuple):
    """An override: its key, and the number that holds for it."""

    key: str
    number: int


class OverrideEntries(ABC):
    """The numbers by key; immutable."""

    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[str, int]) -> None:
        self.entries: dict[str, int] = dict(entries)

    @abstractmethod
    def listed(self) -> list[str]:
        """The entries, each as it is written."""

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(frozenset(self.entries.items()))

    def __str__(self) -> str:
        """Comma-separated entries that `parse` reads back as equal."""
        return ",".join(self.listed())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def numbers_of(entries: Iterable[str], parse: Callable[[str], Override]) -> dict[str, int]:
    """The numbers by key. Raises ValueError with the first entry that `parse` refuses, or that differs from one before."""
    numbers: dict[str, int] = {}
    for entry in entries:
        key, number = parse(entry)
        if numbers.setdefault(key, number) != number:
            raise ValueError(f"override {entry!r}: {key} is listed twice, with {numbers[key]} and with {number}")
    return numbers


def number_in(entry: str, text: str, low: int, high: int) -> int:
    """The number of an entry, from low to high. Raises ValueError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and low <= int(text) <= high):
        raise ValueError(f"override {entry!r}: {text!r} is not a whole number from {low} to {high}")
    return int(text)


def split_commas(text: str) -> list[str]:
    """The parts between commas; of an empty text there is none."""
    return [part.strip() for part in text.split(",")] if text else []


def strings_of(text: str, parsed: object, example: str) -> list[str]:
    """The strings of a JSON list, `parsed` from a text. Raises ValueError with the form that it should have."""
    if not isinstance(parsed, list) or not all(isinstance(part, str) for part in parsed):
        raise ValueError(f'overrides {text!r} must be a JSON list of strings such as "{example}"')
    return parsed


def json_of(text: str) -> object:
    """The value of a JSON text; None where it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
