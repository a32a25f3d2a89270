"""Tables as binary values: what tasks send each other instead of rows. Words that are often the same are coded once for each."""

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import Array

# Of a small table, threads cost several times what its work does; of a large one, a task has one core.
_WRITE = pyarrow.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pyarrow.ipc.IpcReadOptions(use_threads=False)


def packed(table: pyarrow.Table) -> bytes:
    """A table as one value."""
    sink = pyarrow.BufferOutputStream()
    whole = _with_few_words(_in_one_piece(table))
    with pyarrow.ipc.new_stream(sink, whole.schema, options=_WRITE) as writer:
        writer.write_table(whole)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def unpacked(values: Iterable[bytes], schema: pyarrow.Schema) -> pyarrow.Table:
    """The tables of such values as one; of `schema` where there is none."""
    tables = [pyarrow.ipc.open_stream(pyarrow.py_buffer(value), options=_READ).read_all() for value in values]
    if not tables:
        return schema.empty_table()
    if len(tables) == 1:
        return _in_one_piece(tables[0])
    if len({table.schema for table in tables}) > 1:  # some have their words coded, some not
        tables = [coded(table) for table in tables]
    return pyarrow.concat_tables(tables).unify_dictionaries().combine_chunks()


def _in_one_piece(table: pyarrow.Table) -> pyarrow.Table:
    """The table with one chunk in each column. Most tables have it already, and the look costs less than the copy."""
    if all(column.num_chunks == 1 for column in table.columns):
        return table
    return table.unify_dictionaries().combine_chunks()


class Packed(Sequence[pyarrow.Table]):
    """Tables that are unpacked one at a time, whenever they are asked for."""

    def __init__(self, values: Sequence[bytes], schema: pyarrow.Schema) -> None:
        self._values = values
        self._schema = schema

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        return unpacked([self._values[place]], self._schema)


def coded(table: pyarrow.Table) -> pyarrow.Table:
    """The table with words as dictionaries; `detail`, in which all differ, stays as it is."""
    for place, field in enumerate(table.schema):
        if field.type == pyarrow.string() and field.name != "detail":
            table = table.set_column(place, field.name, pyarrow.compute.dictionary_encode(table[field.name]))
    return table


def shares(table: pyarrow.Table, keys: Iterable[str], count: int) -> Array:
    """A number below `count` for each row: the same for rows that have the same in `keys`."""
    mixed = numpy.zeros(table.num_rows, "u8")
    for name in keys:
        mixed = (mixed ^ _numbers(table, name)) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> numpy.uint64(29)
    found: Array = ((mixed * numpy.uint64(0xBF58476D1CE4E5B9)) >> numpy.uint64(33)) % numpy.uint64(count)
    return found.astype("i8")


def parted(table: pyarrow.Table, number: Array) -> list[tuple[int, pyarrow.Table]]:
    """(number, its rows) for each number that occurs; rows stay in their order."""
    if not len(number):
        return []
    if number[0] == number[-1] and (number == number[0]).all():
        return [(int(number[0]), table)]
    order = numpy.argsort(number, kind="stable")
    ordered = table.take(pyarrow.array(order))
    starts = numpy.flatnonzero(numpy.diff(number[order], prepend=-1))
    ends = numpy.append(starts[1:], len(number))
    return [
        (int(number[order[start]]), ordered.slice(start, end - start))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _with_few_words(table: pyarrow.Table) -> pyarrow.Table:
    """The table without words that no row has in its dictionaries: a part of a table has only some of its words."""
    for place, field in enumerate(table.schema):
        if not pyarrow.types.is_dictionary(field.type) or not table.num_rows:
            continue
        column = table.column(place).chunk(0)
        if len(column.dictionary) > table.num_rows // 2:
            index = column.indices.fill_null(0).to_numpy()
            is_used = numpy.zeros(len(column.dictionary), dtype=bool)
            is_used[index] = True
            words = column.dictionary.filter(pyarrow.array(is_used))
            nulls = column.indices.is_null().to_numpy(zero_copy_only=False) if column.indices.null_count else None
            renumbered = pyarrow.array((numpy.cumsum(is_used) - 1)[index].astype("i4"), mask=nulls)
            table = table.set_column(place, field.name, pyarrow.DictionaryArray.from_arrays(renumbered, words))
    return table


def _numbers(table: pyarrow.Table, name: str) -> Array:
    """A number for each value of a column, the same in every process."""
    kind = table.schema.field(name).type
    if pyarrow.types.is_dictionary(kind) or pyarrow.types.is_string(kind):
        code, names = arrays.codes(table, name)
        return numpy.array([crc32((each or "").encode()) for each in names], "u8")[code]
    values: Array = arrays.numbers(table, name).astype("i8").view("u8")
    return values
