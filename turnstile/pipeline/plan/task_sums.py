"""The answer of a task for its part of a log: sums, and the few entities that stand out; never connections.

Every row is TELLS: `what` it is, of which candidate or entity, and how many. Rows of equal key add up over tasks, so one
aggregation answers a plan. What is told about an entity is whole, for an entity is in one task only.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.entities import Entities, Users
from turnstile.pipeline.plan.excess import Excess, stepped

NETWORKS = ("network_v4", "network_v6")
"""The networks that are hit: each a /24 or a /64, as a number; one that several tasks tell of is one."""
TELLS = "what string, candidate int, name string, number long, n long"
MINUTE_US = 60_000_000
HOUR_US = 3_600_000_000
SCHEMA = pyarrow.schema(
    [("what", pyarrow.string()), ("candidate", pyarrow.int32()), ("name", pyarrow.string()),
     ("number", pyarrow.int64()), ("n", pyarrow.int64())]
)  # fmt: skip


class Part(NamedTuple):
    """Connections in the order they are replayed in. `codes` index `names`; closed_us is `never` for what never closed."""

    names: Entities
    codes: Array
    opened_us: Array
    closed_us: Array
    never: int


class Incident(NamedTuple):
    """The time from low_us until before high_us, in a log of `span_s` seconds."""

    low_us: int
    high_us: int
    span_s: float

    def contains(self, opened_us: Array) -> Array:
        """True for each connection that was opened in it."""
        return (opened_us >= self.low_us) & (opened_us < self.high_us)

    def uninvolved(self, part: Part) -> Array:
        """True for each entity of a part that took no part in it: it came at most three times as often as it usually does."""
        inside = self.contains(part.opened_us)
        count = len(part.names)
        during = numpy.bincount(part.codes[inside], minlength=count)
        quiet = numpy.bincount(part.codes[~inside], minlength=count)
        seconds = (self.high_us - self.low_us) / 1e6
        return during <= 3 * (quiet / max(1.0, self.span_s - seconds) * seconds)


_NOTHING = Part(Users([]), numpy.zeros(0, "i8"), numpy.zeros(0, "i8"), numpy.zeros(0, "i8"), 0)


class TaskSums:
    """Rows of TELLS about one part, being gathered."""

    def __init__(self, part: Part, incident: Incident | None = None) -> None:
        self._part = part
        self._incident = incident
        self._uninvolved = incident.uninvolved(part) if incident else None
        self._tables: list[pyarrow.Table] = []

    def refused(self, candidate: int, indices: Array) -> None:
        """The refusals of a candidate: refused, minute, incident, others (of entities that took no part in it)."""
        if not len(indices):
            return
        self._tell("refused", candidate, n=[len(indices)])
        opened_us, codes = self._part.opened_us[indices], self._part.codes[indices]
        minutes, counts = numpy.unique(opened_us // MINUTE_US, return_counts=True)
        self._tell("minute", candidate, number=minutes, n=counts)
        if self._incident is not None and self._uninvolved is not None:
            inside = self._incident.contains(opened_us)
            self._tell("incident", candidate, n=[numpy.count_nonzero(inside)])
            self._tell("others", candidate, n=[numpy.count_nonzero(self._uninvolved[codes[inside]])])

    def delayed(self, candidate: int, indices: Array) -> None:
        """The connections that it only delays."""
        if len(indices):
            self._tell("delayed", candidate, n=[len(indices)])

    def affected(self, candidate: int, indices: Array) -> None:
        """The entities and networks among what it refuses or delays."""
        hit = numpy.flatnonzero(numpy.bincount(self._part.codes[indices], minlength=len(self._part.names)))
        if len(hit):
            self._tell("entities", candidate, n=[len(hit)])
            for what, networks in zip(NETWORKS, self._part.names.networks(hit), strict=True):
                self._tell(what, candidate, number=networks, n=numpy.ones(len(networks), "i8"))

    def broker(self, peak: int) -> None:
        """The most connections open at once, all addresses together."""
        self._tell("broker_peak", number=[peak], n=[1])

    def entities(self, levels: Array) -> None:
        """Levels and peaks of all entities, the busiest one, how long connections last, and of those that `Excess.kept` keeps
        their levels, and more of those with the highest peaks.

        The part is in order of entity: connections of each are side by side.
        """
        part = self._part
        for what, instant in (("first", part.opened_us.min()), ("last", part.opened_us.max())):
            self._tell(what, number=[instant], n=[1])
        starts = numpy.flatnonzero(numpy.concatenate(([True], part.codes[1:] != part.codes[:-1])))
        ends = numpy.append(starts[1:], len(levels))
        peaks = numpy.maximum.reduceat(levels, starts)
        for what, values in (
            ("level", stepped(levels)),
            ("peak", peaks),
            ("lasted", _rounded(self._lasted(slice(None)))),
        ):
            numbers, counts = numpy.unique(values, return_counts=True)
            self._tell(what, number=numbers, n=counts)
        busiest = int((ends - starts).argmax())
        self._tell("busiest", name=[part.names[busiest]], n=[ends[busiest] - starts[busiest]])
        excess = Excess(ends - starts, levels, peaks)
        for each in excess.highest().tolist():
            self._greedy(part.names[each], slice(starts[each], ends[each]))
        for each in excess.kept().tolist():
            numbers, counts = excess.histogram(each)
            self._tell("of_level", name=[part.names[each]] * len(numbers), number=numbers, n=counts)
            self._tell("peak_of", name=[part.names[each]], n=[peaks[each]])

    @staticmethod
    def unusable(reasons: Mapping[str, int]) -> pyarrow.RecordBatch:
        """Rows of the log that can't be used, by reason."""
        sums = TaskSums(_NOTHING)
        sums._tell("unusable", name=list(reasons), n=list(reasons.values()))
        return sums.batch()

    def batch(self) -> pyarrow.RecordBatch:
        """All that was told."""
        table = pyarrow.concat_tables([SCHEMA.empty_table(), *self._tables]).combine_chunks()
        return pyarrow.RecordBatch.from_arrays([_one(column) for column in table.columns], schema=SCHEMA)

    def _greedy(self, name: str, rows: slice) -> None:
        """One entity: how long its connections last in the middle, how many there are and never closed, its fullest hour."""
        lasted = self._lasted(rows)
        if len(lasted):
            middle = (len(lasted) - 1) // 2
            self._tell("typical_us", name=[name], n=[numpy.partition(lasted, middle)[middle]])
        self._tell("connections_of", name=[name], n=[rows.stop - rows.start])
        self._tell("never", name=[name], n=[rows.stop - rows.start - len(lasted)])
        _, hourly = numpy.unique(self._part.opened_us[rows] // HOUR_US, return_counts=True)
        self._tell("fullest_hour", name=[name], n=[hourly.max()])

    def _lasted(self, rows: slice) -> Array:
        opened_us, closed_us = self._part.opened_us[rows], self._part.closed_us[rows]
        is_closed = closed_us != self._part.never
        lasted: Array = closed_us[is_closed] - opened_us[is_closed]
        return lasted

    def _tell(self, what: str, candidate: int | None = None, *, name: Any = None, number: Any = None, n: Any) -> None:
        count = len(n)
        columns = [
            pyarrow.repeat(what, count),
            pyarrow.nulls(count, pyarrow.int32()) if candidate is None else pyarrow.repeat(candidate, count),
            pyarrow.nulls(count, pyarrow.string()) if name is None else pyarrow.array(name, pyarrow.string()),
            pyarrow.nulls(count, pyarrow.int64()) if number is None else pyarrow.array(number, pyarrow.int64()),
            pyarrow.array(n, pyarrow.int64()),
        ]
        cast = [each.cast(field.type) for each, field in zip(columns, SCHEMA, strict=True)]
        self._tables.append(pyarrow.Table.from_arrays(cast, schema=SCHEMA))


def middle(counts: Iterable[tuple[int, int]]) -> int | None:
    """The value in the middle of (value, how many): at least half are no greater; None without any."""
    ordered = sorted(counts)
    rest = sum(count for _, count in ordered) / 2
    for value, count in ordered:
        rest -= count
        if rest <= 0:
            return value
    return None


def _rounded(values: Array) -> Array:
    """The values with seven leading bits, so that a log of any size has few different ones."""
    _, exponents = numpy.frexp(values.astype("f8"))
    drop = numpy.maximum(exponents.astype("i8") - 7, 0)
    rounded: Array = values >> drop << drop
    return rounded


def _one(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    return column.chunk(0) if column.num_chunks else pyarrow.array([], column.type)
