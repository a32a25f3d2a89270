"""Missing events: gaps in `seq`, and which processes are known to be gone."""

from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.events import INCARNATION


class Gap(NamedTuple):
    """Events `first` to `last` of a process are missing. `before_ns`: its last event before them, 0 if there is none."""

    broker: int
    shard: int
    epoch: int
    first: int
    last: int
    before_ns: int

    def sentence(self) -> str:
        """The gap in words."""
        where = "the coordinator" if self.broker < 0 else f"broker {self.broker} shard {self.shard}"
        return f"{where}, epoch {self.epoch}: seq {self.first} to {self.last}"


def gaps(events: DataFrame) -> tuple[int, list[Gap]]:
    """How many events there are, and every gap. Only processes whose events don't add up are looked at one by one."""
    summed = events.groupBy(*INCARNATION).agg(
        F.min("seq").alias("low"), F.max("seq").alias("high"), F.count("*").alias("count")
    )
    processes = summed.collect()
    found = [
        Gap(row["broker"], row["shard"], row["epoch"], 0, row["low"] - 1, 0) for row in processes if row["low"] > 0
    ]
    holed = [row for row in processes if row["high"] - row["low"] + 1 != row["count"]]
    if holed:
        found += _inner(events, [(row["broker"], row["shard"], row["epoch"]) for row in holed])
    return sum(row["count"] for row in processes), sorted(found)


def _inner(events: DataFrame, places: list[tuple[int, int, int]]) -> list[Gap]:
    wanted = events.sparkSession.createDataFrame(places, "broker int, shard int, epoch long")
    mine = events.join(F.broadcast(wanted), [*INCARNATION], how="leftsemi")
    in_order = Window.partitionBy(*INCARNATION).orderBy("seq")
    following = mine.select(*INCARNATION, "seq", "mono_ns", F.lead("seq").over(in_order).alias("next"))
    holes = following.where(F.col("next") > F.col("seq") + 1).limit(10_000).collect()
    return [
        Gap(row["broker"], row["shard"], row["epoch"], row["seq"] + 1, row["next"] - 1, row["mono_ns"]) for row in holes
    ]


def lasts(events: DataFrame) -> DataFrame:
    """INCARNATION and last_ns, the last event, of every process known to be gone: succeeded, or reported lost."""
    by_process = events.groupBy(*INCARNATION).agg(F.max("mono_ns").alias("last_ns"))
    newest = Window.partitionBy("broker", "shard")
    succeeded = by_process.withColumn("newest", F.max("epoch").over(newest)).where(F.col("epoch") < F.col("newest"))
    lost = events.where(F.col("kind") == "shard_lost").select(
        F.get_json_object("detail", "$.broker").cast("int").alias("broker"),
        F.get_json_object("detail", "$.shard").cast("int").alias("shard"),
        F.get_json_object("detail", "$.epoch").cast("long").alias("epoch"),
    )
    reported = by_process.join(lost.distinct(), [*INCARNATION], how="leftsemi")
    return succeeded.drop("newest").unionByName(reported).distinct()
