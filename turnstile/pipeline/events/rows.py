"""Rows that a check is made of, here or on Spark: the same function (a kernel) over either.

A kernel takes and gives Arrow tables, needs numpy and pyarrow alone, and never asks where its rows are. A small journal
(cli/in_process_limit.py) is judged in this process, in one piece, without Spark (`RowsHere`); a larger one, or one that
only Spark can read, in tasks of Spark (`spark_rows.RowsOnSpark`). Rows of one key are always in one task, so a kernel that
groups by that key finds the same in one piece and in many.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow

from turnstile.pipeline.events import arrays, open_counts

Kernel = Callable[[pyarrow.Table], pyarrow.Table]
InTurn = Callable[[Iterator[pyarrow.Table]], pyarrow.Table]


class Carry(NamedTuple):
    """The cuts in time of a kernel over rows in order of `at_ns`.

    ends      a kernel: what is so at the end of a slice of the rows, whatever was before it (columns of `schema`)
    carried   `ends` of all slices in order of time -> for each slice in turn the rows that stand for all before it
    """

    ends: Kernel
    schema: pyarrow.Schema
    carried: Callable[[Sequence[pyarrow.Table]], Iterable[pyarrow.Table]]


class Rows(Protocol):
    """Rows of one schema."""

    def of_kinds(self, kinds: Sequence[str], columns: Sequence[str]) -> "Rows":
        """Events of these kinds, and these columns of them."""
        ...

    def each(self, kernel: Kernel, schema: pyarrow.Schema) -> "Rows":
        """The table that a kernel makes of any part of the rows."""
        ...

    def by(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema) -> "Rows":
        """The table that a kernel makes of rows of which all that have the same `keys` come together."""
        ...

    def in_turn(self, keys: Sequence[str], kernel: InTurn, schema: pyarrow.Schema) -> "Rows":
        """As `by`, but a kernel has the rows slice of time after slice of time, so that it need not hold them all."""
        ...

    def by_in_time(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema, carry: Carry) -> "Rows":
        """As `by`, but the rows come in slices of time, each with what is carried into it."""
        ...

    def swept(
        self, kinds: Sequence[str], judge: open_counts.Judge, schema: pyarrow.Schema, *, closes_first: bool
    ) -> pyarrow.Table:
        """The findings of `judge` in pools of these kinds, counted at every instant (open_counts.py)."""
        ...

    def and_(self, other: "Rows") -> "Rows":
        """These and those, of the same schema."""
        ...

    def kept(self) -> "Rows":
        """The rows, computed once however often they are asked for, until `forget`."""
        ...

    def forget(self) -> None:
        """Ends `kept`."""
        ...

    def table(self) -> pyarrow.Table:
        """All of them, here."""
        ...


class RowsHere:
    """Rows in this process."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def of_kinds(self, kinds: Sequence[str], columns: Sequence[str]) -> Rows:
        wanted = pyarrow.array(arrays.is_one_of(self._table, "kind", kinds))
        return RowsHere(self._table.select(columns).filter(wanted))

    def each(self, kernel: Kernel, schema: pyarrow.Schema) -> Rows:
        return RowsHere(kernel(self._table))

    def by(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema) -> Rows:
        return RowsHere(kernel(self._table))

    def in_turn(self, keys: Sequence[str], kernel: InTurn, schema: pyarrow.Schema) -> Rows:
        return RowsHere(kernel(iter([self._table])))

    def by_in_time(self, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema, carry: Carry) -> Rows:
        return self.by(keys, kernel, schema)

    def swept(
        self, kinds: Sequence[str], judge: open_counts.Judge, schema: pyarrow.Schema, *, closes_first: bool
    ) -> pyarrow.Table:
        nothing = open_counts.CARRY.empty_table()
        return open_counts.judged(self._table, nothing, kinds, judge, schema, closes_first=closes_first)

    def and_(self, other: Rows) -> Rows:
        return RowsHere(pyarrow.concat_tables([self._table, other.table()]))

    def kept(self) -> Rows:
        return self

    def forget(self) -> None:
        """Nothing is held."""

    def table(self) -> pyarrow.Table:
        return self._table
