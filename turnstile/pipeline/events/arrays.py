"""Columns of an Arrow table as numpy arrays, and what is asked of sorted groups of rows: the words in which checks are written.

A null is `null` of `numbers`, and a name of its own (None) among `codes`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.compute

Array = numpy.ndarray[Any, Any]
TableRow = dict[str, Any]
"""A row of an Arrow table as `to_pylist` has it and `from_pylist` takes it: the table's schema says what is in each column."""
EventDetail = dict[str, Any]
"""The `detail` of an event, parsed: docs/internals/journal.md says what is in that of each kind."""


def numbers(table: pyarrow.Table, name: str, *, null: int = 0) -> Array:
    """A column of numbers, with `null` where there is none."""
    column = table[name]
    if column.null_count:
        column = pyarrow.compute.fill_null(column, null)
    values: Array = column.to_numpy()
    return values


def present(table: pyarrow.Table, name: str) -> Array:
    """True for each row that has that column."""
    column = table[name]
    return column.is_valid().to_numpy() if column.null_count else numpy.ones(len(column), dtype=bool)


class Codes(NamedTuple):
    """A number per row for its string, and the string of each number."""

    of_rows: Array
    names: list[str | None]


def codes(table: pyarrow.Table, name: str) -> Codes:
    """The strings of a column as numbers."""
    column = table[name]
    if not pyarrow.types.is_dictionary(column.type):
        column = pyarrow.compute.dictionary_encode(column)
    if column.num_chunks > 1:
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # no chunk at all, or several
        column = column.chunk(0) if column.num_chunks else pyarrow.array([], column.type)
    names: list[str | None] = column.dictionary.to_pylist()
    indices = column.indices
    if indices.null_count:
        indices = pyarrow.compute.fill_null(indices, len(names))
    return Codes(indices.to_numpy().astype("i8"), [*names, None])


def is_one_of(table: pyarrow.Table, name: str, wanted: Sequence[str]) -> Array:
    """True for each row whose string is one of them."""
    numbered, names = codes(table, name)
    return numpy.array([each in wanted for each in names])[numbered]


class Groups(NamedTuple):
    """Rows sorted by their keys (`order`: their places before), and where each group of equal keys begins."""

    order: Array
    starts: Array


def grouped(*keys: Array) -> Groups:
    """The rows sorted by their keys, the first key first."""
    order = numpy.lexsort(keys[::-1])
    return Groups(order, begins(*(key[order] for key in keys)))


def begins(*keys: Array) -> Array:
    """The start of each run of equal keys."""
    if not len(keys[0]):
        return numpy.zeros(0, dtype="i8")
    differs = numpy.zeros(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        differs |= key[1:] != key[:-1]
    return numpy.flatnonzero(numpy.concatenate(([True], differs)))


def in_span(group: Array, at: Array, low: int, high: int, counted: Array) -> Array:
    """The number of `counted` rows of each row's group that are at most `low` before and `high` after it. In any order."""
    if not len(at):
        return at
    first, width = int(at.min()), int(at.max()) - int(at.min()) + low + high + 1
    key = group * width + (at - first)  # rises with the group, and reaches into no other within the span
    counted_keys = numpy.sort(key[counted])
    count: Array = numpy.searchsorted(counted_keys, key + high, side="right") - numpy.searchsorted(
        counted_keys, key - low
    )
    return count


def group_of(starts: Array, rows: int) -> Array:
    """The number of the group that each row is in."""
    return numpy.repeat(numpy.arange(len(starts)), numpy.diff(numpy.append(starts, rows)))


def running(values: Array, starts: Array) -> Array:
    """The sum of a group's values up to each row, itself included."""
    total: Array = numpy.cumsum(values)
    if not len(starts):
        return total
    found: Array = total - (total - values)[starts][group_of(starts, len(values))]
    return found


def latest(is_it: Array, starts: Array) -> Array:
    """The place of the last row of the group at or before each that is it; -1 where there is none."""
    places = numpy.where(is_it, numpy.arange(len(is_it)), -1)
    if not len(starts):
        return places
    last = numpy.maximum.accumulate(places)
    found: Array = numpy.where(last >= starts[group_of(starts, len(is_it))], last, -1)
    return found


def before(places: Array, starts: Array) -> Array:
    """`latest` of the row before each in its group; -1 for the first."""
    shifted = numpy.concatenate(([-1], places[:-1])) if len(places) else places
    shifted[starts] = -1
    return shifted


def looked_up(keys: Sequence[Array], find: Callable[[tuple[int, ...]], int]) -> Array:
    """The result of `find` for each row's keys; it is asked once for equal ones."""
    order, starts = grouped(*keys)
    found = numpy.array([find(tuple(int(key[row]) for key in keys)) for row in order[starts]], dtype="i8")
    values = numpy.empty(len(order), dtype="i8")
    values[order] = found[group_of(starts, len(order))]
    return values


class FirstRows(NamedTuple):
    """The places of rows; and how many of the same key there are in all, beside the first of them, 0 beside the others."""

    places: Array
    counts: Array


def first_of_each(places: Array, key: Array, at_ns: Array, shown: int) -> FirstRows:
    """The first `shown` rows of each key in order of time, among some rows."""
    places = places[numpy.lexsort((at_ns[places], key[places]))]
    starts = begins(key[places])
    sizes = numpy.diff(numpy.append(starts, len(places)))
    counts = numpy.zeros(len(places), dtype="i8")
    counts[starts] = sizes
    kept = numpy.arange(len(places)) - numpy.repeat(starts, sizes) < shown
    return FirstRows(places[kept], counts[kept])


def table_of(schema: pyarrow.Schema, **columns: object) -> pyarrow.Table:
    """A table of that schema from arrays, lists or Arrow arrays."""
    return pyarrow.Table.from_arrays([_column(columns[field.name], field.type) for field in schema], schema=schema)


def _column(values: object, kind: pyarrow.DataType) -> object:
    if isinstance(values, pyarrow.ChunkedArray | pyarrow.Array):
        return values if values.type == kind else values.cast(kind)
    return pyarrow.array(values, type=kind)
