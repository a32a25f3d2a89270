"""A journal of Turnstile's own as an input: its admitted connections, or those that users logged in on; and all arrivals at its
cluster."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from turnstile.pipeline.events.spark_events import INCARNATION, pairs, read
from turnstile.pipeline.inputs.arrivals_at_cluster import ARRIVED, BEFORE_THE_RATE, KINDS, TOLD
from turnstile.pipeline.inputs.entities import USER, EntityType
from turnstile.pipeline.inputs.plain import DEFAULT_LISTENER


def parse(spark: SparkSession, paths: Sequence[str], by: EntityType) -> DataFrame:
    """Admitted connections as CONNECTIONS, with raw and bad; of users each from its login, with the user as `ip`. A refused
    connection held no place and is no row, and a client that never logged in is none of a user. One whose process was killed closed
    when its shard was started again, at the latest.

    Raises PipelineError as `spark_events.read` does.
    """
    events = read(spark, paths).events
    if by.name == USER.name:
        is_login = (F.col("kind") == "authenticated") & F.col("reason").isNull()
        of_users = events.where((is_login | (F.col("kind") == "closed")) & F.col("user").isNotNull())
        kind = F.when(is_login, "admitted").otherwise("closed")
        paired = pairs(of_users.withColumns({"ip": F.col("user"), "kind": kind})).where("admissions > 0")
    else:
        paired = pairs(events)
    paired = paired.join(F.broadcast(_started_again(events)), on=list(INCARNATION), how="left")
    closed_at = F.coalesce("closed_at", "again_at")
    name = F.concat_ws("-", *(F.col(column) for column in INCARNATION))
    return paired.select(
        "ip",
        "port",
        F.col("admitted_at").alias("opened_at"),
        F.when(closed_at.isNotNull(), F.greatest(closed_at, "admitted_at")).alias("closed_at"),
        F.coalesce("listener", F.lit(DEFAULT_LISTENER)).alias("listener"),
        "bytes",
        F.concat(F.lit("journal "), name).alias("source"),
        F.col("admitted_ns").alias("rank"),
        F.concat(F.lit("connection "), F.col("conn")).alias("raw"),
        F.when(F.col("admissions") == 0, "closed, but never seen admitted").alias("bad"),
    )


def _started_again(events: DataFrame) -> DataFrame:
    """INCARNATION, and when the same shard was next started, `again_at`; null: it was not (plain_journal.py, killed_is_closed)."""
    ups = events.where((F.col("kind") == "shard_up") & (F.col("broker") >= 0)).select(*INCARNATION, "ts")
    in_order = Window.partitionBy("broker", "shard").orderBy("epoch")
    return ups.select(*INCARNATION, F.lead("ts").over(in_order).alias("again_at"))


class ArrivedAtCluster(NamedTuple):
    """ARRIVED, and a sentence about each part of a journal that can't be read."""

    rows: DataFrame
    unreadable: list[str]


def arrived(spark: SparkSession, paths: Sequence[str]) -> ArrivedAtCluster:
    """The arrivals at all brokers of a journal, as `arrivals_at_cluster.of_journal` has them. Raises PipelineError as
    `spark_events.read` does."""
    journal = read(spark, paths)
    is_told = F.col("kind").isin(*TOLD)
    is_late = F.coalesce(F.col("reason").isin(*BEFORE_THE_RATE), F.lit(False))
    kept = journal.events.where(is_told | (F.col("kind").isin(*KINDS) & ~is_late))
    held_ns = (F.coalesce("held_ms", F.lit(0.0)) * 1_000_000).cast("long")
    columns = {
        "at_ns": F.col("mono_ns") - held_ns,
        "wall_us": F.unix_micros("ts") - F.floor(held_ns / 1000),
        "detail": F.when(is_told, F.col("detail")),
    }
    rows = kept.select(*(columns.get(name, F.col(name)).alias(name) for name in ARRIVED.names))
    return ArrivedAtCluster(rows, [each.sentence for each in journal.unreadable])
