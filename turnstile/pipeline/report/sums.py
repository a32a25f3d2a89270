"""Sums over any part of a journal's rows, added up: the shape of most tables of a report.

A kernel makes rows of keys and numbers from some events; rows of equal keys are then added, first by the workers, each of
which has all rows of its keys, and the result is a table of this process.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow

from turnstile.pipeline.events.rows import Kernel, Rows

Added = Mapping[str, str]
"""Column -> how rows of equal keys become one: sum, min or max."""


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """The table with text as text: rows of this process have it as dictionaries."""
    return table.cast(
        pyarrow.schema(
            [
                field.with_type(pyarrow.string()) if pyarrow.types.is_dictionary(field.type) else field
                for field in table.schema
            ]
        )
    )


def add(keys: Sequence[str], added: Added, table: pyarrow.Table) -> pyarrow.Table:
    """One row for each value of `keys`; columns of neither kind are left out."""
    sums = table.group_by(list(keys), use_threads=False).aggregate(list(added.items()))
    return sums.select([*keys, *(f"{name}_{how}" for name, how in added.items())]).rename_columns([*keys, *added])


def count(keys: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    """`keys` and `count`, one row for each of their values."""
    return add(keys, {"count": "sum"}, table.append_column("count", pyarrow.repeat(pyarrow.scalar(1), table.num_rows)))


def summed(
    rows: Rows, keys: Sequence[str], kernel: Kernel, schema: pyarrow.Schema, added: Added | None = None
) -> pyarrow.Table:
    """The tables that `kernel` makes of any part of the rows (`schema`), added up by `keys` and in their order.

    `added` defaults to the sum of every other column.
    """
    how = added or {name: "sum" for name in schema.names if name not in keys}

    def added_up(table: pyarrow.Table) -> pyarrow.Table:
        return add(keys, how, table).select(schema.names).cast(schema)

    parts = rows.each(lambda table: kernel(plain(table)), schema)
    return in_order(parts.by(keys, added_up, schema).table(), *keys)


def in_order(table: pyarrow.Table, *by: str) -> pyarrow.Table:
    """Rows by columns; `-name`: the greatest first. Rows without a value come last."""
    keys = [(each.removeprefix("-"), "descending" if each.startswith("-") else "ascending") for each in by]
    return table.sort_by(keys)


def first(table: pyarrow.Table, most: int, *by: str) -> pyarrow.Table:
    """The first so many in that order."""
    return in_order(table, *by).slice(0, most)


def top(keys: Sequence[str], added: Added, most: int, by: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    """Rows added up by their keys, and the first so many of them in an order: a kernel of rows that have whole keys, and of what
    such kernels found."""
    names = table.schema.names
    return first(add(keys, added, table).select(names).cast(table.schema), most, *by)


def topped(
    rows: Rows,
    keys: Sequence[str],
    kernel: Kernel,
    schema: pyarrow.Schema,
    added: Added,
    *,
    most: int,
    by: Sequence[str],
) -> pyarrow.Table:
    """As `summed`, but only the first `most` rows in an order."""
    whole = partial(top, keys, added, most, by)
    return whole(rows.each(lambda table: kernel(plain(table)), schema).by(keys, whole, schema).table())
