"""A log's way to the tasks that replay it, in one pass: columns of numbers in pieces, not rows of strings.

A task that reads the log gives each address (or user, entities.py) to one replay by a hash of it, and sends a run of rows to
each as one binary value: the shuffle moves a few thousand values instead of a row for each connection. Rows that can't be
used are counted on the way.

one_piece_for_each_replay  every usable connection is in exactly one piece for each replay that needs it
log_order_decides_at_one_instant  the order of a log decides between connections of one instant: by file, and by place in the
    file. A log that has no such order (`rank` instead of a place) is ordered by rank, then by when a connection closed
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.inputs.entities import Entities, EntityType
from turnstile.pipeline.plan.what_if import NEVER

Batches = Iterator[pyarrow.RecordBatch]
PIECES = "slot int, source string, block long, nth long, rows binary, reason string, n long"
ROWS_AT_ONCE = 1_000_000
_SCHEMA = pyarrow.schema(
    [("slot", pyarrow.int32()), ("source", pyarrow.string()), ("block", pyarrow.int64()), ("nth", pyarrow.int64()),
     ("rows", pyarrow.binary()), ("reason", pyarrow.string()), ("n", pyarrow.int64())]
)  # fmt: skip


class Slots(NamedTuple):
    """Numbers of replays: `by_entity` of them have a share of the entities each, `whole` more have all of them."""

    by_entity: int
    whole: int

    @property
    def total(self) -> int:
        """The number of replays."""
        return self.by_entity + self.whole


class LogRows(NamedTuple):
    """The rows that a replay was given, in the log's order: distinct entities, and columns with a number for each connection."""

    names: Entities
    codes: Array
    opened_us: Array
    closed_us: Array
    listeners: pyarrow.DictionaryArray | None


def spread(slots: Slots, by: EntityType) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: a partition of ARRIVALS -> PIECES."""

    def cut(batches: Batches) -> Batches:
        bad: Counter[str] = Counter()
        for nth, run in enumerate(_runs(batches)):
            usable = _usable(run, by, bad)
            if usable.num_rows:
                yield _pieces(usable, slots, by, nth)
        if bad:
            yield _batch(len(bad), {"slot": [0] * len(bad), "reason": list(bad), "n": list(bad.values())})

    return cut


class Gathered(NamedTuple):
    """The rows of a log (None without any), and how many of them can't be used, by reason."""

    rows: LogRows | None
    bad: Counter[str]


def gather(batches: Batches, by: EntityType) -> Gathered:
    """The rows that a replay was sent."""
    table = pyarrow.Table.from_batches(list(batches), _SCHEMA)
    facts = table.filter(pyarrow.compute.is_valid(table["reason"]))
    bad: Counter[str] = Counter()
    for reason, n in zip(facts["reason"].to_pylist(), facts["n"].to_pylist(), strict=True):
        bad[reason] += n
    pieces = table.filter(pyarrow.compute.is_valid(table["rows"]))
    if not pieces.num_rows:
        return Gathered(None, bad)
    pieces = pieces.sort_by([(name, "ascending") for name in ("source", "block", "nth")])
    blobs = [each for chunk in pieces["rows"].chunks for each in chunk]
    whole = pyarrow.concat_tables([pyarrow.ipc.open_stream(blob.as_buffer()).read_all() for blob in blobs])
    names, codes = by.distinct(whole)
    opened_us, closed_us = whole["opened_us"].to_numpy(), whole["closed_us"].to_numpy()
    listeners = whole["listener"].unify_dictionaries().combine_chunks() if "listener" in whole.column_names else None
    rows = LogRows(names, codes, opened_us, closed_us, listeners)
    if "rank" in whole.column_names:
        rows = in_order(rows, numpy.lexsort((closed_us, whole["rank"].to_numpy(), codes, opened_us)))
    return Gathered(rows, bad)


def in_order(rows: LogRows, order: Array) -> LogRows:
    """The connections in another order."""
    listeners = None if rows.listeners is None else rows.listeners.take(pyarrow.array(order))
    return LogRows(rows.names, rows.codes[order], rows.opened_us[order], rows.closed_us[order], listeners)


def _runs(batches: Batches) -> Iterator[pyarrow.Table]:
    """Runs of rows of one stretch of one file, of at most about ROWS_AT_ONCE rows."""
    held: list[pyarrow.RecordBatch] = []
    for batch in batches:
        for part in _stretches(batch):
            if held and (_stretch(held[0], 0) != _stretch(part, 0) or sum(map(len, held)) >= ROWS_AT_ONCE):
                yield pyarrow.Table.from_batches(held)
                held = []
            held.append(part)
    if held:
        yield pyarrow.Table.from_batches(held)


def _stretches(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """A batch, cut where another stretch or file begins."""
    if not batch.num_rows:
        return
    is_new = numpy.zeros(batch.num_rows, dtype=bool)
    for name in ("source", "block"):
        if name in batch.schema.names:
            column = batch.column(name)
            changes = pyarrow.compute.not_equal(column.slice(1), column.slice(0, len(column) - 1))
            is_new[1:] |= pyarrow.compute.fill_null(changes, False).to_numpy(zero_copy_only=False)
    starts = [0, *numpy.flatnonzero(is_new).tolist(), batch.num_rows]
    for start, end in pairwise(starts):
        if end > start:
            yield batch.slice(start, end - start)


class _Stretch(NamedTuple):
    """A file, and where a stretch of it begins."""

    source: str | None
    block: int | None


def _stretch(rows: pyarrow.RecordBatch, row: int) -> _Stretch:
    names = rows.schema.names
    return _Stretch(*(rows[name][row].as_py() if name in names else None for name in _Stretch._fields))


def _usable(run: pyarrow.Table, by: EntityType, bad: Counter[str]) -> pyarrow.Table:
    """The usable rows, with the columns of the entity instead of `ip`; the others are counted in `bad`."""
    if run["bad"].null_count < len(run):
        for each in run["bad"].drop_null().value_counts().to_pylist():
            bad[each["values"]] += each["counts"]
        run = run.filter(pyarrow.compute.is_null(run["bad"]))
    entity, is_usable = by.columns(run["ip"].combine_chunks())
    columns = {name: run[name] for name in run.column_names if name not in ("ip", "bad")}
    usable = pyarrow.table({**entity, **columns})
    if is_usable.all():
        return usable
    bad[by.unusable] += int(numpy.count_nonzero(~is_usable))
    return usable.filter(pyarrow.array(is_usable))


def _pieces(run: pyarrow.Table, slots: Slots, by: EntityType, nth: int) -> pyarrow.RecordBatch:
    source, block = _stretch(run, 0)
    columns = {name: run[name] for name in run.column_names if name not in ("source", "block")}
    columns["closed_us"] = pyarrow.compute.fill_null(run["closed_us"], int(NEVER))
    if "listener" in columns:
        columns["listener"] = run["listener"].combine_chunks().dictionary_encode()
    rows = pyarrow.table(columns)
    slot = by.slots(rows, slots.by_entity)
    order = numpy.argsort(slot, kind="stable")
    bounds = numpy.searchsorted(slot[order], numpy.arange(slots.by_entity + 1))
    apart = rows.take(pyarrow.array(order)) if slots.by_entity > 1 else rows
    given = [(each, apart.slice(bounds[each], bounds[each + 1] - bounds[each])) for each in range(slots.by_entity)]
    given += [(each, rows) for each in range(slots.by_entity, slots.total)]
    given = [(each, part) for each, part in given if part.num_rows]
    every = len(given)
    return _batch(
        every,
        {"slot": [each for each, _ in given], "source": [source] * every, "block": [block] * every, "nth": [nth] * every,
         "rows": [_blob(part) for _, part in given]},
    )  # fmt: skip


def _blob(rows: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def _batch(count: int, columns: dict[str, Sequence[object]]) -> pyarrow.RecordBatch:
    arrays = [
        pyarrow.array(columns[field.name], field.type) if field.name in columns else pyarrow.nulls(count, field.type)
        for field in _SCHEMA
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
