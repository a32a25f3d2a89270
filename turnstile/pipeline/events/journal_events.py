"""A journal that Spark reads: its parts, here or at URIs, as rows that checks are made of, or as a DataFrame of its events."""

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
"""About 200 MB in Spark's JVM and as much here."""
INCARNATION = ("broker", "shard", "epoch")


class JournalEvents(NamedTuple):
    """The parts of a journal, each part that can't be read, and up to which mono_ns it is complete (None: all of it)."""

    spark: SparkSession
    sources: Sources
    parts: Parts
    until_ns: int | None

    @property
    def unreadable(self) -> list[Unreadable]:
        """Parts that can't be read."""
        return self.parts.unreadable

    def journal(self, *, fetched: bool = False, columns: pyarrow.Schema = EVENTS) -> Journal:
        """The same for kernels, with these columns. `fetched`: a small one is judged here, and Spark only reads it."""
        slices = cut(self.parts.spans, least=self.spark.sparkContext.defaultParallelism)
        rows = rows_of(self.spark, self.sources, columns, slices, self.parts.events, self._late())
        is_small = self.parts.events <= FETCHED_EVENTS
        return Journal(
            RowsHere(rows.table()) if fetched and is_small else rows, self.unreadable, self.until_ns is not None
        )

    @property
    def events(self) -> DataFrame:
        """Every event, of a journal that no process writes to."""
        # A page that is damaged ends its file there: what is missing shows as a gap, or as an end that is not told.
        reader = self.spark.read.schema(SCHEMA).option("ignoreCorruptFiles", "true")
        return reader.parquet(*(as_read(part) for part in (*self.sources.near, *self.sources.far)))

    def _late(self) -> dict[Incarnation, int]:
        """Of parts of this machine alone: a journal at a URI is not written to."""
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
    """Events of the parts in folders, here or at URIs, up to `until_ns` of mono_ns; of parts of one name, the first folder's.

    `aside`: a folder of further parts that this process alone can see. Raises NoInput when there is no such folder, or
    nothing in it that can be read.
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
    """One row per connection that was admitted or closed.

    INCARNATION, conn, ip, listener, port, version, admitted_ns, closed_ns (null: not seen), admitted_at, closed_at, bytes,
    admissions, closes (how many events of each there are; 1 and at most 1 in a sound journal). A close that names another
    address, listener or port than the admission is a row of its own: one that was never admitted.
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
