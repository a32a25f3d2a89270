"""A journal as rows that checks are made of (rows.py); one that is small enough is read here, without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from broker.journal.schema import COLUMNS, TOLD_LATE
from turnstile.pipeline.errors import NoInput
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.open_counts import NEVER
from turnstile.pipeline.events.parts import Unreadable, broker_of, parts_in
from turnstile.pipeline.events.rows import Rows, RowsHere
from turnstile.pipeline.events.sequence import Incarnation

_TYPES = {"long": pyarrow.int64(), "int": pyarrow.int32(), "double": pyarrow.float64(), "string": pyarrow.string()}
_NOT_READ = ("ts", "api")
OF_QUOTAS = ("user", "client_id", "bytes", "throttle_ms")
"""Columns that only checks of client quotas read, of the events of TOLD_LATE, and of a `closed` event the client (OF_CLIENTS): it
may have left before it was told a throttle. Checks of users' caps read the user of it and of `authenticated`. Nulls where a file
has no such event."""
OF_CLIENTS = ("user", "client_id")
EVENTS = pyarrow.schema(
    [
        ("ts_us", pyarrow.int64()),
        *((each.name, _TYPES[each.type]) for each in COLUMNS if each.name not in _NOT_READ),
    ]
)
"""The columns that checks read of an event. `ts_us`: `ts` in epoch microseconds."""
_KIND_OF = {name: EVENTS.field(name).type for name in OF_QUOTAS}
_DICTIONARY = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
IN_FILES = {"ts_us": "ts"}
"""Columns that have another name, and type, in a journal's files."""


class Journal(NamedTuple):
    """A journal as rows.py has it; its parts that can't be read; and whether processes that write to it are running."""

    rows: Rows
    unreadable: list[Unreadable]
    is_live: bool


def here(
    folders: Sequence[Path],
    *,
    until_ns: int | None = None,
    at_most: int | None = None,
    columns: pyarrow.Schema = EVENTS,
) -> Journal | None:
    """A journal of at most so many events, or of any size, read without Spark; None for a larger one.

    `columns`: what is read of an event.

    Raises NoInput when there is no such folder, or nothing in it that can be read.
    """
    parts = parts_in(folders)
    if at_most is not None and parts.events > at_most:
        return None
    tables, unreadable = [], list(parts.unreadable)
    for path in parts.whole:
        try:
            tables.append(read_part(path, columns))
        except (OSError, pyarrow.ArrowException):
            unreadable.append(Unreadable(f"{path} is damaged; its events are missing.", broker_of(path)))
    if not tables:
        raise NoInput(nothing_in(folders, unreadable))
    table = pyarrow.concat_tables(tables).unify_dictionaries().combine_chunks()
    if until_ns is not None:
        table = before_late(table, late_in(table, until_ns))
    return Journal(RowsHere(table), unreadable, until_ns is not None)


def late_in(table: pyarrow.Table, until_ns: int) -> dict[Incarnation, int]:
    """Incarnation -> its first number that is later: what is `throttled` may be told at an earlier instant."""
    late = table.select(["broker", "shard", "epoch", "seq", "mono_ns"])
    late = late.filter(pyarrow.compute.greater(late["mono_ns"], until_ns))
    found: dict[Incarnation, int] = {}
    for row in late.to_pylist():
        place = row["broker"], row["shard"], row["epoch"]
        found[place] = min(found.get(place, row["seq"]), row["seq"])
    return found


def before_late(table: pyarrow.Table, late: Mapping[Incarnation, int]) -> pyarrow.Table:
    """Each process's events before its first that is later."""
    if not late:
        return table
    place = [arrays.numbers(table, name) for name in ("broker", "shard", "epoch")]
    first_late = arrays.looked_up(place, lambda key: late.get((key[0], key[1], key[2]), NEVER))
    return table.filter(pyarrow.array(arrays.numbers(table, "seq") < first_late))


def read_part(part: object, columns: pyarrow.Schema) -> pyarrow.Table:
    """The events of a part (a path, or a file that is open). Raises OSError or ArrowException for one that is damaged."""
    names = [IN_FILES.get(name, name) for name in columns.names]
    # Not `read_table`, which imports pandas: that takes longer than to judge ten thousand events.
    with pyarrow.parquet.ParquetFile(part, page_checksum_verification=True) as file:
        read = [name for name in names if name not in OF_QUOTAS]
        table = file.read(columns=read)
        if len(read) < len(names):
            table = _with_quotas(file, table, [name for name in names if name in OF_QUOTAS])
        return table.select(names).rename_columns(columns.names).cast(_coded(columns))


def _with_quotas(file: pyarrow.parquet.ParquetFile, table: pyarrow.Table, names: Sequence[str]) -> pyarrow.Table:
    """The table with these columns of OF_QUOTAS."""
    wanted = [name for name in names if name in _read_for(table)]
    columns = file.read(columns=wanted) if wanted else table
    for name in names:
        column = columns[name] if name in wanted else pyarrow.nulls(table.num_rows, _KIND_OF[name])
        table = table.append_column(name, column)
    return table


def _read_for(table: pyarrow.Table) -> Sequence[str]:
    """The columns of OF_QUOTAS that a file with these events needs."""
    if "kind" not in table.column_names:
        return ()
    if arrays.is_one_of(table, "kind", TOLD_LATE).any():
        return OF_QUOTAS
    return OF_CLIENTS if arrays.is_one_of(table, "kind", ("closed", "authenticated")).any() else ()


def _coded(columns: pyarrow.Schema) -> pyarrow.Schema:
    """The schema with words as dictionaries; texts that all differ stay as they are."""
    return pyarrow.schema(
        [
            field.with_type(_DICTIONARY) if field.type == pyarrow.string() and field.name != "detail" else field
            for field in columns
        ]
    )


def nothing_in(places: Sequence[str | Path], unreadable: Sequence[Unreadable]) -> str:
    """The reason for which there is nothing to read."""
    if unreadable:
        return unreadable[0].sentence
    return f"{places[0]} has no journal in it (no .parquet parts)."
