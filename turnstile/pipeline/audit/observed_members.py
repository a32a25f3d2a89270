"""The connections of the observed world (docs/rehearsal.md), and those of them that have logged in there.

In the observed world is an admitted connection from its admission, or from its `observed` event without a reason, to its end; one
with a reason is not. An `observed` event with a user is about its login: one that a limit of its user would have refused is in the
observed world until then, one that was let in later holds its user's token from then on. When an observation begins every open
connection is in it, whatever was said of it before: `inside` leaves out such a connection, `using` counts it. What was under way in
a process when that died is not known: `inside` leaves out what it had admitted within UNDER_WAY_NS before, closed meanwhile or not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy
import pyarrow

from broker.journal.schema import AFTER_LOGIN
from turnstile.pipeline.audit.connections import CONNECTIONS, READ, Ends, pair
from turnstile.pipeline.audit.refusal_names import INCARNATION
from turnstile.pipeline.audit.user_checks import logins_of
from turnstile.pipeline.events import arrays, open_counts

UNDER_WAY_NS = 3_000_000_000
KEY = (*INCARNATION, "conn")
KINDS = ("admitted", "closed", "observed", "authenticated")
COLUMNS = (*READ, "reason", "user")
_INSIDE, _OUTSIDE = -1, -2
_GIVEN_UP = ("closed", "ended")

ConnectionKey = tuple[int, ...]


class _Decisions(NamedTuple):
    """By connection: `arrival`, `login`: _OUTSIDE, or when it came in, if that was decided later; `left_ns`: when its login took it
    out, or its decision was given up; `given_up_ns`: when that about its login was."""

    arrival: dict[ConnectionKey, int]
    login: dict[ConnectionKey, int]
    left_ns: dict[ConnectionKey, int]
    given_up_ns: dict[ConnectionKey, int]


def inside(ends: Ends, table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS of the observed world, each from when it was certainly in it, for as long as it certainly was."""
    decided = _decisions_of(table, ())
    found = pair(ends, _of_kinds(table, "admitted", "closed").select(READ))
    return _certain(ends, found, [_looked_up(found, decided.arrival)], decided)


def logged_in_inside(ends: Ends, table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS of users there, with the user as their `ip`: each from when it certainly held its user's token there."""
    decided = _decisions_of(table, ())
    found = logins_of(ends, _of_kinds(table, "authenticated", "closed"))
    return _certain(ends, found, [_looked_up(found, decided.arrival), _looked_up(found, decided.login)], decided)


def using(ends: Ends, begins: Sequence[int], table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS that may have held observed tokens: all but those that would have been refused, which are counted apart. One
    whose decision was given up counts until then, and one whose login would have been refused; if an observation has begun since,
    to its end. `begins`: the versions with which one does."""
    decided = _decisions_of(table, begins)
    found = pair(ends, _of_kinds(table, "admitted", "closed").select(READ))
    return _possible(found, _looked_up(found, decided.arrival), decided.left_ns)


def logged_in_using(ends: Ends, begins: Sequence[int], table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS of users that may have held their user's token there."""
    decided = _decisions_of(table, begins)
    found = logins_of(ends, _of_kinds(table, "authenticated", "closed"))
    outside = numpy.minimum(_looked_up(found, decided.arrival), _looked_up(found, decided.login))
    return _possible(found, outside, decided.given_up_ns)


def _certain(ends: Ends, found: pyarrow.Table, asked: list[arrays.Array], decided: _Decisions) -> pyarrow.Table:
    place = [arrays.numbers(found, name) for name in INCARNATION]
    died_ns = {each: at_ns for each, at_ns in ends.last_ns.items() if each not in ends.in_order}
    gone_ns = arrays.looked_up(place, lambda key: died_ns.get((key[0], key[1], key[2]), open_counts.NEVER))
    since_ns = arrays.numbers(found, "admitted_ns", null=open_counts.NEVER)
    is_recent = since_ns > gone_ns - UNDER_WAY_NS
    is_in = numpy.ones(found.num_rows, dtype=bool)
    for each in asked:
        is_in &= (each != _OUTSIDE) & ~((each == _INSIDE) & is_recent)
        since_ns = numpy.maximum(since_ns, each)
    left_ns = _looked_up(found, decided.left_ns, open_counts.NEVER)
    end_ns = numpy.minimum(arrays.numbers(found, "end_ns", null=open_counts.NEVER), left_ns)
    kept = pyarrow.array(numpy.flatnonzero(is_in))
    return _with(_with(found, "admitted_ns", since_ns), "end_ns", end_ns).take(kept)


def _possible(found: pyarrow.Table, outside: arrays.Array, until_ns: dict[ConnectionKey, int]) -> pyarrow.Table:
    left_ns = _looked_up(found, until_ns, open_counts.NEVER)
    is_cut = left_ns < open_counts.NEVER
    closed_ns = numpy.where(is_cut, left_ns, arrays.numbers(found, "closed_ns", null=open_counts.NEVER))
    kept = pyarrow.array(numpy.flatnonzero((outside != _OUTSIDE) | is_cut))
    return _with(found, "closed_ns", closed_ns).take(kept)


def _with(found: pyarrow.Table, name: str, at_ns: arrays.Array) -> pyarrow.Table:
    """The connections with another time, which is null where it is NEVER."""
    at = CONNECTIONS.get_field_index(name)
    return found.set_column(at, CONNECTIONS.field(at), pyarrow.array(at_ns, mask=at_ns == open_counts.NEVER))


def _of_kinds(table: pyarrow.Table, *kinds: str) -> pyarrow.Table:
    return table.filter(pyarrow.array(arrays.is_one_of(table, "kind", kinds)))


def _decisions_of(table: pyarrow.Table, begins: Sequence[int]) -> _Decisions:
    """The decisions among the events; one that came before the last of `begins` does not count."""
    decided = _Decisions({}, {}, {}, {})
    last = max(begins, default=0)
    for row in _of_kinds(table, "observed").to_pylist():
        key = tuple(row[name] for name in KEY)
        is_login = row["user"] is not None
        decisions = decided.login if is_login else decided.arrival
        if row["reason"] is None:
            decisions[key] = row["mono_ns"]
        elif last <= (row["version"] or 0):
            decisions[key] = _OUTSIDE
            if is_login and row["reason"] in _GIVEN_UP:
                decided.given_up_ns[key] = row["mono_ns"]
            elif row["reason"] in (*_GIVEN_UP, *AFTER_LOGIN) or is_login:
                decided.left_ns[key] = row["mono_ns"]
    return decided


def _looked_up(found: pyarrow.Table, decided: dict[ConnectionKey, int], other: int = _INSIDE) -> arrays.Array:
    return arrays.looked_up([arrays.numbers(found, name) for name in KEY], lambda key: decided.get(key, other))
