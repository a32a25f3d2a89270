"""Missing events: gaps in `seq`."""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.survey import Process


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


def gaps(events: DataFrame, seen: list[Process]) -> list[Gap]:
    """Every gap. Only processes whose events don't add up are looked at one by one."""
    found = [Gap(*each[:3], 0, each.low - 1, 0) for each in seen if each.low > 0]
    holed = [each for each in seen if each.high - each.low + 1 != each.events]
    if holed:
        found += _inner(events, [each[:3] for each in holed])
    return sorted(found)


def first_gaps(missing: Iterable[Gap]) -> dict[tuple[int, int, int], Gap]:
    """(broker, shard, epoch) -> the first of its gaps."""
    found: dict[tuple[int, int, int], Gap] = {}
    for gap in sorted(missing, reverse=True):
        found[gap[:3]] = gap
    return found


def _inner(events: DataFrame, places: list[tuple[int, int, int]]) -> list[Gap]:
    wanted = events.sparkSession.createDataFrame(places, "broker int, shard int, epoch long")
    mine = events.join(F.broadcast(wanted), [*INCARNATION], how="leftsemi")
    in_order = Window.partitionBy(*INCARNATION).orderBy("seq")
    following = mine.select(*INCARNATION, "seq", "mono_ns", F.lead("seq").over(in_order).alias("next"))
    holes = following.where(F.col("next") > F.col("seq") + 1).limit(10_000).collect()
    return [
        Gap(row["broker"], row["shard"], row["epoch"], row["seq"] + 1, row["next"] - 1, row["mono_ns"]) for row in holes
    ]
