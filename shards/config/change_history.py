"""A change as the configuration history shows it: for a setting, the values in force before and after the change. Pure.

A setting that has no stored value of its own may have one in force: the cluster's value, or that of the command line.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class ChangedValue(NamedTuple):
    """`old`, `new`: the record before and after the change, None for no record: as stored, or, of a setting in the history, the
    values in force."""

    kind: str
    key: str
    old: object
    new: Any


def with_values_in_force(
    changes: Iterable[ChangedValue], settings: Mapping[str, str], static: Mapping[str, str]
) -> list[ChangedValue]:
    """`changes` as the history shows them. `settings`: the settings stored before them; `static`: those of the command line; both
    keyed "broker/name"."""
    changes = list(changes)
    after = {**settings, **{key: new for kind, key, _, new in changes if kind == "setting"}}
    return [
        ChangedValue(kind, key, _in_force(key, settings, static), _in_force(key, after, static))
        if kind == "setting"
        else ChangedValue(kind, key, old, new)
        for kind, key, old, new in changes
    ]


def _in_force(key: str, settings: Mapping[str, str | None], static: Mapping[str, str]) -> str | None:
    """The precedence of broker_config.given: a live value before the command line's, a broker's own before the cluster's."""
    everywhere = f"/{key.partition('/')[2]}"
    for table in (settings, static):
        for place in (key, everywhere):
            if (value := table.get(place)) is not None:
                return value
    return None
