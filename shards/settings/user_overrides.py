"""Numbers of some users instead of a general one: `alice:5`, `bob:100`, as a list or comma-separated.

The number stands behind the last colon, so a name may have colons. A name with a comma, or with blanks around it, needs the
list of strings in JSON: `["smith, j:5"]`. Names are those that clients log in by, without `User:`; case counts.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple


class UserOverrides:
    """The numbers that hold for users; immutable."""

    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[str, int]) -> None:
        """`entries`: user -> number, as `parse` makes them."""
        self.entries: dict[str, int] = dict(entries)

    @classmethod
    def parse(cls, text: str, low: int, high: int) -> "UserOverrides":
        """From a list of entries as text, each number from low to high. ValueError names the first bad entry."""
        found: dict[str, int] = {}
        for entry in _split(text):
            user, number = _parse_entry(entry, low, high)
            if found.setdefault(user, number) != number:
                raise ValueError(f"override {entry!r}: {user} is listed twice, with {found[user]} and with {number}")
        return cls(found)

    def lookup(self, user: str) -> int | None:
        """The number that holds for a user; None: none of its own."""
        return self.entries.get(user)

    def listed(self) -> list[str]:
        """The entries, each as it is written."""
        return [f"{user}:{number}" for user, number in self.entries.items()]

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserOverrides) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(frozenset(self.entries.items()))

    def __str__(self) -> str:
        """Comma-separated entries, or a JSON list where a name needs one, that `parse` reads back as equal."""
        entries = self.listed()
        is_plain = all("," not in entry and entry[:1] != "[" and entry == entry.strip() for entry in entries)
        return ",".join(entries) if is_plain else json.dumps(entries)

    def __repr__(self) -> str:
        return f"UserOverrides({str(self)!r})"


NO_USER_OVERRIDES = UserOverrides({})


def _split(text: str) -> list[str]:
    text = text.strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",")] if text else []
    try:
        parts = json.loads(text)
    except ValueError:
        raise ValueError(f'overrides {text!r} must be a JSON list of strings such as "alice:5"') from None
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f'overrides {text!r} must be a JSON list of strings such as "alice:5"')
    return parts


class _Entry(NamedTuple):
    """An override: its key, and the number that holds for it."""

    key: str
    number: int


def _parse_entry(entry: str, low: int, high: int) -> _Entry:
    user, colon, number = entry.rpartition(":")
    if not colon or not user:
        raise ValueError(f"override {entry!r} is not of the form user:number")
    if not (number.isascii() and number.isdigit() and len(number) <= 19 and low <= int(number) <= high):
        raise ValueError(f"override {entry!r}: {number!r} is not a whole number from {low} to {high}")
    return _Entry(user, int(number))
