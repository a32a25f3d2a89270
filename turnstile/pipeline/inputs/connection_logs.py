"""Connection logs of any format and place -> the canonical connections, and the rows that can't be used, with why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pyarrow
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from turnstile.pipeline.errors import JVM_GONE, NoInput, PipelineError, cause, known, text_of
from turnstile.pipeline.inputs import delimited, haproxy, journal, vpcflow, zeek
from turnstile.pipeline.inputs.arrivals_at_cluster import DDL, of_log
from turnstile.pipeline.inputs.connections import arrivals, file_places, split, whole
from turnstile.pipeline.inputs.contents import ANOTHER_LAYOUT, Contents, usable
from turnstile.pipeline.inputs.entities import IP, USER, EntityType
from turnstile.pipeline.inputs.formats import WITH_USERS

TEXT_FORMATS: dict[str, Callable[..., DataFrame]] = {
    "vpcflow": vpcflow.parse,
    "haproxy": haproxy.parse,
}
BYTES_PER_ROW = 12
"""The size of a row in a compressed Parquet file; a line of text has some more."""
FORMATS = ("zeek", *TEXT_FORMATS, "csv", "parquet", "journal")


class Input(NamedTuple):
    """A log to be read: its ARRIVALS with `bad` and PLACE, and how large it may be.

    `connections` and `bad` are whole rows (CONNECTIONS, and source, reason, raw). Nothing is read before it is asked for.
    """

    arrived: DataFrame
    connections: DataFrame
    bad: DataFrame
    rows_about: int
    paths: Sequence[str]
    format: str
    again: Callable[[], "Input"] | None = None
    """Reads the log anew, with a look at every line of it beforehand: for when ANOTHER_LAYOUT was met."""
    by: EntityType = IP


def load(
    spark: SparkSession,
    paths: Sequence[str],
    format: str,
    *,
    columns: Mapping[str, str] | None = None,
    port: int | None = None,
    thorough: bool = False,
    by: EntityType = IP,
) -> Input:
    """Look at a log's first lines and say how it is read. Raises PipelineError, one sentence, when it can't be."""
    with explained(paths, format):
        parsed = parse(spark, paths, format, columns=columns, port=port, thorough=thorough, by=by)
        arrived = arrivals(parsed)
        reading = split(whole(parsed, by))
        again = (
            None if thorough else partial(load, spark, paths, format, columns=columns, port=port, thorough=True, by=by)
        )
        return Input(arrived, reading.connections, reading.bad, _rows_about(parsed, format), paths, format, again, by)


def contents(source: Input) -> Contents:
    """Count a log, in a pass of its own. Raises PipelineError as `usable` does."""
    with explained(source.paths, source.format):
        summed = source.connections.agg(
            F.count("*").alias("count"),
            F.min(F.unix_micros("opened_at")).alias("first"),
            F.max(F.unix_micros("opened_at")).alias("last"),
        ).first()
        tally = {row["reason"]: row["count"] for row in source.bad.groupBy("reason").count().collect()}
    assert summed is not None  # an aggregate without keys is one row
    if ANOTHER_LAYOUT in tally and source.again is not None:
        return contents(source.again())
    usable(summed["count"], tally, source.paths, source.format, source.by)
    return Contents(summed["count"], summed["first"], summed["last"], tally)


def arrived_at_cluster(source: Input) -> journal.ArrivedAtCluster:
    """The arrivals at all brokers of a cluster whose connections a log has."""
    if source.format == "journal":
        return journal.arrived(source.arrived.sparkSession, source.paths)
    rows = source.arrived.select("ip", "opened_us", "bad")
    return journal.ArrivedAtCluster(rows.mapInArrow(partial(_arrived, source.by), DDL), [])


def _arrived(by: EntityType, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        yield from of_log(pyarrow.Table.from_batches([batch]), by).to_batches()


@contextmanager
def explained(paths: Sequence[str], format: str) -> Iterator[None]:
    """Spark's exceptions as sentences about the log."""
    try:
        yield
    except (PySparkException, Py4JError) as error:  # a failed task arrives as the latter
        text = text_of(error)
        if text is None:
            raise PipelineError(JVM_GONE) from error
        kind = NoInput if "PATH_NOT_FOUND" in text else PipelineError
        raise kind(_why(error, text, paths, format)) from error


def _rows_about(parsed: DataFrame, format: str) -> int:
    """An estimate of a log's rows by its size, for sharing the work out."""
    size = int(parsed._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    return min(size, 1 << 50) // (BYTES_PER_ROW if format in ("parquet", "journal") else 4 * BYTES_PER_ROW)


def parse(
    spark: SparkSession,
    paths: Sequence[str],
    format: str,
    *,
    columns: Mapping[str, str] | None = None,
    port: int | None = None,
    thorough: bool = False,
    by: EntityType = IP,
) -> DataFrame:
    """COLUMNS, PLACE, raw and bad, one row per connection or unusable row. Raises PipelineError, AnalysisException."""
    if port is not None and format in ("haproxy", "journal"):
        raise PipelineError(f"--port is of no use with --format {format}: such a log doesn't say the server's port.")
    if by.name == USER.name and format not in WITH_USERS:
        raise PipelineError(f"A log in format {format} has no users; {', '.join(WITH_USERS)} may have.")
    if format == "journal":
        return journal.parse(spark, paths, by)
    if format == "zeek":
        return zeek.parse(read_lines(spark, paths), port=port, thorough=thorough)
    if format in TEXT_FORMATS:
        return TEXT_FORMATS[format](read_lines(spark, paths), port=port)
    if format not in FORMATS:
        raise PipelineError(f"There is no format {format!r}; there are: {', '.join(FORMATS)}.")
    return delimited.parse(_read_table(spark, paths, format), columns or {}, port=port, by=by)


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """value, source (the file) and block of every line under files, folders and globs; compressed ones by their ending."""
    lines = spark.read.option("recursiveFileLookup", "true").text(list(paths))
    return lines.select("value", *file_places())


def _read_table(spark: SparkSession, paths: Sequence[str], format: str) -> list[DataFrame]:
    """One frame, or one for each order of the columns that CSV files have."""
    reader = spark.read.option("recursiveFileLookup", "true")
    if format == "parquet":
        return [reader.parquet(*paths)]
    csv = reader.option("header", "true").option("mode", "PERMISSIVE").option("enforceSchema", "false")
    files = csv.csv(list(paths)).inputFiles()
    if len(files) < 2:
        return [csv.csv(list(paths))]
    lines = spark.read.text(files).select("value", *file_places(), F.monotonically_increasing_id().alias("nth"))
    first = lines.where("block = 0").groupBy("source").agg(F.min_by("value", "nth").alias("header")).collect()
    by_header: dict[str, list[str]] = {}
    for row in sorted(first):
        by_header.setdefault(row["header"].strip(), []).append(row["source"])
    return [csv.csv(group) for group in by_header.values()] or [csv.csv(list(paths))]


def _why(error: Exception, text: str, paths: Sequence[str], format: str) -> str:
    """Spark's exception, of this text, as a sentence about the user's input."""
    where = ", ".join(paths)
    if "PATH_NOT_FOUND" in text:
        return f"There is no {where}."
    said = known(text)
    if said is not None:
        return said
    if "EOFException" in text or "Unexpected end of input stream" in text:
        return f"A compressed file in {where} is cut off; decompress what there is of it and read that."
    if "is not a Parquet file" in text or "CANNOT_READ_FILE_FOOTER" in text or "FAILED_READ_FILE" in text:
        return f"A file in {where} is not a whole {format.capitalize()} file: {cause(text)}"
    if "UNABLE_TO_INFER_SCHEMA" in text:
        return f"There is nothing in {where}: no file, or files without a row."
    if isinstance(error, AnalysisException):
        return f"{where} can't be read as {format}: {text.splitlines()[0]}"
    return f"Reading {where} as {format} failed: {cause(text)}"
