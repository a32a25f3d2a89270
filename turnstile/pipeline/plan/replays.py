"""The replays of tasks over their part of a log: every candidate over its connections, told as sums (task_sums.py).

What only limits entities (addresses or users, entities.py) is replayed in parallel, many in one task, all candidates in one
pass. One entity's replay is sequential by nature, so an address with half of all connections is half of the work of one
task. A broker-wide cap alone is one sequential pass for all its values; a combination with a broker-wide limit is one
sequential pass each, side by side. The same replays run here, one after the other (`tells_here`), and on Spark
(outcomes.py).
"""

from collections.abc import Callable, Sequence

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.entities import IP, Entities, EntityType
from turnstile.pipeline.plan import what_if
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.cluster_cap import most_open
from turnstile.pipeline.plan.replay_pieces import Batches, LogRows, Slots, gather, in_order, spread
from turnstile.pipeline.plan.task_sums import SCHEMA, Incident, Part, TaskSums

Numbered = Sequence[tuple[int, Candidate]]
Replay = Callable[[LogRows, Incident | None], TaskSums]


class Replays:
    """The replays of some candidates, by number: `tasks` of them share the entities. `with_peak`: one tells the most that were open
    at one time."""

    def __init__(self, candidates: Sequence[Candidate], tasks: int, by: EntityType, *, with_peak: bool) -> None:
        self.by = by
        numbered = list(enumerate(candidates))
        each = [(number, candidate) for number, candidate in numbered if candidate.is_per_entity]
        totals = [(number, candidate) for number, candidate in numbered if candidate.is_broker_cap_alone]
        rest = [pair for pair in numbered if pair not in each and pair not in totals]
        self._replays: list[Replay] = [_by_entity(each)] * tasks
        if totals or with_peak:
            self._replays.append(_by_broker(totals))
        self._replays += [_by_gate(number, candidate) for number, candidate in rest]
        self.slots = Slots(tasks, len(self._replays) - tasks)
        self.columns = ("ip", "opened_us", "closed_us", *(("listener",) if rest else ()), "bad")
        """The columns that they need of a connection, beside its place in the log."""

    def decided(self, slot: int, pieces: Batches, incident: Incident | None) -> Batches:
        """TELLS of what one replay was sent."""
        rows, bad = gather(pieces, self.by)
        if rows is not None:
            yield self._replays[slot](rows, incident).batch()
        if bad:
            yield TaskSums.unusable(bad)


def tells_here(
    arrived: pyarrow.Table,
    candidates: Sequence[Candidate],
    incident: Incident | None,
    by: EntityType,
    *,
    with_peak: bool = False,
) -> pyarrow.Table:
    """TELLS of a whole log. `arrived`: ARRIVALS in the log's order, perhaps with `rank`."""
    replays = Replays(candidates, 1, by, with_peak=with_peak)
    names = [*replays.columns, *(["rank"] if "rank" in arrived.schema.names else [])]
    pieces: list[list[pyarrow.RecordBatch]] = [[] for _ in range(replays.slots.total)]
    for batch in spread(replays.slots, by)(iter(arrived.select(names).to_batches())):
        for slot in pyarrow.compute.unique(batch.column("slot")).to_pylist():
            pieces[slot].append(batch.filter(pyarrow.compute.equal(batch.column("slot"), slot)))
    batches = [
        batch for slot, piece in enumerate(pieces) if piece for batch in replays.decided(slot, iter(piece), incident)
    ]
    return pyarrow.Table.from_batches(batches, SCHEMA)


def caps(candidate: Candidate, names: Entities) -> Array | None:
    """A candidate's cap for each entity; None when it has none for any. NEVER: none for this one."""
    limits = candidate.connection_limits()
    if not candidate.overrides:
        cap = (limits.ip_default if candidate.by.name == IP.name else limits.user_default).cap
        return None if cap is None else numpy.full(len(names), cap, dtype="i8")
    own = (limits.rule_of(f"{candidate.by.name}:{name}").cap for name in names)
    return numpy.fromiter((what_if.NEVER if cap is None else cap for cap in own), dtype="i8", count=len(names))


def _by_entity(candidates: Numbered) -> Callable[[LogRows, Incident | None], TaskSums]:
    def decide(rows: LogRows, incident: Incident | None) -> TaskSums:
        part = _part(in_order(rows, numpy.lexsort((rows.opened_us, rows.codes))))
        tally = TaskSums(part, incident)
        levels, refused = what_if.by_entity(
            part.codes, part.opened_us, part.closed_us, candidates, lambda candidate: caps(candidate, part.names)
        )
        for number, indices in refused:
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.entities(levels)
        return tally

    return decide


def _by_broker(candidates: Numbered) -> Callable[[LogRows, Incident | None], TaskSums]:
    def decide(rows: LogRows, incident: Incident | None) -> TaskSums:
        part = _part(in_order(rows, numpy.argsort(rows.opened_us, kind="stable")))
        tally = TaskSums(part, incident)
        if not candidates:
            tally.broker(most_open(part.opened_us, part.closed_us))
            return tally
        levels = what_if.levels(part.opened_us, part.closed_us)
        for number, candidate in candidates:
            indices = numpy.flatnonzero(levels > candidate.broker_cap)
            tally.refused(number, indices)
            tally.affected(number, indices)
        tally.broker(int(levels.max()))
        return tally

    return decide


def _by_gate(number: int, candidate: Candidate) -> Callable[[LogRows, Incident | None], TaskSums]:
    def decide(rows: LogRows, incident: Incident | None) -> TaskSums:
        ordered = in_order(rows, numpy.argsort(rows.opened_us, kind="stable"))
        part, listeners = _part(ordered), ordered.listeners
        assert listeners is not None  # asked for whenever there is such a candidate
        refused: list[int] = []
        delayed: list[int] = []
        for each in what_if.whole(
            candidate, part.opened_us, part.closed_us, ips=part.codes, ip_names=part.names,
            listeners=listeners.indices.to_numpy(), names=listeners.dictionary.to_pylist(),
        ):  # fmt: skip
            (refused if each.is_refused else delayed).append(each.row)
        tally = TaskSums(part, incident)
        tally.refused(number, numpy.array(refused, dtype="i8"))
        tally.delayed(number, numpy.array(delayed, dtype="i8"))
        tally.affected(number, numpy.array([*refused, *delayed], dtype="i8"))
        return tally

    return decide


def _part(rows: LogRows) -> Part:
    return Part(rows.names, rows.codes, rows.opened_us, rows.closed_us, int(what_if.NEVER))
