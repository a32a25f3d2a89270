"""What candidate limits would have done to connections that are known. Pure: arrays in, decisions out, no Spark.

A refused connection takes no place, and a close comes before an open at the same instant. Connects at the same instant
come in the log's order.

Caps are replayed for all candidates in one pass. Whoever arrives takes the lowest free *level* (1, 2, 3, ...) of its pool
and keeps it until it closes; under a cap of C exactly the connections of levels 1 to C are admitted. For with A(C) the
connections open under cap C: A(C) is contained in A(C + 1), which has at most one more. An arrival is let in under C + 1
whenever it is under C; where C is full and C + 1 is not, the newcomer is that one more; and it is in A(C + 1) alone, so
its close takes it out of nothing else. So the lowest cap that admits a connection is the lowest free level, and it alone
says what every cap does.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy

from limits.connections import ADMITTED, REFUSED, Connection, ConnectionGate
from limits.rate import DEFAULT_WINDOW, Rate
from pipeline.candidates import Candidate

Array = numpy.ndarray[Any, Any]
NEVER = numpy.iinfo("i8").max
"""closed_us of a connection that is open at the end of the log."""
RATE_REFUSED = 0
"""In place of a level: refused by a rate before any cap was asked."""
_CHUNK = 100_000


class Decision(NamedTuple):
    """What a candidate does to connection `index`, when that isn't admitting it at once."""

    index: int
    is_refused: bool
    reason: str


def levels(opened_us: Array, closed_us: Array, passed: Array | None = None) -> Array:
    """The level of each connection of one pool, given in order of arrival. Those not `passed` get RATE_REFUSED."""
    found = numpy.zeros(len(opened_us), dtype="i8")
    free: list[int] = []
    leaving: list[tuple[int, int]] = []
    highest = 0
    for index, (opened, closed, is_in) in enumerate(_rows(opened_us, closed_us, passed)):
        while leaving and leaving[0][0] <= opened:
            heappush(free, heappop(leaving)[1])
        if not is_in:
            continue
        if free:
            level = heappop(free)
        else:
            level = highest = highest + 1
        found[index] = level
        if closed > opened:
            heappush(leaving, (closed, level))
        else:
            heappush(free, level)
    return found


def within_rate(opened_us: Array, per_s: int) -> Array:
    """Whether each connect of one address is within its `connection_creation_rate` (KIP-612), as the gate decides it."""
    rate = Rate(DEFAULT_WINDOW)
    passed = numpy.ones(len(opened_us), dtype=bool)
    for start in range(0, len(opened_us), _CHUNK):
        for index, now_ms in enumerate((opened_us[start : start + _CHUNK] // 1000).tolist(), start):
            if rate.charge(1, per_s, now_ms=now_ms, max_ms=DEFAULT_WINDOW.size_ms):
                rate.record(-1, now_ms=now_ms)
                passed[index] = False
    return passed


def per_ip(
    opened_us: Array,
    closed_us: Array,
    candidates: Sequence[tuple[int, Candidate]],
    cap_of: Callable[[Candidate], int | None],
) -> tuple[Array, list[tuple[int, str, Array]]]:
    """One address under candidates that limit addresses only.

    Returns the levels without any rate, and (candidate number, reason, indices of refused connections) each.
    """
    free = levels(opened_us, closed_us)
    by_rate: dict[int | None, Array] = {None: free}
    for rate in {candidate.ip_rate for _, candidate in candidates} - {None}:
        passed = within_rate(opened_us, rate)
        by_rate[rate] = free if passed.all() else levels(opened_us, closed_us, passed)
    refused = []
    for number, candidate in candidates:
        mine = by_rate[candidate.ip_rate]
        cap = cap_of(candidate)
        for reason, is_refused in (
            ("ip_rate", mine == RATE_REFUSED),
            ("ip_cap", mine > (NEVER if cap is None else cap)),
        ):
            indices = numpy.flatnonzero(is_refused)
            if len(indices):
                refused.append((number, reason, indices))
    return free, refused


def whole(
    candidate: Candidate,
    opened_us: Array,
    closed_us: Array,
    ips: Array,
    ip_names: Sequence[str],
    listeners: Array,
    names: Sequence[str],
) -> Iterator[Decision]:
    """Every connection of a log, in order of arrival, through the emulator's own gate. `ips`, `listeners` are codes."""
    gate = ConnectionGate(candidate.settings(names))
    if candidate.ip_rate is not None:
        gate.set_ip_rate(None, candidate.ip_rate)
    acceptors = [gate.acceptors[name] for name in names]
    leaving: list[tuple[int, int, Connection]] = []
    waiting: list[tuple[int, int, Connection]] = []
    epoch_us = int(opened_us[0]) // 1000 * 1000 if len(opened_us) else 0

    def ms(us: int) -> int:
        return (us - epoch_us) // 1000

    rows = _rows(opened_us, closed_us, None, ips, listeners)
    for index, (opened, closed, _, ip, listener) in enumerate(rows):
        _leave(gate, leaving, opened, ms)
        connection = Connection(acceptors[listener], ip_names[ip])
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
    gate: ConnectionGate, leaving: list[tuple[int, int, Connection]], until_us: int, ms: Callable[[int], int]
) -> None:
    """Everybody who closes until then closes, in order."""
    while leaving and leaving[0][0] <= until_us:
        closed, _, connection = heappop(leaving)
        gate.advance(now_ms=ms(closed))
        gate.close(connection, now_ms=ms(closed))


def _rows(opened_us: Array, closed_us: Array, passed: Array | None, *more: Array) -> Iterator[tuple[int, ...]]:
    """Rows as Python numbers, a chunk at a time: a list of fifty million ints would take gigabytes."""
    for start in range(0, len(opened_us), _CHUNK):
        part = slice(start, start + _CHUNK)
        is_in = passed[part].tolist() if passed is not None else [True] * len(opened_us[part])
        yield from zip(
            opened_us[part].tolist(),
            closed_us[part].tolist(),
            is_in,
            *(each[part].tolist() for each in more),
            strict=True,
        )
