"""Was a limit ever exceeded? Proved or refuted from a journal alone.

A verdict of `held` needs every event: where `seq` has a gap, or a part can't be read, or what was configured isn't known,
nothing is proved and the verdict is `unknown`. A violation is only reported when it is one whatever the missing events
were: connections count as open for no longer than the journal proves (until the last event of a process that died, or
before a gap), so a count that is too high really was.
"""

from collections.abc import Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import rates, sweep
from pipeline.events import INCARNATION, Journal, pairs
from pipeline.sequence import Gap, gaps, lasts
from pipeline.timeline import ConfigEvent, Timeline
from pipeline.verdict import EXCEEDED, HELD, UNKNOWN, Check, Result

INVOLVED = 20


def audit(journal: Journal) -> Result:
    """Every check over a journal."""
    events = journal.events
    count, missing = gaps(events)
    if not count:
        return Result([Check("sequence", UNKNOWN, "the journal has no events", [])], 0)
    timeline = timeline_of(events)
    paired = pairs(events).persist(StorageLevel.MEMORY_AND_DISK)
    held = intervals(paired, events, missing)
    checks = [
        _sequence(missing, journal.unreadable),
        _configuration(timeline),
        *_caps(held, timeline, paired.count()),
        _acknowledged(paired, timeline),
        *rates.checks(events, timeline),
        _conserved(paired, missing),
    ]
    paired.unpersist()
    return Result(checks, count)


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


def intervals(paired: DataFrame, events: DataFrame, missing: Sequence[Gap]) -> DataFrame:
    """When each connection certainly held its tokens: broker, shard, epoch, listener, ip, start_ns, end_ns, version, conn.

    end_ns is null for one that is still open. The end of a connection whose close isn't in the journal is the last event of
    its process, if that is known to be gone, or the last one before the next gap.
    """
    spark = events.sparkSession
    gone = lasts(events)
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


def _sequence(missing: Sequence[Gap], unreadable: Sequence[str]) -> Check:
    if not missing and not unreadable:
        return Check("sequence", HELD, "no event is missing", [])
    lost = sum(gap.last - gap.first + 1 for gap in missing)
    sentences = [*unreadable[:3], *(gap.sentence() for gap in missing[:3])]
    more = len(unreadable) + len(missing) - len(sentences)
    rest = f" (and {more} more)" if more > 0 else ""
    shown = [gap._asdict() for gap in missing[: sweep.SHOWN]]
    return Check("sequence", UNKNOWN, f"{lost} events are missing: {'; '.join(sentences)}{rest}", shown)


def _configuration(timeline: Timeline) -> Check:
    if timeline.unknown:
        return Check("configuration", UNKNOWN, "; ".join(dict.fromkeys(timeline.unknown)), [])
    versions = timeline.versions
    acknowledged = len({version for _, version in timeline.acknowledged})
    detail = f"versions {versions[0]} to {versions[-1]}, {acknowledged} acknowledged by every shard"
    return Check("configuration", HELD, detail, [])


def _caps(held: DataFrame, timeline: Timeline, connections: int) -> list[Check]:
    """Open connections of a pool never beyond the cap in force."""
    kinds = [kind for kind in sweep.KINDS if timeline.any_limit(kind)]
    names = {"broker": "broker_cap", "listener": "listener_cap", "ip": "ip_cap"}
    found = _excesses(held, timeline, kinds, connections) if kinds and connections else {}
    checks = []
    for kind in sweep.KINDS:
        if kind not in kinds:
            checks.append(Check(names[kind], HELD, "no cap was set", []))
        elif kind not in found:
            checks.append(Check(names[kind], HELD, f"{connections} connections, never more open than allowed", []))
        else:
            total, shown = found[kind]
            worst = shown[0]
            detail = (
                f"{total} admissions beyond the cap; first {_pool(kind, worst)}: {worst['open']} open, "
                f"{worst['allowed']} allowed, at mono_ns {worst['at_ns']}"
            )
            checks.append(Check(names[kind], EXCEEDED, detail, shown))
    return checks


def _excesses(
    held: DataFrame, timeline: Timeline, kinds: Sequence[str], connections: int
) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """Kind of pool -> how many admissions were beyond the cap, and the first of them with the connections involved."""
    steps, slices = sweep.sliced(sweep.changes(held), rows=2 * connections)
    # Each slice gives at most SHOWN rows per kind: a bounded answer from a journal of any size.
    over = [row.asDict() for row in sweep.excesses(steps, slices, timeline, kinds).collect()]
    found: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for kind in sorted({each["kind"] for each in over}):
        mine = sorted((each for each in over if each["kind"] == kind), key=lambda each: each["at_ns"])
        total = sum({each["slice"]: each["excess"] for each in mine}.values())
        shown = mine[: sweep.SHOWN]
        for each in shown:
            each["connections"] = _involved(held, each)
        found[kind] = total, shown
    return found


def _involved(held: DataFrame, excess: dict[str, Any]) -> list[str]:
    """The connections open in a pool at an instant, named broker/shard/epoch/number, at most INVOLVED."""
    at_ns = excess["at_ns"]
    is_open = (F.col("start_ns") <= at_ns) & (F.col("end_ns").isNull() | (F.col("end_ns") > at_ns))
    mine = held.where(is_open & (F.col("broker") == excess["broker"]))
    if excess["kind"] != "broker":
        mine = mine.where(F.col(excess["kind"]) == excess["pool"])
    name = F.concat_ws("/", *(F.col(column) for column in (*INCARNATION, "conn")))
    rows = mine.select(name.alias("name"), "start_ns").orderBy(F.desc("start_ns")).limit(INVOLVED).collect()
    return [row["name"] for row in rows]


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
    shown = [row.asDict() for row in stale.orderBy("admitted_ns").limit(sweep.SHOWN).collect()]
    if not shown:
        return Check(name, HELD, f"{len(floor)} acknowledged versions, nothing admitted under an older one", [])
    first = shown[0]
    detail = (
        f"{first['ip']} was admitted under version {first['version']} at mono_ns {first['admitted_ns']}, "
        f"after version {first['acknowledged']} was acknowledged"
    )
    return Check(name, EXCEEDED, detail, shown)


def _conserved(paired: DataFrame, missing: Sequence[Gap]) -> Check:
    """Every token is taken once and given back at most once."""
    broken = paired.where(
        (F.col("admissions") != 1) | (F.col("closes") > 1) | (F.col("closed_ns") < F.col("admitted_ns"))
    )
    columns = [*INCARNATION, "conn", "ip", "admissions", "closes"]
    shown = [row.asDict() for row in broken.select(*columns).orderBy(*columns[:4]).limit(sweep.SHOWN).collect()]
    if not shown:
        return Check("conservation", HELD, "every token was taken once and given back at most once", [])
    first = shown[0]
    detail = (
        f"connection {first['broker']}/{first['shard']}/{first['epoch']}/{first['conn']} of {first['ip']} has "
        f"{first['admissions']} admissions and {first['closes']} closes"
    )
    in_gap = {(gap.broker, gap.shard, gap.epoch) for gap in missing}
    explained = all((each["broker"], each["shard"], each["epoch"]) in in_gap for each in shown) and all(
        each["admissions"] <= 1 and each["closes"] <= 1 for each in shown
    )
    return Check("conservation", UNKNOWN if explained else EXCEEDED, detail, shown)


def _pool(kind: str, excess: dict[str, Any]) -> str:
    return f"broker {excess['broker']}" if kind == "broker" else f"{kind} {excess['pool']} of broker {excess['broker']}"
