"""Connection logs of any format and place -> the canonical connections, and the rows that can't be used, with why."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from turnstile.pipeline.errors import PipelineError, cause
from turnstile.pipeline.inputs import delimited, haproxy, journal, vpcflow, zeek
from turnstile.pipeline.inputs.connections import arrivals, split

TEXT_FORMATS: dict[str, Callable[..., DataFrame]] = {
    "zeek": zeek.parse,
    "vpcflow": vpcflow.parse,
    "haproxy": haproxy.parse,
}
FORMATS = (*TEXT_FORMATS, "csv", "parquet", "journal")


class Input(NamedTuple):
    """A log that was read: its connections (ARRIVALS, cached), how many there are in `total`, when the first and the last were
    opened (epoch microseconds), and how many rows were put aside, by reason.

    `connections` and `bad` are whole rows (CONNECTIONS, and source, reason, raw), read again when they are asked for.
    """

    arrived: DataFrame
    connections: DataFrame
    total: int
    first_us: int
    last_us: int
    bad: DataFrame
    bad_rows: int
    reasons: dict[str, int]


def load(
    spark: SparkSession,
    paths: Sequence[str],
    format: str,
    *,
    columns: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Input:
    """Read, parse, keep and count. Raises PipelineError, one sentence, when there is nothing that can be used."""
    try:
        parsed = parse(spark, paths, format, columns=columns, port=port)
        # Kept is only what a replay needs: making and keeping whole rows costs several times more than the replay.
        kept = arrivals(parsed).persist(StorageLevel.MEMORY_AND_DISK)
        counted = kept.groupBy("bad").agg(
            F.count("*").alias("count"), F.min("opened_us").alias("first"), F.max("opened_us").alias("last")
        )
        rows = {row["bad"]: row for row in counted.collect()}
    except (PySparkException, Py4JError) as error:  # a failed task arrives as the latter
        raise PipelineError(_why(error, paths, format)) from error
    good = rows.pop(None, None)
    tally = {reason: row["count"] for reason, row in rows.items()}
    if not good and not tally:
        raise PipelineError(f"There is nothing in {', '.join(paths)}: no file, or files without a row.")
    if not good:
        reason, worst = max(tally.items(), key=lambda item: item[1])
        raise PipelineError(
            f"None of the {sum(tally.values())} rows of {', '.join(paths)} can be used as {format}; {worst} of them: {reason}."
        )
    reading = split(parsed)
    arrived = kept.where(F.col("bad").isNull()).drop("bad")
    return Input(
        arrived,
        reading.connections,
        good["count"],
        good["first"],
        good["last"],
        reading.bad,
        sum(tally.values()),
        tally,
    )


def parse(
    spark: SparkSession,
    paths: Sequence[str],
    format: str,
    *,
    columns: Mapping[str, str] | None = None,
    port: int | None = None,
) -> DataFrame:
    """CONNECTIONS and raw and bad, one row per connection or unusable row. Raises PipelineError, AnalysisException."""
    if format == "journal":
        return journal.parse(spark, paths)
    if format in TEXT_FORMATS:
        return TEXT_FORMATS[format](read_lines(spark, paths), port=port)
    if format not in FORMATS:
        raise PipelineError(f"There is no format {format!r}; there are: {', '.join(FORMATS)}.")
    return delimited.parse(_read_table(spark, paths, format), columns or {}, port=port)


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """value and source (the file) of every line under files, folders and globs; compressed ones by their ending."""
    lines = spark.read.option("recursiveFileLookup", "true").text(list(paths))
    return lines.select("value", F.col("_metadata.file_path").alias("source"))


def _read_table(spark: SparkSession, paths: Sequence[str], format: str) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", "true")
    if format == "csv":
        rows = reader.option("header", "true").option("mode", "PERMISSIVE").csv(list(paths))
    else:
        rows = reader.parquet(*paths)
    return rows.select("*", F.col("_metadata.file_path").alias("source"))


def _why(error: Exception, paths: Sequence[str], format: str) -> str:
    """Spark's exception as a sentence about the user's input."""
    text = str(error)
    where = ", ".join(paths)
    if "PATH_NOT_FOUND" in text:
        return f"There is no {where}."
    if "EOFException" in text or "Unexpected end of input stream" in text:
        return f"A compressed file in {where} is cut off; decompress what there is of it and read that."
    if "is not a Parquet file" in text or "CANNOT_READ_FILE_FOOTER" in text or "FAILED_READ_FILE" in text:
        return f"A file in {where} is not a whole {format.capitalize()} file: {cause(text)}"
    if "UNABLE_TO_INFER_SCHEMA" in text:
        return f"There is nothing in {where}: no file, or files without a row."
    if isinstance(error, AnalysisException):
        return f"{where} can't be read as {format}: {text.splitlines()[0]}"
    return f"Reading {where} as {format} failed: {cause(text)}"
