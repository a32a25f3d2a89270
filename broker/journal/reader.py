"""All events of a journal folder: its parts and the segments that aren't parts yet. For tests and tools."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet

from broker.journal import spool
from broker.journal.spool_columns import SCHEMA, read_segment

SETTLE_NS = 1_000_000_000
"""Within this time, a pass of a live process is over and its events are written."""

ORDER = [("mono_ns", "ascending"), ("epoch", "ascending"), ("seq", "ascending")]


def read_table(folder: Path) -> pyarrow.Table:
    """Every event on disk, by mono_ns. Of a live cluster: what had been flushed when each file was read."""
    segments = _read_segments(folder)
    parts = [
        pyarrow.parquet.read_table(path, schema=SCHEMA)
        for path in sorted(folder.glob(f"*{spool.PART}"))
        if path.stem not in segments
    ]
    tables = [*parts, *segments.values()]
    if not tables:
        return SCHEMA.empty_table()
    return pyarrow.concat_tables(tables).unify_dictionaries().sort_by(ORDER)


def events(folder: Path) -> Iterator[dict[str, object]]:
    """The events of a journal as dicts of the columns that aren't null; mono_ns stays an int, ts a datetime."""
    for batch in read_table(folder).to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def snapshot(folder: Path, into: Path) -> int | None:
    """Write what isn't a part yet as parts into the folder `into`, without touching the journal.

    Returns None when no writer is alive, else the mono_ns up to which the parts here and there are complete for every
    process: a reader that compares processes must leave out later events. Where both folders have a part of one name,
    take the journal's.
    """
    horizon = time.monotonic_ns() - SETTLE_NS
    alive = spool.has_writer(folder)
    for stem, table in _read_segments(folder).items():
        pyarrow.parquet.write_table(table, into / (stem + spool.PART))
    return horizon if alive else None


def _read_segments(folder: Path) -> dict[str, pyarrow.Table]:
    """Stem -> events of every segment. One that vanishes meanwhile is a part by now, which is listed later."""
    tables = {}
    for ending in (spool.LIVE, spool.DONE):
        for path in sorted(spool.spool_folder(folder).glob(f"*{ending}")):
            try:
                tables[path.stem] = read_segment(path)
            except FileNotFoundError:
                continue
    return tables
