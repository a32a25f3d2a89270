"""All conversations: each function of `conversations/`, in every version of the API it is about, and once more as a user who may
do nothing, where that matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from differential.talk import Closed, Line, Talk
from harness import until
from wired import KEYS

from broker.wire import apis

Function = Callable[[Talk], None]
DENIED = "as alice"
OPEN = frozenset({17, 18, 36, 38, 39, 40, 41, 71, 72})
"""SaslHandshake, ApiVersions, SaslAuthenticate, telemetry, and delegation tokens, whose handler guards those of others: no ACL
forbids them."""


class Row(NamedTuple):
    api: str
    function: Function
    versions: range
    by_user: bool


ROWS: list[Row] = []


def about(api: str, *, since: int = 0, until: int = 99, by_user: bool = False) -> Callable[[Function], Function]:
    """The decorated function talks about this API, in the versions from `since` to `until`; `by_user`: as a user who has logged
    in, in each of them."""

    def add(function: Function) -> Function:
        known = apis.APIS[KEYS[api]]
        versions = range(max(known.min_version, since), min(known.max_version, until) + 1)
        ROWS.append(Row(api, function, versions, by_user))
        return function

    return add


def converse(admin: str, alice: str, only: str = "") -> Iterator[tuple[str, list[list[Any]]]]:
    """(name, what was said) of every conversation; `admin` and `alice` are the addresses where they are let in.

    `only` those about APIs whose name begins so.
    """
    everything, nothing = Line(admin), Line(alice, "alice")
    for kind in (0, 1):  # Kafka makes its internal topics when somebody asks for a coordinator
        until(partial(_has_coordinator, everything, kind), within_s=60, what="coordinators")
    for row in ROWS:
        if not row.api.startswith(only):
            continue
        for version in row.versions:
            if row.by_user:
                yield _held(row, version, everything, nothing, DENIED)
            else:
                yield _held(row, version, everything, everything)
        if not row.by_user and KEYS[row.api] not in OPEN:
            yield _held(row, row.versions[-1], everything, nothing, DENIED)
    everything.close()
    nothing.close()


def _has_coordinator(line: Line, kind: int) -> bool:
    found = line.ask("find_coordinator", 3, {"key": "any", "key_type": kind})
    return not found.error_code


def _held(row: Row, version: int, admin: Line, asker: Line, who: str = "") -> tuple[str, list[list[Any]]]:
    name = " ".join(word for word in (row.api, str(version), row.function.__name__, who) if word)
    talk = Talk(name, row.api, version, admin=admin, asker=asker)
    try:
        row.function(talk)
    except (AssertionError, AttributeError, LookupError, Closed) as fault:
        talk.said.append(["it broke", repr(fault)])
    return name, talk.said
