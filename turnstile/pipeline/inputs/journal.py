"""A journal of Turnstile's own as an input: its admitted connections."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from turnstile.pipeline.events.journal_events import INCARNATION, pairs, read
from turnstile.pipeline.inputs.plain import DEFAULT_LISTENER


def parse(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Admitted connections as CONNECTIONS, with raw and bad. A refused connection held no place and is no row.

    Raises PipelineError as `journal_events.read` does.
    """
    paired = pairs(read(spark, paths).events)
    name = F.concat_ws("-", *(F.col(column) for column in INCARNATION))
    return paired.select(
        "ip",
        "port",
        F.col("admitted_at").alias("opened_at"),
        F.when(F.col("closed_at").isNotNull(), F.greatest("closed_at", "admitted_at")).alias("closed_at"),
        F.coalesce("listener", F.lit(DEFAULT_LISTENER)).alias("listener"),
        "bytes",
        F.concat(F.lit("journal "), name).alias("source"),
        F.col("admitted_ns").alias("rank"),
        F.concat(F.lit("connection "), F.col("conn")).alias("raw"),
        F.when(F.col("admissions") == 0, "closed, but never seen admitted").alias("bad"),
    )
