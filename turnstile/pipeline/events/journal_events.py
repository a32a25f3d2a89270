"""The journal as a DataFrame: which parts can be read, their schema, and connections paired from their events."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.journal.schema import COLUMNS
from turnstile.pipeline.errors import NoInput
from turnstile.pipeline.events.journal import EVENTS, Journal, nothing_in
from turnstile.pipeline.events.parts import Parts, Unreadable, parts_in
from turnstile.pipeline.events.parts_at import parts_at
from turnstile.pipeline.events.rows import RowsHere
from turnstile.pipeline.events.spark_rows import RowsOnSpark
from turnstile.pipeline.fetch import fetch
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.places import as_read, is_uri, local_path
from turnstile.pipeline.session import is_local

SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
FETCHED_EVENTS = 1_000_000
"""About 200 MB in Spark's JVM and as much here."""
INCARNATION = ("broker", "shard", "epoch")


class JournalEvents(NamedTuple):
    """A journal as a DataFrame, with each part that can't be read, about how many events there are, and as Journal has it
    whether it is live."""

    events: DataFrame
    unreadable: list[Unreadable]
    about: int
    is_live: bool

    def journal(self, *, fetched: bool = False, columns: pyarrow.Schema = EVENTS) -> Journal:
        """The same for kernels, with these columns. `fetched`: a small one is judged here, and Spark only reads it."""
        events = self.events.withColumn("ts_us", F.unix_micros("ts")).select(*columns.names)
        is_small = self.about <= FETCHED_EVENTS
        rows = RowsHere(fetch(events)) if fetched and is_small else RowsOnSpark(events, self.about)
        return Journal(rows, self.unreadable, self.is_live)


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
    there = parts_at(HadoopFiles(spark), far) if far else Parts([], 0, [])
    sent = []
    if aside is not None and not is_local(spark.sparkContext.master):
        sent = [part for part in here.whole if Path(part).parent == aside]
    read_there = [as_read(part) for part in (*here.whole, *there.whole) if part not in sent]
    unreadable = sorted([*here.unreadable, *there.unreadable])
    if not read_there and not sent:
        raise NoInput(nothing_in(places, unreadable))
    # A page that is damaged ends its file there: what is missing shows as a gap, or as an end that is not told.
    reader = spark.read.schema(SCHEMA).option("ignoreCorruptFiles", "true")
    frames = [reader.parquet(*read_there)] if read_there else []
    frames += [_sent(spark, sent)] if sent else []
    events = _until(reduce(DataFrame.unionByName, frames), until_ns)
    return JournalEvents(events, unreadable, here.events + there.events, until_ns is not None)


def _sent(spark: SparkSession, parts: Sequence[str]) -> DataFrame:
    """The events of parts, sent to workers that can't read these."""
    table = pyarrow.concat_tables([pyarrow.parquet.read_table(part) for part in parts])
    plain = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return spark.createDataFrame(table.cast(pyarrow.schema(plain)))


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
