"""A journal that Spark reads from local folders or from URIs: as rows for the checks of the audit, or as a DataFrame of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import NoInput
from turnstile.pipeline.events.journal import EVENTS, Journal, late_in, nothing_in, read_part
from turnstile.pipeline.events.parts import Parts, Unreadable, parts_in
from turnstile.pipeline.events.parts_at import parts_at
from turnstile.pipeline.events.rows import RowsHere
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.spark_journal import Sources, cut, rows_of
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.paths_and_uris import as_read, is_uri, local_path
from turnstile.pipeline.session import is_local

SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
FETCHED_EVENTS = 1_000_000
"""The most events that are fetched from Spark: about 200 MB in its JVM, and as much in this process."""
INCARNATION = ("broker", "shard", "epoch")


class JournalEvents(NamedTuple):
    """The parts of a journal. `until_ns`: later events, by mono_ns, are left out, as a running cluster may not have written all of
    them; None: no cluster writes to the journal, and no event is left out."""

    spark: SparkSession
    sources: Sources
    parts: Parts
    until_ns: int | None

    @property
    def unreadable(self) -> list[Unreadable]:
        """The parts that can't be read."""
        return self.parts.unreadable

    def journal(self, *, fetched: bool = False, columns: pyarrow.Schema = EVENTS) -> Journal:
        """The journal as rows with these columns. `fetched`: a journal of up to FETCHED_EVENTS events is fetched from Spark, and
        the checks run in this process."""
        slices = cut(self.parts.spans, least=self.spark.sparkContext.defaultParallelism)
        rows = rows_of(self.spark, self.sources, columns, slices, self.parts.events, self._late())
        is_small = self.parts.events <= FETCHED_EVENTS
        return Journal(
            RowsHere(rows.table()) if fetched and is_small else rows, self.unreadable, self.until_ns is not None
        )

    @property
    def events(self) -> DataFrame:
        """Every event, `until_ns` or not: only for a journal that no process writes to."""
        # Spark reads a file with a damaged page up to that page. The missing events show as a gap in their numbers, or as a process
        # without an end.
        reader = self.spark.read.schema(SCHEMA).option("ignoreCorruptFiles", "true")
        return reader.parquet(*(as_read(part) for part in (*self.sources.near, *self.sources.far)))

    def _late(self) -> dict[Incarnation, int]:
        """Incarnation -> the number of its first event after `until_ns`. Only local parts may have such events: no cluster writes
        to a journal at a URI."""
        if self.until_ns is None:
            return {}
        found: dict[Incarnation, int] = {}
        for part in (*self.sources.near, *self.sources.sent):
            names = (*INCARNATION, "seq", "mono_ns")
            table = read_part(part, pyarrow.schema([EVENTS.field(name) for name in names]))
            for place, seq in late_in(table, self.until_ns).items():
                found[place] = min(found.get(place, seq), seq)
        return found


def read(
    spark: SparkSession, places: Sequence[str], *, aside: Path | None = None, until_ns: int | None = None
) -> JournalEvents:
    """The events of all parts in some local folders and URIs, up to `until_ns` of mono_ns. If two folders have a part of the same
    name, the first folder's counts.

    `aside`: one more folder, which only this process can see. Raises NoInput if a folder does not exist, or if no part can be read.
    """
    far = [place for place in places if is_uri(place)]
    near = [local_path(place) for place in places if not is_uri(place)]
    here = parts_in([*near, *([aside] if aside is not None else [])])
    there = parts_at(HadoopFiles(spark), far) if far else Parts([], 0, [], [])
    sent = []
    if aside is not None and not is_local(spark.sparkContext.master):
        sent = [part for part in here.whole if Path(part).parent == aside]
    seen = [str(Path(part).absolute()) for part in here.whole if part not in sent]
    unreadable = sorted([*here.unreadable, *there.unreadable])
    if not here.whole and not there.whole:
        raise NoInput(nothing_in(places, unreadable))
    parts = Parts([*here.whole, *there.whole], here.events + there.events, unreadable, [*here.spans, *there.spans])
    return JournalEvents(spark, Sources(seen, there.whole, sent), parts, until_ns)


def pairs(events: DataFrame) -> DataFrame:
    """One row for each connection that was admitted or closed.

    Columns: INCARNATION, conn, ip, listener, port, version; admitted_ns, closed_ns, admitted_at, closed_at (null: no such event);
    bytes; admissions, closes (numbers of events; 1, and 0 or 1, in a sound journal). A close with another address, listener or port
    than its admission is a row by itself, with no admission.
    """
    is_admitted, is_closed = F.col("kind") == "admitted", F.col("kind") == "closed"
    of_connections = events.where(is_admitted | is_closed)
    # Strings are keys, for an aggregate with strings among its values has to sort every row.
    return of_connections.groupBy(*INCARNATION, "conn", "ip", "listener", "port").agg(
        F.max("version").alias("version"),
        F.min(F.when(is_admitted, F.col("mono_ns"))).alias("admitted_ns"),
        F.max(F.when(is_closed, F.col("mono_ns"))).alias("closed_ns"),
        F.min(F.when(is_admitted, F.col("ts"))).alias("admitted_at"),
        F.max(F.when(is_closed, F.col("ts"))).alias("closed_at"),
        F.max("bytes").alias("bytes"),
        F.count_if(is_admitted).alias("admissions"),
        F.count_if(is_closed).alias("closes"),
    )
