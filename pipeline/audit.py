"""Was a limit ever exceeded? Proved or refuted from a journal alone.

A verdict of `held` needs every event: where `seq` has a gap, or a part can't be read, or what was configured isn't known,
nothing is proved and the verdict is `unknown`. A violation is only reported when it is one whatever the missing events
were: connections count as open for no longer than the journal proves (until the last event of a process that died, or
before a gap, or, where the end of any process may be missing, until the last event there is of its own).
"""

from collections import Counter
from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import caps, rates, recorded, sweep
from pipeline.events import INCARNATION, Journal, Unreadable, pairs
from pipeline.sequence import Gap, gaps, lasts, processes
from pipeline.timeline import ConfigEvent, Timeline
from pipeline.verdict import EXCEEDED, HELD, UNKNOWN, Check, Result


def audit(journal: Journal) -> Result:
    """Every check over a journal."""
    events = journal.events
    seen = processes(events)
    if not seen:
        return Result([Check("sequence", UNKNOWN, "the journal has no events", [])], 0)
    missing = gaps(events, seen)
    brokers = sorted({each.broker for each in seen})
    timeline = timeline_of(events)
    paired = pairs(events).persist(StorageLevel.MEMORY_AND_DISK)
    held = intervals(paired, events, missing, cut=bool(journal.unreadable))
    checks = [
        _sequence(missing, journal.unreadable),
        _configuration(timeline),
        *caps.checks(held, timeline, paired.count(), brokers),
        _acknowledged(paired, timeline),
        *rates.checks(events, timeline, seen),
        *recorded.checks(events, timeline, missing),
        _conserved(paired, missing),
    ]
    paired.unpersist()
    return Result(checks, sum(each.count for each in seen))


def timeline_of(events: DataFrame) -> Timeline:
    """The configuration over time; the few config events and one minimum per version are all that is collected."""
    rows = events.where((F.col("kind") == "config") & F.col("detail").isNotNull() & (F.col("version") > 0))
    # Every shard writes the same change; the earliest of each version and sort is enough.
    detail = F.get_json_object("detail", "$.acknowledged"), F.get_json_object("detail", "$.full")
    sorts = rows.withColumns({"acknowledged": detail[0], "full": detail[1], "is_coordinator": F.col("broker") < 0})
    first = sorts.groupBy("version", "acknowledged", "full", "is_coordinator").agg(
        F.min_by(F.struct("mono_ns", "broker", "detail"), "mono_ns").alias("event")
    )
    configs = [
        ConfigEvent(row["version"], row["event"]["mono_ns"], row["event"]["broker"], row["event"]["detail"])
        for row in first.collect()
    ]
    by_version = events.groupBy("version").agg(
        F.min("mono_ns").alias("at_ns"), F.collect_set("listener").alias("listeners")
    )
    seen = by_version.collect()
    listeners = sorted({listener for row in seen for listener in row["listeners"]})
    return Timeline(configs, {row["version"]: row["at_ns"] for row in seen if row["version"]}, listeners)


def intervals(paired: DataFrame, events: DataFrame, missing: Sequence[Gap], *, cut: bool = False) -> DataFrame:
    """When each connection certainly held its tokens: broker, shard, epoch, listener, ip, start_ns, end_ns, version, conn.

    end_ns is null for one that is still open. The end of a connection whose close isn't in the journal is the last event of
    its process, if that is known to be gone (or `cut`: the end of any may be missing), or the last before the next gap.
    """
    spark = events.sparkSession
    gone = lasts(events, of_all=cut)
    first_gap = spark.createDataFrame(
        [(gap.broker, gap.shard, gap.epoch, gap.before_ns) for gap in missing],
        "broker int, shard int, epoch long, gap_ns long",
    )
    unclosed_gap = (
        paired.where(F.col("closed_ns").isNull())
        .join(F.broadcast(first_gap), [*INCARNATION], how="inner")
        .where(F.col("gap_ns") >= F.col("admitted_ns"))
        .groupBy(*INCARNATION, "conn")
        .agg(F.min("gap_ns").alias("gap_ns"))
        if missing
        else None
    )
    known = paired.where(F.col("admitted_ns").isNotNull()).join(F.broadcast(gone), [*INCARNATION], how="left")
    if unclosed_gap is None:
        known = known.withColumn("gap_ns", F.lit(None).cast("long"))
    else:
        known = known.join(unclosed_gap, [*INCARNATION, "conn"], how="left")
    unseen = F.least("gap_ns", "last_ns")
    return known.select(
        *INCARNATION,
        "listener",
        "ip",
        F.col("admitted_ns").alias("start_ns"),
        F.coalesce("closed_ns", unseen).alias("end_ns"),
        "version",
        "conn",
    )


def _sequence(missing: Sequence[Gap], unreadable: Sequence[Unreadable]) -> Check:
    if not missing and not unreadable:
        return Check("sequence", HELD, "no event is missing", [])
    lost = sum(gap.last - gap.first + 1 for gap in missing)
    sentences = [*(part.sentence for part in unreadable[:3]), *(gap.sentence() for gap in missing[:3])]
    more = len(unreadable) + len(missing) - len(sentences)
    rest = f" (and {more} more)" if more > 0 else ""
    counts: Counter[int] = Counter()
    for gap in missing:
        counts[gap.broker] += gap.last - gap.first + 1
    for part in unreadable:
        if part.broker is not None:
            counts[part.broker] += not counts[part.broker]  # nobody knows how many, but some
    shown = [gap._asdict() for gap in missing[: sweep.SHOWN]]
    said = f"{lost} events are missing" if lost else "events are missing"
    return Check("sequence", UNKNOWN, f"{said}: {'; '.join(sentences)}{rest}", shown, counts)


def _configuration(timeline: Timeline) -> Check:
    if timeline.unknown:
        return Check("configuration", UNKNOWN, "; ".join(dict.fromkeys(timeline.unknown)), [])
    versions = timeline.versions
    acknowledged = len({version for _, version in timeline.acknowledged})
    detail = f"versions {versions[0]} to {versions[-1]}, {acknowledged} acknowledged by every shard"
    return Check("configuration", HELD, detail, [])


def _acknowledged(paired: DataFrame, timeline: Timeline) -> Check:
    """Invariant 5: once a change is acknowledged, nothing is decided under an older version."""
    name = "enforced_on_return"
    if not timeline.acknowledged:
        return Check(name, HELD, "no change was acknowledged", [])
    highest, floor = 0, []
    for at_ns, version in sorted(timeline.acknowledged):
        if version > highest:
            highest = version
            floor.append((at_ns, version))
    steps = F.array(*(F.struct(F.lit(at).alias("at"), F.lit(version).alias("version")) for at, version in floor))
    in_force = F.array_max(
        F.transform(F.filter(steps, lambda step: step["at"] < F.col("admitted_ns")), lambda step: step["version"])
    )
    stale = (
        paired.withColumn("acknowledged", in_force)
        .where(F.col("version") < F.col("acknowledged"))
        .select(*INCARNATION, "conn", "ip", "admitted_ns", "version", "acknowledged")
    )
    counts = _per_broker(stale)
    if not counts:
        return Check(name, HELD, f"{len(floor)} acknowledged versions, nothing admitted under an older one", [])
    shown = [row.asDict() for row in stale.orderBy("admitted_ns").limit(sweep.SHOWN).collect()]
    first = shown[0]
    detail = (
        f"{first['ip']} was admitted under version {first['version']} at mono_ns {first['admitted_ns']}, "
        f"after version {first['acknowledged']} was acknowledged"
    )
    return Check(name, EXCEEDED, detail, shown, counts)


def _per_broker(violations: DataFrame) -> Counter[int]:
    return Counter({row["broker"]: row["count"] for row in violations.groupBy("broker").count().collect()})


def _conserved(paired: DataFrame, missing: Sequence[Gap]) -> Check:
    """Every token is taken once and given back at most once, and not before it was taken."""
    name = "conservation"
    twice = (F.col("admissions") > 1) | (F.col("closes") > 1) | (F.col("closed_ns") < F.col("admitted_ns"))
    broken = paired.where(twice | (F.col("admissions") == 0))
    first_gap: dict[tuple[int, int, int], int] = {}
    for gap in missing:
        place = gap.broker, gap.shard, gap.epoch
        first_gap[place] = min(first_gap.get(place, gap.before_ns), gap.before_ns)
    gapped = paired.sparkSession.createDataFrame(
        [(*place, at_ns) for place, at_ns in first_gap.items()], "broker int, shard int, epoch long, gap_ns long"
    )
    # What closed after events were lost may have been admitted in one of them.
    judged = broken.join(F.broadcast(gapped), [*INCARNATION], how="left").withColumn(
        "is_sure", twice | F.col("gap_ns").isNull() | (F.col("closed_ns") < F.col("gap_ns"))
    )
    columns = [*INCARNATION, "conn", "ip", "admissions", "closes"]
    for is_sure, verdict in ((True, EXCEEDED), (False, UNKNOWN)):
        mine = judged.where(F.col("is_sure") == is_sure)
        counts = _per_broker(mine)
        if counts:
            rows = mine.orderBy(F.coalesce("closed_ns", "admitted_ns"), *INCARNATION, "conn").limit(sweep.SHOWN)
            shown = [row.asDict() for row in rows.select(*columns).collect()]
            first = shown[0]
            detail = (
                f"connection {first['broker']}/{first['shard']}/{first['epoch']}/{first['conn']} of {first['ip']} has "
                f"{first['admissions']} admissions and {first['closes']} closes"
            )
            return Check(name, verdict, detail, shown, counts)
    return Check(name, HELD, "every token was taken once and given back at most once", [])
