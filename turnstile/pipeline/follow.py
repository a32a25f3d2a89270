"""Refusals and throttling per minute and IP while the journal grows (Structured Streaming).

parts_are_taken_in_once  each part is taken in once: the checkpoint remembers which, and parts appear whole and never change
cut_off_batches_double_nothing  a batch writes what it adds to a folder of its own (counts.py); one that was cut off is run
    again with the same parts, and writes nothing where its folder is whole already. So a crash doubles nothing and loses
    nothing
merged_folders_replace_theirs  `counts.MERGED` folders become one, and as many of these one again; one that holds what others
    held counts from when it is whole, and they no more (whole_uncovered_folders_stand)
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from broker.journal.schema import AFTER_LOGIN
from turnstile.pipeline.counts import Counts, summed
from turnstile.pipeline.errors import NoInput, PipelineError
from turnstile.pipeline.events.parts_at import journal_at
from turnstile.pipeline.events.spark_events import SCHEMA
from turnstile.pipeline.hadoop_files import HadoopFiles
from turnstile.pipeline.paths_and_uris import as_read, as_spark_has_it, is_uri, local_path, under

EVERY = "10 seconds"


def follow(
    spark: SparkSession, journal: str, out: str, checkpoint: str | None = None, *, once: bool = False
) -> StreamingQuery:
    """Start counting a journal (a folder or a URI); results go to `out`, and what is done is noted in `checkpoint`.

    `once`: take in what there is, and end. Raises NoInput when there is no such journal, PipelineError when `out` has what
    was counted with another checkpoint.
    """
    files = HadoopFiles(spark)
    if is_uri(journal):
        journal = journal_at(files, journal)
    elif not local_path(journal).is_dir():
        raise NoInput(f"There is no journal at {journal}.")
    counts = Counts(spark, as_spark_has_it(out))
    noted = as_spark_has_it(checkpoint or under(out, "_checkpoint"))
    if counts.whole() and not files.is_there(under(noted, "metadata")):
        raise PipelineError(
            f"{out} has what was counted with another checkpoint than {noted}; name that one, or another --out."
        )
    # A damaged part would end every run at the same place; the audit tells of it.
    reader = spark.readStream.schema(SCHEMA).option("pathGlobFilter", "*.parquet").option("ignoreCorruptFiles", "true")
    events = reader.parquet(as_read(journal))
    writer = events.writeStream.option("checkpointLocation", noted)
    timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=EVERY)
    return timed.foreachBatch(lambda rows, number: counts.add(per_minute(rows), number)).start()


def per_minute(events: DataFrame) -> DataFrame:
    """COUNTS: refused and throttled events of a journal per minute, IP and reason; refused logins count as refused."""
    is_login = (F.col("kind") == "authenticated") & F.col("reason").isin(*AFTER_LOGIN)
    counted = events.where(F.col("kind").isin("refused", "throttled") | is_login)
    mine = counted.withColumn("kind", F.when(is_login, "refused").otherwise(F.col("kind")))
    rows = mine.select(
        F.date_trunc("minute", "ts").alias("minute"),
        F.coalesce("ip", F.lit("")).alias("ip"),
        "kind",
        F.coalesce("reason", "limit", F.lit("")).alias("reason"),
        F.lit(1).cast("long").alias("events"),
        F.coalesce("throttle_ms", F.lit(0)).cast("long").alias("throttle_ms"),
    )
    return summed(rows)
