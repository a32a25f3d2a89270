"""What a connection's own events show: that it was let in under a version that was over, or counted twice, or never.

All of it is one aggregation over the connections; rows are only looked for where a broker has any.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, UNKNOWN, Check
from turnstile.pipeline.events import sweep
from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.sequence import Gap, first_gaps
from turnstile.pipeline.events.timeline import Timeline

KINDS = ("stale", "sure", "unsure")


class Admissions:
    """The connections of a journal (events.pairs), `connections` of them, each judged by itself."""

    def __init__(self, paired: DataFrame, timeline: Timeline, missing: Sequence[Gap]) -> None:
        self._versions = _floor(timeline)
        self._judged = _judged(paired, self._versions, missing)
        sums = [F.count_if(kind).alias(kind) for kind in KINDS]
        rows = self._judged.groupBy("broker").agg(F.count("*").alias("connections"), *sums).collect()
        self.connections = sum(row["connections"] for row in rows)
        self._counts = {kind: Counter({row["broker"]: row[kind] for row in rows if row[kind]}) for kind in KINDS}

    def acknowledged(self) -> Check:
        """Invariant 5: once a change is acknowledged, nothing is decided under an older version."""
        name = "enforced_on_return"
        if not self._versions:
            return Check(name, HELD, "no change was acknowledged", [])
        if not self._counts["stale"]:
            detail = f"{len(self._versions)} acknowledged versions, nothing admitted under an older one"
            return Check(name, HELD, detail, [])
        columns = [*INCARNATION, "conn", "ip", "admitted_ns", "version", "acknowledged"]
        shown = self._first("stale", [F.col("admitted_ns")], columns)
        first = shown[0]
        detail = (
            f"{first['ip']} was admitted under version {first['version']} at mono_ns {first['admitted_ns']}, "
            f"after version {first['acknowledged']} was acknowledged"
        )
        return Check(name, EXCEEDED, detail, shown, self._counts["stale"])

    def conserved(self) -> Check:
        """Every token is taken once and given back at most once, and not before it was taken."""
        name = "conservation"
        for kind, verdict in (("sure", EXCEEDED), ("unsure", UNKNOWN)):
            if self._counts[kind]:
                order = [F.coalesce("closed_ns", "admitted_ns"), *map(F.col, (*INCARNATION, "conn"))]
                shown = self._first(kind, order, [*INCARNATION, "conn", "ip", "admissions", "closes"])
                first = shown[0]
                detail = (
                    f"connection {first['broker']}/{first['shard']}/{first['epoch']}/{first['conn']} of {first['ip']} has "
                    f"{first['admissions']} admissions and {first['closes']} closes"
                )
                return Check(name, verdict, detail, shown, self._counts[kind])
        return Check(name, HELD, "every token was taken once and given back at most once", [])

    def _first(self, kind: str, order: Sequence[Column], columns: Sequence[str]) -> list[dict[str, Any]]:
        rows = self._judged.where(F.col(kind)).orderBy(*order).limit(sweep.SHOWN)
        return [row.asDict() for row in rows.select(*columns).collect()]


def _floor(timeline: Timeline) -> list[tuple[int, int]]:
    """(when, version) of each acknowledgement that is of a higher version than all before it."""
    highest, floor = 0, []
    for at_ns, version in sorted(timeline.acknowledged):
        if version > highest:
            highest = version
            floor.append((at_ns, version))
    return floor


def _judged(paired: DataFrame, floor: Sequence[tuple[int, int]], missing: Sequence[Gap]) -> DataFrame:
    """`paired` with a column for each of KINDS, and `acknowledged`, the version that all had when it was admitted."""
    if floor:
        steps = F.array(*(F.struct(F.lit(at).alias("at"), F.lit(version).alias("version")) for at, version in floor))
        acknowledged = F.array_max(
            F.transform(F.filter(steps, lambda step: step["at"] < F.col("admitted_ns")), lambda step: step["version"])
        )
    else:
        acknowledged = F.lit(None).cast("long")
    twice = (F.col("admissions") > 1) | (F.col("closes") > 1) | (F.col("closed_ns") < F.col("admitted_ns"))
    twice = F.coalesce(twice, F.lit(False))
    never = F.col("admissions") == 0
    if missing:
        # What closed after events were lost may have been admitted in one of them.
        gaps = paired.sparkSession.createDataFrame(
            [(*place, gap.before_ns) for place, gap in first_gaps(missing).items()],
            "broker int, shard int, epoch long, first_gap_ns long",
        )
        paired = paired.join(F.broadcast(gaps), [*INCARNATION], how="left")
        before = F.coalesce(F.col("closed_ns") < F.col("first_gap_ns"), F.col("first_gap_ns").isNull())
    else:
        before = F.lit(True)
    stale = F.coalesce(F.col("version") < F.col("acknowledged"), F.lit(False))
    return paired.withColumn("acknowledged", acknowledged).withColumns(
        {"stale": stale, "sure": twice | (never & before), "unsure": never & ~twice & ~before}
    )
