"""The canonical `connections` frame that every input becomes, and what makes a row of it good.

One row is one client connection. `closed_at` null: open at the end of the log. Rows that can't be used are never dropped
silently: they stay in the same frame with the reason in `bad` and the original text in `raw`, until `split`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.inputs import addresses
from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.inputs.plain import DEFAULT_LISTENER

CONNECTIONS = (
    "ip string, port int, opened_at timestamp, closed_at timestamp, listener string, bytes long, source string"
)
COLUMNS = ("ip", "port", "opened_at", "closed_at", "listener", "bytes", "source")
ARRIVALS = ("ip", "opened_us", "closed_us", "listener")
"""The columns that a replay needs of each connection, times in epoch microseconds; closed_us null: open at the end of the log."""
PLACE = ("block", "rank")
"""The place of a row in its log: the stretch of its file (rows of one are in order), or a number to be ordered by instead."""


class Reading(NamedTuple):
    """An input read: `connections` (CONNECTIONS) and `bad` (source, reason, raw)."""

    connections: DataFrame
    bad: DataFrame


def conclude(parsed: DataFrame, by: EntityType = IP) -> DataFrame:
    """Columns COLUMNS, PLACE, raw and bad of a format's own parse; `bad` gains what holds for every format but addresses. Of a log
    that is read by users `ip` is the user, here and in what is made of it.

    `parsed` has COLUMNS, `raw`, `bad` and, of PLACE, what the format can say.
    """
    reason = (
        F.when(F.col("bad").isNotNull(), F.col("bad"))
        .when(F.col("ip").isNull(), by.missing)
        .when(F.col("opened_at").isNull(), "no time of opening")
        .when(F.col("closed_at") < F.col("opened_at"), "closed before it was opened")
        .when(~F.col("port").between(0, 65535), "the port is not from 0 to 65535")
    )
    listener = F.coalesce(F.col("listener"), F.lit(DEFAULT_LISTENER))
    return parsed.select(
        "ip", "port", "opened_at", "closed_at", listener.alias("listener"), "bytes", "source",
        *(name for name in PLACE if name in parsed.columns),
        "raw",
        reason.alias("bad"),
    )  # fmt: skip


def whole(concluded: DataFrame, by: EntityType = IP) -> DataFrame:
    """CONNECTIONS, raw and bad: addresses as limits spell them, and rows without an address, or user, put aside."""
    if by.name != IP.name:
        bad = F.coalesce("bad", F.when(F.col("ip") == "", by.unusable))
        return concluded.select(*COLUMNS, "raw", bad.alias("bad"))
    return concluded.select(*COLUMNS, "raw", "bad").mapInArrow(_addressed, f"{CONNECTIONS}, raw string, bad string")


def _addressed(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        high, low, is_address = addresses.numbers(batch.column("ip"))
        is_fine = pyarrow.compute.is_null(batch.column("bad"))
        named = [addresses.name(int(one), int(two)) if known else None
                 for one, two, known in zip(high, low, is_address, strict=True)]  # fmt: skip
        wrong = pyarrow.compute.if_else(
            pyarrow.compute.and_(is_fine, pyarrow.array(~is_address)), addresses.NOT_AN_ADDRESS, batch.column("bad")
        )
        given = {"ip": pyarrow.array(named, pyarrow.string()), "bad": wrong}
        columns = [given.get(name, batch.column(name)) for name in batch.schema.names]
        yield pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def split(rows: DataFrame) -> Reading:
    """Good rows and bad rows of `whole` apart."""
    good = rows.where(F.col("bad").isNull()).select(*COLUMNS)
    bad = rows.where(F.col("bad").isNotNull()).select("source", F.col("bad").alias("reason"), "raw")
    return Reading(good, bad)


def arrivals(concluded: DataFrame) -> DataFrame:
    """ARRIVALS and `bad` of every row, addresses as they are spelled in the log."""
    times = (F.unix_micros(F.col(f"{name}_at")).alias(f"{name}_us") for name in ("opened", "closed"))
    places = (name for name in PLACE if name in concluded.columns)
    ordered = () if "rank" in concluded.columns else ("source",)
    return concluded.select("ip", *times, "listener", "bad", *places, *ordered)


class FilePlace(NamedTuple):
    """Columns of a row of a file: which file, and where the file's block begins."""

    source: Column
    block: Column


def file_places() -> FilePlace:
    """The place of a row by Spark's metadata of files."""
    source, block = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    return FilePlace(source.alias("source"), block.alias("block"))


def only_port(parsed: DataFrame, port: int | None) -> DataFrame:
    """Put connections to other server ports aside; `parsed` has `server_port` and `bad`. None: keep all."""
    if port is None:
        return parsed
    other = F.when(F.coalesce(F.col("server_port") != port, F.lit(True)), F.lit(f"not to port {port}"))
    return parsed.withColumn("bad", F.coalesce("bad", other))


def micros(epoch: Column) -> Column:
    """Epoch seconds as text, with up to six decimals -> timestamp; null when it is no number.

    Numbers too large for seconds are milliseconds, microseconds or nanoseconds: seconds end in the year 5138.
    """
    number = epoch.try_cast("decimal(26,6)")
    size = F.abs(number)
    scaled = (
        F.when(size < 100_000_000_000, number * 1_000_000)
        .when(size < 100_000_000_000_000, number * 1_000)
        .when(size < 100_000_000_000_000_000, number)
        .otherwise(number / 1_000)
    )
    return F.timestamp_micros(scaled.cast("long"))


def later(start: Column, seconds: Column) -> Column:
    """A timestamp that many (decimal, text) seconds after `start`; null when it is no number."""
    return F.timestamp_micros(F.unix_micros(start) + (seconds.try_cast("decimal(20,6)") * 1_000_000).cast("long"))
