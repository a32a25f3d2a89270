"""Rows on Spark (rows.py): tables in the tasks of an RDD. Tasks send each other tables (blobs.py), never rows.

one_order  rows of a task are in one order, whatever order they came in: by the task that sent them
slices_are_judged_as_one_piece  what is asked of rows in order of time is done slice by slice: each slice of time is one task, and
    what is so before it is put together in this process, from what each slice says of itself (Carry)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.blobs import Packed, packed, parted, shares, unpacked
from turnstile.pipeline.events.rows import Carry, InTurn, Kernel, Rows
from turnstile.pipeline.events.sent_tables import SentTables
from turnstile.pipeline.interrupts import in_thread

if TYPE_CHECKING:
    from pyspark import RDD

TASK_ROWS = 500_000
Piece = tuple[Any, bytes]
"""(What it is ordered by among those of its task, a table)."""
Make = Callable[[int, pyarrow.Table], pyarrow.Table]
"""A kernel that is told the number of its task."""


class Slices(NamedTuple):
    """The instants at which time is cut, in order: slice n is from bound n - 1 until before bound n."""

    bounds: tuple[int, ...]

    @property
    def number(self) -> int:
        """The number of rows."""
        return len(self.bounds) + 1

    def of(self, table: pyarrow.Table) -> arrays.Array:
        """The slice of each row, by its `at_ns`, or the `mono_ns` of an event."""
        name = "at_ns" if "at_ns" in table.schema.names else "mono_ns"
        found: arrays.Array = numpy.searchsorted(
            numpy.array(self.bounds, "i8"), arrays.numbers(table, name), side="right"
        )
        return found


class RowsOnSpark:
    """The tables that `make` makes of the pieces in each task. `rows`: about how many events there are, for the number of tasks.

    `held`: the schema of the pieces, `schema`: of what is made of them.
    """

    def __init__(
        self, pieces: RDD[Piece], held: pyarrow.Schema, slices: Slices, rows: int, *,
        schema: pyarrow.Schema | None = None, make: Make | None = None,
    ) -> None:  # fmt: skip
        self._pieces = pieces
        self._held = held
        self._slices = slices
        self._rows = rows
        self._schema = held if schema is None else schema
        self._make = make or _itself

    def of_kinds(self, kinds: Sequence[str], columns: Sequence[str]) -> Rows:
        schema = pyarrow.schema([self._schema.field(name) for name in columns])
        return self.each(partial(_of_kinds, tuple(kinds), tuple(columns)), schema)

    def each(self, kernel: Kernel, schema: pyarrow.Schema) -> RowsOnSpark:
        return self._with(partial(_then, self._make, kernel), schema)

    def by(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema) -> Rows:
        count = max(1, self._rows // TASK_ROWS)
        return self._sent(partial(_shares, tuple(keys), count), count).each(kernel, schema)

    def in_turn(self, keys: Sequence[str], kernel: InTurn, schema: pyarrow.Schema) -> Rows:
        count = max(1, self._rows // TASK_ROWS)
        sent = self._sent(partial(_shares, tuple(keys), count), count)
        pieces = sent._pieces.mapPartitionsWithIndex(partial(_in_turn, self._schema, kernel))
        return RowsOnSpark(pieces, schema, self._slices, self._rows)

    def by_in_time(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema, carry: Carry) -> Rows:
        slices = self._in_time()
        carried = carry.carried(slices.each(carry.ends, carry.schema).tables())
        return slices._with(partial(_with_carried, SentTables(self._pieces.context, carried), kernel), schema)

    def swept(
        self, kinds: Sequence[str], judge: open_counts.Judge, schema: pyarrow.Schema, *, closes_first: bool
    ) -> pyarrow.Table:
        slices = self._in_time()
        carried = open_counts.carried(slices.each(partial(open_counts.nets, tuple(kinds)), open_counts.CARRY).tables())
        swept = partial(
            _swept, SentTables(self._pieces.context, carried), tuple(kinds), judge, schema, closes_first=closes_first
        )
        return slices._with(swept, schema).table()

    def and_(self, other: Rows) -> Rows:
        if isinstance(other, RowsOnSpark) and other._pieces is self._pieces:
            return self._with(partial(_both, self._make, other._make), self._schema)
        if not isinstance(other, RowsOnSpark):  # a few of this process
            sent = self._pieces.context.parallelize([(0, packed(other.table()))], 1)
            other = RowsOnSpark(sent, other.table().schema, self._slices, self._rows)
        pieces = self._made().union(other._made())
        return RowsOnSpark(pieces, self._schema, self._slices, self._rows)

    def kept(self) -> RowsOnSpark:
        from pyspark import StorageLevel  # for this process alone: tasks import this module

        return RowsOnSpark(self._made().persist(StorageLevel.DISK_ONLY), self._schema, self._slices, self._rows)

    def forget(self) -> None:
        self._pieces.unpersist()

    def table(self) -> pyarrow.Table:
        return pyarrow.concat_tables([self._schema.empty_table(), *map(self._cast, self.tables())])

    def tables(self) -> Packed:
        """The table of each task, in their order."""
        made = self._made()
        return Packed([value for _, value in in_thread(made.collect).result()], self._schema)

    def _cast(self, table: pyarrow.Table) -> pyarrow.Table:
        return table.cast(self._schema)

    def _with(self, make: Make, schema: pyarrow.Schema) -> RowsOnSpark:
        return RowsOnSpark(self._pieces, self._held, self._slices, self._rows, schema=schema, make=make)

    def _made(self) -> RDD[Piece]:
        """One piece of each task."""
        return self._pieces.mapPartitionsWithIndex(partial(_packed, self._held, self._make))

    def _in_time(self) -> RowsOnSpark:
        """Each row in the task of its slice."""
        return self._sent(self._slices.of, self._slices.number)

    def _sent(self, where: Callable[[pyarrow.Table], arrays.Array], count: int) -> RowsOnSpark:
        """Each row in the task that `where` says."""
        pieces = self._pieces.mapPartitionsWithIndex(partial(_parts, self._held, self._make, where))
        sent = pieces.partitionBy(count, int).values()
        return RowsOnSpark(sent, self._schema, self._slices, self._rows)


def _gathered(held: pyarrow.Schema, pieces: Iterable[Piece]) -> pyarrow.Table:
    return unpacked((value for _, value in sorted(pieces, key=lambda piece: piece[0])), held)


def _in_turn(held: pyarrow.Schema, kernel: InTurn, number: int, pieces: Iterable[Piece]) -> Iterator[Piece]:
    in_order = sorted(pieces, key=lambda piece: piece[0])
    yield number, packed(kernel(unpacked([value], held) for _, value in in_order))


def _packed(held: pyarrow.Schema, make: Make, number: int, pieces: Iterable[Piece]) -> Iterator[Piece]:
    yield number, packed(make(number, _gathered(held, pieces)))


def _parts(
    held: pyarrow.Schema,
    make: Make,
    where: Callable[[pyarrow.Table], arrays.Array],
    number: int,
    pieces: Iterable[Piece],
) -> Iterator[tuple[int, Piece]]:
    table = make(number, _gathered(held, pieces))
    for task, part in parted(table, where(table)):
        yield task, (number, packed(part))


def _shares(keys: Sequence[str], count: int, table: pyarrow.Table) -> arrays.Array:
    return shares(table, keys, count)


def _itself(number: int, table: pyarrow.Table) -> pyarrow.Table:
    return table


def _then(make: Make, kernel: Kernel, number: int, table: pyarrow.Table) -> pyarrow.Table:
    return kernel(make(number, table))


def _both(one: Make, other: Make, number: int, table: pyarrow.Table) -> pyarrow.Table:
    made = [one(number, table), other(number, table)]
    return pyarrow.concat_tables([each.cast(made[0].schema) for each in made])


def _of_kinds(kinds: Sequence[str], columns: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    return table.select(columns).filter(pyarrow.array(arrays.is_one_of(table, "kind", kinds)))


def _with_carried(carried: SentTables, kernel: Kernel, number: int, table: pyarrow.Table) -> pyarrow.Table:
    before = carried.table(number, table.schema)
    return kernel(pyarrow.concat_tables([before.cast(table.schema), table]))


def _swept(
    carried: SentTables, kinds: Sequence[str], judge: open_counts.Judge, schema: pyarrow.Schema, number: int, table: pyarrow.Table,
    *, closes_first: bool,
) -> pyarrow.Table:  # fmt: skip
    before = carried.table(number, open_counts.CARRY)
    return open_counts.judged(table, before, kinds, judge, schema, closes_first=closes_first)
