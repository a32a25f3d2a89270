"""Candidates over a whole log on Spark: what each would have refused or delayed, and how greedy addresses are, as TELLS.

What only limits addresses is replayed in parallel, many addresses in one task, all candidates in one pass. One address's
replay is sequential by nature, so an address with half of all connections is half of the work of one task. A broker-wide
cap alone is one sequential pass for all its values; a combination with a broker-wide limit is one sequential pass each,
side by side. The log is read once for all of it (pieces.py), and only sums leave a task (task_sums.py).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.plan import what_if
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.pieces import PIECES, Rows, Slots, gather, in_order, spread
from turnstile.pipeline.plan.task_sums import TELLS, Incident, Part, TaskSums

Batches = Iterator[pyarrow.RecordBatch]
Numbered = Sequence[tuple[int, Candidate]]


def outcomes(
    arrived: DataFrame, candidates: Sequence[Candidate], tasks: int, incident: Incident | None = None
) -> DataFrame:
    """TELLS of a log. `arrived`: ARRIVALS. `tasks`: how many share the addresses."""
    numbered = list(enumerate(candidates))
    each = [(number, candidate) for number, candidate in numbered if candidate.is_per_ip]
    totals = [(number, candidate) for number, candidate in numbered if candidate.is_broker_cap_alone]
    rest = [pair for pair in numbered if pair not in each and pair not in totals]
    replays: list[Callable[[Rows, Incident | None], TaskSums]] = [_by_address(each)] * tasks
    if totals:
        replays.append(_by_broker(totals))
    replays += [_by_gate(number, candidate) for number, candidate in rest]
    slots = Slots(tasks, len(replays) - tasks)

    def decide(batches: Batches) -> Batches:
        first = next(batches, None)
        while first is not None and not first.num_rows:
            first = next(batches, None)
        if first is None:
            return
        slot = first.column("slot")[0].as_py()
        rows, bad = gather(_chained(first, batches))
        if rows is not None:
            yield replays[slot](rows, incident).batch()
        if bad:
            yield TaskSums.unusable(bad)

    names = ("ip", "opened_us", "closed_us", *(("listener",) if rest else ()), "bad", *_places(arrived))
    pieces = arrived.select(*names).mapInArrow(spread(slots), PIECES)
    return pieces.repartitionById(slots.every, F.col("slot")).mapInArrow(decide, TELLS)


def _places(arrived: DataFrame) -> tuple[str, ...]:
    """The columns that say where in the log a row is, as far as there are such."""
    return tuple(name for name in ("source", "block", "rank") if name in arrived.columns)


def _chained(first: pyarrow.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def caps(candidate: Candidate, names: what_if.Names) -> what_if.Array | None:
    """A candidate's cap for each address; None when it has none for any. NEVER: none for this one."""
    limits = candidate.connection_limits()
    if limits.same_for_all_ips:
        cap = limits.ip_default.cap
        return None if cap is None else numpy.full(len(names), cap, dtype="i8")
    own = (limits.rule_of(f"ip:{name}").cap for name in names)
    return numpy.fromiter((what_if.NEVER if cap is None else cap for cap in own), dtype="i8", count=len(names))


def _by_address(candidates: Numbered) -> Callable[[Rows, Incident | None], TaskSums]:
    def decide(rows: Rows, incident: Incident | None) -> TaskSums:
        part = _part(in_order(rows, numpy.lexsort((rows.opened_us, rows.ips))))
        tally = TaskSums(part, incident)
        levels, refused = what_if.by_address(
            part.ips, part.opened_us, part.closed_us, candidates, lambda candidate: caps(candidate, part.names)
        )
        for number, indices in refused:
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.addresses(levels)
        return tally

    return decide


def _by_broker(candidates: Numbered) -> Callable[[Rows, Incident | None], TaskSums]:
    def decide(rows: Rows, incident: Incident | None) -> TaskSums:
        part = _part(in_order(rows, numpy.argsort(rows.opened_us, kind="stable")))
        tally = TaskSums(part, incident)
        levels = what_if.levels(part.opened_us, part.closed_us)
        for number, candidate in candidates:
            indices = numpy.flatnonzero(levels > candidate.broker_cap)
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.broker(levels)
        return tally

    return decide


def _by_gate(number: int, candidate: Candidate) -> Callable[[Rows, Incident | None], TaskSums]:
    def decide(rows: Rows, incident: Incident | None) -> TaskSums:
        ordered = in_order(rows, numpy.argsort(rows.opened_us, kind="stable"))
        part, listeners = _part(ordered), ordered.listeners
        assert listeners is not None  # asked for whenever there is such a candidate
        refused: list[int] = []
        delayed: list[int] = []
        for each in what_if.whole(
            candidate, part.opened_us, part.closed_us, part.ips, part.names, listeners.indices.to_numpy(),
            listeners.dictionary.to_pylist(),
        ):  # fmt: skip
            (refused if each.is_refused else delayed).append(each.row)
        tally = TaskSums(part, incident)
        tally.refused(number, numpy.array(refused, dtype="i8"))
        tally.delayed(number, numpy.array(delayed, dtype="i8"))
        tally.affected(number, numpy.array([*refused, *delayed], dtype="i8"))
        return tally

    return decide


def _part(rows: Rows) -> Part:
    return Part(rows.names, rows.ips, rows.opened_us, rows.closed_us, int(what_if.NEVER))
