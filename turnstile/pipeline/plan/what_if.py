"""The effects of candidate limits on connections that are known. Pure: arrays in, decisions out, no Spark.

A refused connection takes no place, and a close comes before an open at the same instant. Connects at the same instant
come in the log's order.

Caps are replayed for all candidates in one pass. An arrival takes the lowest free *level* (1, 2, 3, ...) of its pool
and keeps it until it closes; under a cap of C exactly the connections of levels 1 to C are admitted. For with A(C) the
connections open under cap C: A(C) is contained in A(C + 1), which has at most one more. An arrival is let in under C + 1
whenever it is under C; where C is full and C + 1 is not, the newcomer is that one more; and it is in A(C + 1) alone, so
its close takes it out of nothing else. So the lowest cap that admits a connection is the lowest free level, and it alone
says what every cap does.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy

from shards.limits.rate import DEFAULT_WINDOW, Rate
from shards.limits.replay_gate import ADMITTED, REFUSED, IncomingConnection, ReplayGate
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.entities import Entities
from turnstile.pipeline.plan.candidates import Candidate

NEVER = numpy.iinfo("i8").max
"""closed_us of a connection that is open at the end of the log."""
RATE_REFUSED = 0
"""Stands for a level: refused by a rate before any cap was asked."""
_CHUNK = 100_000


class Decision(NamedTuple):
    """The decision of a candidate on the connection in a row, when that isn't admitting it at once."""

    row: int
    is_refused: bool
    reason: str


def levels(opened_us: Array, closed_us: Array, pools: Array | None = None, passed: Array | None = None) -> Array:
    """The level of each connection in its pool; RATE_REFUSED for those not `passed`.

    Rows are in order of arrival, pool after pool; `pools` is a number per row, None where all are of one pool.
    """
    found = numpy.zeros(len(opened_us), dtype="i8")
    if passed is not None:
        passing = numpy.flatnonzero(passed)
        found[passing] = levels(opened_us[passing], closed_us[passing], None if pools is None else pools[passing])
        return found
    # A connection that finds its pool empty starts it anew; the next one is level 2. Most connections are of these two.
    starts = numpy.flatnonzero(_finds_none(opened_us, closed_us, pools))
    sizes = numpy.diff(numpy.append(starts, len(found)))
    found[starts] = 1
    found[starts[sizes > 1] + 1] = 2
    crowded = numpy.flatnonzero(numpy.repeat(sizes > 2, sizes))
    is_start = numpy.zeros(len(found), dtype=bool)
    is_start[starts] = True
    found[crowded] = _lowest_free(opened_us[crowded], closed_us[crowded], is_start[crowded])
    return found


def _finds_none(opened_us: Array, closed_us: Array, pools: Array | None) -> Array:
    """True for each connection that arrives when none of its pool is open."""
    if not len(opened_us):
        return numpy.zeros(0, dtype=bool)
    is_new = numpy.zeros(len(opened_us), dtype=bool)
    if pools is not None:
        is_new[1:] = pools[1:] != pools[:-1]
    nth = numpy.cumsum(is_new)
    first, last = int(opened_us.min()), int(opened_us.max())
    width = last - first + 2
    opened, closed = opened_us - first, numpy.minimum(closed_us, last + 1) - first
    if width * (int(nth[-1]) + 1) > NEVER:  # a log of centuries: ranks instead of microseconds
        instants = numpy.unique(opened)
        opened, closed, width = *(numpy.searchsorted(instants, each) for each in (opened, closed)), len(instants) + 1
    # A running maximum over all pools: every pool's instants lie above those of the pool before it.
    latest = numpy.maximum.accumulate(nth * width + closed)
    return numpy.concatenate(([True], latest[:-1] <= (nth * width + opened)[1:]))


def _lowest_free(opened_us: Array, closed_us: Array, is_start: Array) -> Array:
    """Levels by the rule itself, one connection after the other; `is_start`: where a pool begins empty."""
    found = numpy.empty(len(opened_us), dtype="i8")
    free: list[int] = []
    leaving: list[int] = []  # (closed_us, level) as one number: comparing pairs costs twice as much
    highest = 0
    bits = len(opened_us).bit_length()
    mask = (1 << bits) - 1
    for start in range(0, len(opened_us), _CHUNK):
        part = slice(start, start + _CHUNK)
        given = []
        for opened, closed, is_empty in zip(
            opened_us[part].tolist(), closed_us[part].tolist(), is_start[part].tolist(), strict=True
        ):
            if is_empty:
                free.clear()
                leaving.clear()
                highest = 0
            until = (opened + 1) << bits
            while leaving and leaving[0] < until:
                heappush(free, heappop(leaving) & mask)
            if free:
                level = heappop(free)
            else:
                level = highest = highest + 1
            given.append(level)
            if closed <= opened:
                heappush(free, level)
            elif closed < NEVER:
                heappush(leaving, closed << bits | level)
        found[part] = given
    return found


def within_rate(opened_us: Array, per_s: int) -> Array:
    """True for each connect of one entity within its rate, as the gate decides it: of an address its `connection_creation_rate`
    (KIP-612), of a user turnstile.max.connection.creation.rate.per.user."""
    rate = Rate(DEFAULT_WINDOW)
    passed = numpy.ones(len(opened_us), dtype=bool)
    for start in range(0, len(opened_us), _CHUNK):
        for index, now_ms in enumerate((opened_us[start : start + _CHUNK] // 1000).tolist(), start):
            if rate.charge(1, per_s, now_ms=now_ms, max_ms=DEFAULT_WINDOW.size_ms):
                rate.record(-1, now_ms=now_ms)
                passed[index] = False
    return passed


class ByEntity(NamedTuple):
    """Levels without any rate, and for each candidate its number and the indices of refused connections."""

    levels: Array
    refused: Iterator[tuple[int, Array]]


def by_entity(
    entities: Array,
    opened_us: Array,
    closed_us: Array,
    candidates: Sequence[tuple[int, Candidate]],
    caps_of: Callable[[Candidate], Array | None],
) -> ByEntity:
    """Many entities under candidates that limit each entity only. Rows as for `levels`; `entities` are numbers.

    `caps_of`: a candidate's cap for each entity's number, None for none.
    """
    free = levels(opened_us, closed_us, entities)
    by_rate: dict[int | None, Array] = {None: free}
    for rate in {candidate.rate for _, candidate in candidates if candidate.rate is not None}:
        passed = _each_within_rate(entities, opened_us, rate)
        by_rate[rate] = free if passed.all() else levels(opened_us, closed_us, entities, passed)

    def refused() -> Iterator[tuple[int, Array]]:
        for number, candidate in candidates:
            of_rate, caps = by_rate[candidate.rate], caps_of(candidate)
            is_refused = of_rate == RATE_REFUSED
            if caps is not None:
                is_refused |= of_rate > caps[entities]
            yield number, numpy.flatnonzero(is_refused)

    return ByEntity(free, refused())


def _each_within_rate(entities: Array, opened_us: Array, per_s: int) -> Array:
    """`within_rate`, entity after entity."""
    passed = numpy.ones(len(opened_us), dtype=bool)
    starts = numpy.flatnonzero(numpy.concatenate(([True], entities[1:] != entities[:-1])))
    ends = numpy.append(starts[1:], len(entities))
    # A window is at least a second long, so an entity with no more connects than that in all is within its rate.
    is_many = ends - starts > per_s
    for start, end in zip(starts[is_many].tolist(), ends[is_many].tolist(), strict=True):
        passed[start:end] = within_rate(opened_us[start:end], per_s)
    return passed


def whole(
    candidate: Candidate,
    opened_us: Array,
    closed_us: Array,
    *,
    ips: Array,
    ip_names: Entities,
    listeners: Array,
    names: Sequence[str],
) -> Iterator[Decision]:
    """Every connection of a log, in order of arrival, through the emulator's own gate. `ips` and `listeners` are places in
    `ip_names` and `names`."""
    gate = ReplayGate(candidate.connection_limits(), names)
    if candidate.rate is not None:
        gate.ip_quotas.update(None, candidate.rate)
    acceptors = [gate.acceptors[name] for name in names]
    leaving: list[tuple[int, int, IncomingConnection]] = []
    waiting: list[tuple[int, int, IncomingConnection]] = []
    epoch_us = int(opened_us[0]) // 1000 * 1000 if len(opened_us) else 0

    def ms(us: int) -> int:
        return (us - epoch_us) // 1000

    for index, (opened, closed, ip, listener) in enumerate(_rows(opened_us, closed_us, ips, listeners)):
        _leave(gate, leaving, opened, ms)
        connection = IncomingConnection(acceptors[listener], ip_names[ip])
        gate.advance(now_ms=ms(opened))
        gate.connect(connection, now_ms=ms(opened))
        if connection.outcome == REFUSED:
            yield Decision(index, True, connection.reason or "")
            continue
        if connection.outcome is None:
            waiting.append((index, ms(opened), connection))
        if closed <= opened:
            gate.close(connection, now_ms=ms(opened))
        elif closed < NEVER:
            heappush(leaving, (closed, index, connection))
    _leave(gate, leaving, NEVER, ms)
    gate.finish()
    for index, opened_ms, connection in waiting:
        if connection.outcome == REFUSED:
            yield Decision(index, True, connection.reason or "")
        elif connection.outcome != ADMITTED or connection.at_ms > opened_ms:
            yield Decision(index, False, "delayed")


def _leave(
    gate: ReplayGate, leaving: list[tuple[int, int, IncomingConnection]], until_us: int, ms: Callable[[int], int]
) -> None:
    """Closes all connections that end until `until_us`, in order."""
    while leaving and leaving[0][0] <= until_us:
        closed, _, connection = heappop(leaving)
        gate.advance(now_ms=ms(closed))
        gate.close(connection, now_ms=ms(closed))


def _rows(*columns: Array) -> Iterator[tuple[int, ...]]:
    """Rows as Python numbers, a chunk at a time: a list of fifty million ints would take gigabytes."""
    for start in range(0, len(columns[0]), _CHUNK):
        yield from zip(*(column[start : start + _CHUNK].tolist() for column in columns), strict=True)
