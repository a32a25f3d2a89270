"""Numbers of some users instead of a general one: `alice:5`, `bob:100`, as a list or comma-separated.

The number stands behind the last colon, so a name may have colons. A name with a comma, or with blanks around it, needs the
list of strings in JSON: `["smith, j:5"]`. Names are those that clients log in by, without `User:`; case counts.
"""

import json
from functools import partial

from shards.settings.override_entries import (
    Override,
    OverrideEntries,
    json_of,
    number_in,
    numbers_of,
    split_commas,
    strings_of,
)


class UserOverrides(OverrideEntries):
    """The numbers that hold for users, by name; immutable."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, low: int, high: int) -> "UserOverrides":
        """The overrides of a list of entries as text, each number from low to high. ValueError names the first bad entry."""
        return cls(numbers_of(_split(text), partial(_parse_entry, low=low, high=high)))

    def listed(self) -> list[str]:
        """The entries, each as it is written."""
        return [f"{user}:{number}" for user, number in self.entries.items()]

    def __str__(self) -> str:
        """Comma-separated entries, or a JSON list where a name needs one, that `parse` reads back as equal."""
        entries = self.listed()
        is_plain = all("," not in entry and entry[:1] != "[" and entry == entry.strip() for entry in entries)
        return super().__str__() if is_plain else json.dumps(entries)


NO_USER_OVERRIDES = UserOverrides({})


def _split(text: str) -> list[str]:
    text = text.strip()
    return strings_of(text, json_of(text), "alice:5") if text.startswith("[") else split_commas(text)


def _parse_entry(entry: str, *, low: int, high: int) -> Override:
    user, colon, number = entry.rpartition(":")
    if not colon or not user:
        raise ValueError(f"override {entry!r} is not of the form user:number")
    return Override(user, number_in(entry, number, low, high))
