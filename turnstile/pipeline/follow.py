"""Refusals and throttling per minute and IP while the journal grows (Structured Streaming).

F1  each part is taken in once: the checkpoint remembers which, and parts appear whole and never change
F2  a batch writes its own folder and overwrites it when it is run again, so a batch cut off by a crash doubles nothing
F3  a minute's row holds its total so far; of several batches' rows for one key the newest is right (`results`)

The watermark bounds what is remembered: an event that comes more than LATE behind the newest one is too late to count.
Spools become parts within seconds, so only a machine that was switched off for longer can bring such events.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.events.journal_events import SCHEMA

LATE = "1 hour"
EVERY = "10 seconds"
KEY = ("minute", "ip", "kind", "reason")
RESULTS = "minute timestamp, ip string, kind string, reason string, events long, throttle_ms long"
BATCH = "batch"


def follow(spark: SparkSession, folder: Path, out: Path, checkpoint: Path, *, once: bool = False) -> StreamingQuery:
    """Start counting; results go to `out`/batch=N. `once`: take in what there is, and end. Raises PipelineError."""
    if not folder.is_dir():
        raise PipelineError(f"There is no journal at {folder}.")
    out.mkdir(parents=True, exist_ok=True)
    events = spark.readStream.schema(SCHEMA).option("pathGlobFilter", "*.parquet").parquet(str(folder))

    def write(rows: DataFrame, number: int) -> None:
        rows.coalesce(1).write.mode("overwrite").parquet(str(out / f"{BATCH}={number}"))

    writer = per_minute(events).writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
    timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=EVERY)
    return timed.foreachBatch(write).start()


def per_minute(events: DataFrame) -> DataFrame:
    """RESULTS: refused and throttled events of a (streaming or whole) journal per minute, IP and reason."""
    mine = events.where(F.col("kind").isin("refused", "throttled")).withWatermark("ts", LATE)
    why = F.coalesce("reason", "limit", F.lit("")).alias("reason")
    address = F.coalesce("ip", F.lit("")).alias("ip")
    counts = mine.groupBy(F.window("ts", "1 minute").alias("window"), address, "kind", why).agg(
        F.count("*").alias("events"), F.sum(F.coalesce("throttle_ms", F.lit(0))).alias("throttle_ms")
    )
    return counts.select(F.col("window.start").alias("minute"), "ip", "kind", "reason", "events", "throttle_ms")


def results(spark: SparkSession, out: Path) -> DataFrame:
    """RESULTS as they stand: the newest row of each key (F3)."""
    rows = spark.read.schema(f"{RESULTS}, {BATCH} long").parquet(str(out))
    newest = Window.partitionBy(*KEY).orderBy(F.desc(BATCH))
    return rows.withColumn("place", F.row_number().over(newest)).where("place = 1").drop("place", BATCH)
