"""A change as the history tells it: of a setting the values in force before and after. Pure.

A setting without a stored value may have one all the same: that of the whole cluster, or of the command line.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Changed(NamedTuple):
    """`old` and `new`: records, None for none. As stored, or, of a setting as the history tells it, in force."""

    kind: str
    key: str
    old: object
    new: Any


def told(changes: Iterable[Changed], settings: Mapping[str, str], static: Mapping[str, str]) -> list[Changed]:
    """`changes` for people. `settings`: what is stored before them; `static`: the command line's; both by "broker/name"."""
    changes = list(changes)
    after = {**settings, **{key: new for kind, key, _, new in changes if kind == "setting"}}
    return [
        Changed(kind, key, _in_force(key, settings, static), _in_force(key, after, static))
        if kind == "setting"
        else Changed(kind, key, old, new)
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
