"""The journal as a DataFrame: which parts can be read, their schema, and connections paired from their events."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.events.journal import EVENTS, Journal, nothing_in
from turnstile.pipeline.events.parts import Unreadable, parts_in
from turnstile.pipeline.events.spark_rows import RowsOnSpark

SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
INCARNATION = ("broker", "shard", "epoch")
UNKNOWN_EVENTS = 10_000_000
"""What a journal is taken to have where nothing tells."""


class JournalEvents(NamedTuple):
    """A journal as a DataFrame, with each part that can't be read, about how many events there are, and as Journal has it
    whether it is live."""

    events: DataFrame
    unreadable: list[Unreadable]
    about: int
    is_live: bool

    def journal(self) -> Journal:
        """The same for kernels."""
        return Journal(RowsOnSpark(self.events.select(*EVENTS.names), self.about), self.unreadable, self.is_live)


def read(
    spark: SparkSession, folders: Sequence[str | Path], *, until_ns: int | None = None, may_be_empty: bool = False
) -> JournalEvents:
    """Events of the parts in `folders` (of parts of one name, the first folder's), up to `until_ns` of mono_ns.

    Raises PipelineError when there is no such folder, or nothing in it that can be read.
    """
    remote = [str(folder) for folder in folders if "://" in str(folder)]
    if remote:
        events = spark.read.schema(SCHEMA).parquet(*remote)
        return JournalEvents(_until(events, until_ns), [], UNKNOWN_EVENTS, until_ns is not None)
    parts = parts_in([Path(folder) for folder in folders])
    if not parts.whole and not may_be_empty:
        raise PipelineError(nothing_in(folders, parts))
    paths = [str(path) for path in parts.whole]
    # A page that is damaged ends its file there: what is missing shows as a gap, or as an end that is not told.
    reader = spark.read.schema(SCHEMA).option("ignoreCorruptFiles", "true")
    events = reader.parquet(*paths) if paths else spark.createDataFrame([], SCHEMA)
    return JournalEvents(_until(events, until_ns), parts.unreadable, parts.events, until_ns is not None)


def _until(events: DataFrame, until_ns: int | None) -> DataFrame:
    """Each process's events before its first that is later: what is `throttled` may be told at an earlier instant."""
    if until_ns is None:
        return events
    late = events.where(F.col("mono_ns") > until_ns).groupBy(*INCARNATION).agg(F.min("seq").alias("first_late"))
    kept = events.join(F.broadcast(late), [*INCARNATION], how="left").where(
        F.col("first_late").isNull() | (F.col("seq") < F.col("first_late"))
    )
    return kept.select(*events.columns)


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
