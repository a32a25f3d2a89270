"""A log that is small and plain, read in this process: the rows that Spark reads of it (connection_logs.py), without a JVM.

same_rows_as_spark  what is read here is, row by row, what Spark reads: the same connections, the same reasons of rows put aside
unplain_is_left_to_spark  a log in which anything is not plain (Unplain) is not read here: a form of time or number that is not one
    of the usual, a pattern for a path, a mapping that does not fit. Spark reads it, and says what is wrong with it
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from turnstile.pipeline.inputs.contents import Contents, usable
from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.inputs.plain import Unplain
from turnstile.pipeline.inputs.plain_text import csv, haproxy, zeek
from turnstile.pipeline.paths_and_uris import is_uri, local_path

HERE_CONNECTIONS = 10_000_000
"""2.6 GiB, and half a core minute with six caps; Spark takes 3.5 times as much CPU time, which two cores do not make up for."""
TEXT_BYTES = 400 << 20
"""About four million lines, which take about as much memory."""
_PATTERN = set("*?[]{}\\")
_TEXT: dict[str, Callable[[Sequence[Path], Mapping[str, str], int | None, EntityType], Iterator[pyarrow.Table]]] = {
    "zeek": zeek,
    "haproxy": haproxy,
    "csv": csv,
}


class SmallLog:
    """A log's rows in order: ip (the entity, as it is spelled), opened_us, closed_us (null: open at the end), listener, bad."""

    def __init__(self, paths: Sequence[str], format: str, table: pyarrow.Table, by: EntityType = IP) -> None:
        self.paths = paths
        self.format = format
        self.table = table
        self.by = by

    @cached_property
    def contents(self) -> Contents:
        """The contents of the log. Raises PipelineError as `usable` does."""
        rows = self.table.filter(self.table["bad"].is_null())
        bad = Counter(self.table["bad"].drop_null().to_pylist())
        is_usable = self.by.columns(rows["ip"].combine_chunks()).is_usable
        total = int(is_usable.sum())
        bad[self.by.unusable] += rows.num_rows - total
        usable(total, +bad, self.paths, self.format, self.by)
        opened = pyarrow.compute.min_max(rows["opened_us"].filter(pyarrow.array(is_usable))).as_py()
        return Contents(total, opened["min"], opened["max"], +bad)


def read_small_log(
    paths: Sequence[str],
    format: str,
    *,
    columns: Mapping[str, str] | None = None,
    port: int | None = None,
    by: EntityType = IP,
) -> SmallLog | None:
    """A log of at most about HERE_CONNECTIONS; None for one that is larger, elsewhere, or not plain (unplain_is_left_to_spark)."""
    try:
        if format == "journal":
            return None if port is not None else _journal(paths, by)
        files = [file for path in paths for file in _files(path)]
        files.sort(key=Path.as_uri)  # as Spark names them
        if format == "parquet":
            tables = [_parquet(files, columns or {}, port, by)]
        elif format in _TEXT and sum(map(_text_bytes, files)) <= TEXT_BYTES:
            tables = list(_TEXT[format](files, columns or {}, port, by))
        else:
            return None
    except (Unplain, OSError, EOFError, UnicodeError, pyarrow.ArrowException):
        return None
    table = pyarrow.concat_tables(tables) if tables else None
    return SmallLog(paths, format, table, by) if table is not None and table.num_rows else None


def _files(place: str) -> list[Path]:
    """The files of a path, as Spark looks for them. Raises Unplain where it is a pattern, elsewhere, or not there."""
    if is_uri(place) or _PATTERN & set(place):
        raise Unplain
    path = local_path(place).absolute()
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise Unplain
    inside = (each for each in path.rglob("*") if each.is_file())
    return [each for each in inside if not any(part[0] in "._" for part in each.relative_to(path).parts)]


def _text_bytes(file: Path) -> int:
    if file.suffix not in (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"):
        return file.stat().st_size
    if file.suffix != ".gz":
        raise Unplain
    return 10 * file.stat().st_size


def _parquet(files: Sequence[Path], columns: Mapping[str, str], port: int | None, by: EntityType) -> pyarrow.Table:
    from turnstile.pipeline.inputs.plain_tables import mapped, wanted

    tables, rows = [], 0
    for file in files:
        with pyarrow.parquet.ParquetFile(file) as opened:
            rows += opened.metadata.num_rows
            if rows > HERE_CONNECTIONS:
                raise Unplain
            tables.append(opened.read(columns=wanted(opened.schema_arrow.names, columns, by)))
    if not tables or any(each.schema.names != tables[0].schema.names for each in tables):
        raise Unplain
    return pyarrow.concat_tables([mapped(each, columns, port, by) for each in tables])


def _journal(paths: Sequence[str], by: EntityType) -> SmallLog | None:
    from turnstile.pipeline.inputs.plain_journal import placed

    if any(map(is_uri, paths)):
        return None
    table = placed([local_path(path) for path in paths], HERE_CONNECTIONS, by)
    return None if table is None else SmallLog(paths, "journal", table, by)
