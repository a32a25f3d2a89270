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


class Process(NamedTuple):
    """An incarnation that wrote events: its least and greatest `seq`, how many there are, and when the first was."""

    broker: int
    shard: int
    epoch: int
    low: int
    high: int
    count: int
    first_ns: int


def processes(events: DataFrame) -> list[Process]:
    """Every incarnation of which there are events."""
    summed = events.groupBy(*INCARNATION).agg(
        F.min("seq").alias("low"),
        F.max("seq").alias("high"),
        F.count("*").alias("count"),
        F.min("mono_ns").alias("first_ns"),
    )
    return [Process(*row) for row in summed.collect()]


def gaps(events: DataFrame, seen: list[Process]) -> list[Gap]:
    """Every gap. Only processes whose events don't add up are looked at one by one."""
    found = [Gap(*each[:3], 0, each.low - 1, 0) for each in seen if each.low > 0]
    holed = [each for each in seen if each.high - each.low + 1 != each.count]
    if holed:
        found += _inner(events, [each[:3] for each in holed])
    return sorted(found)


def _inner(events: DataFrame, places: list[tuple[int, int, int]]) -> list[Gap]:
    wanted = events.sparkSession.createDataFrame(places, "broker int, shard int, epoch long")
    mine = events.join(F.broadcast(wanted), [*INCARNATION], how="leftsemi")
    in_order = Window.partitionBy(*INCARNATION).orderBy("seq")
    following = mine.select(*INCARNATION, "seq", "mono_ns", F.lead("seq").over(in_order).alias("next"))
    holes = following.where(F.col("next") > F.col("seq") + 1).limit(10_000).collect()
    return [
        Gap(row["broker"], row["shard"], row["epoch"], row["seq"] + 1, row["next"] - 1, row["mono_ns"]) for row in holes
    ]


def lasts(events: DataFrame, *, of_all: bool = False) -> DataFrame:
    """INCARNATION and last_ns, the last event, of every process known to be gone: succeeded, or reported lost.

    `of_all`: also of those that may be alive.
    """
    by_process = events.groupBy(*INCARNATION).agg(F.max("mono_ns").alias("last_ns"))
    if of_all:
        return by_process
    newest = Window.partitionBy("broker", "shard")
    succeeded = by_process.withColumn("newest", F.max("epoch").over(newest)).where(F.col("epoch") < F.col("newest"))
    lost = events.where(F.col("kind") == "shard_lost").select(
        F.get_json_object("detail", "$.broker").cast("int").alias("broker"),
        F.get_json_object("detail", "$.shard").cast("int").alias("shard"),
        F.get_json_object("detail", "$.epoch").cast("long").alias("epoch"),
    )
    reported = by_process.join(lost.distinct(), [*INCARNATION], how="leftsemi")
    return succeeded.drop("newest").unionByName(reported).distinct()
