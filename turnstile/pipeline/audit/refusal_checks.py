"""Was every refusal right? The limit that it names was in force, and that limit was reached.

R1  A refusal names a setting or quota, its value and a version: that version sets that limit to that value for the address,
    it was stored before, and no newer one had been acknowledged when the connection arrived.
R2  At a refusal by a cap, at least as many tokens of its pool could be in use as the cap is, at one instant of the SLACK_NS
    before. In use are connections that were open, that came to be open, or that another limit refused in that time.
R3  At a refusal by the rate of an address, its home had found that rate violated since the connection arrived.
R4  At a refusal by the rate of a core, that shard had let a whole second's worth of connections pass within a second.

R2 to R4 ask for what must have been so, and allow for everything that the journal may not show: SLACK_NS is longer than a
connection waits for its tokens (a second), for a pass of a loop and for the way of a message. What a shard let in or had in
flight when it died left no trace, so refusals of its broker are not judged from its last event until its death is known, nor
are those of the journal's last SLACK_NS. A refusal without a cause in a broker of which events are missing is `unknown`.
`shard_unavailable` and `fd_limit` are no configured limits, and are not judged.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import pyarrow
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shards.limits.quota_entities import CONNECTION_RATE
from turnstile.pipeline.audit.verdict import HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.events import sweep
from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.survey import Process, Survey
from turnstile.pipeline.events.sweep import PoolCounts
from turnstile.pipeline.events.timeline import Timeline, VersionLimits

NAMED, CAUSED = "refused_as_configured", "refused_with_cause"
SLACK_NS = 3_000_000_000
SECOND_NS = 1_000_000_000
PARKED = 64  # connections of a listener that may wait for its slot while they hold a token of the broker's pool
CAPS = {"broker_cap": "broker", "ip_cap": "ip"}
"""Reason -> kind of pool. No setting refuses by a listener's cap: `max.connections` lets wait (KIP-402)."""
BY_LIMITS = ("broker_cap", "listener_cap", "ip_cap", "user_cap", "ip_rate", "core_rate")
_SHOWN = ("broker", "shard", "epoch", "conn", "ip", "at_ns", "reason", "limit", "limit_value", "version")
_FOUND = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "conn")),
        ("ip", pyarrow.string()),
        ("at_ns", pyarrow.int64()),
        ("reason", pyarrow.string()),
        ("limit", pyarrow.string()),
        ("limit_value", pyarrow.float64()),
        ("version", pyarrow.int64()),
        ("why", pyarrow.string()),
        ("refusals", pyarrow.int64()),
    ]
)
FOUND = sweep.ddl(_FOUND)
Batches = Iterator[pyarrow.RecordBatch]


class Unseen(NamedTuple):
    """When connections may have held tokens that the journal doesn't show: broker -> (from, until) around each death, and from
    `end_ns` on everywhere."""

    spans: Mapping[int, Sequence[tuple[int, int]]]
    end_ns: int

    def contains(self, broker: int, at_ns: int) -> bool:
        """Whether a refusal at that instant can't be judged."""
        if at_ns > self.end_ns:
            return True
        return any(low <= at_ns <= high for low, high in self.spans.get(broker, ()))


def checks(
    events: DataFrame, paired: DataFrame, timeline: Timeline, found: Survey, incomplete: Collection[int]
) -> list[Check]:
    """Both checks. `paired`: journal_events.pairs; `incomplete`: brokers of which events are missing."""
    reasons = [reason for reason in BY_LIMITS if found.refusals[reason]]
    total = sum(found.refusals[reason] for reason in reasons)
    if not total:
        return [Check(name, HELD, "no connection was refused by a limit", []) for name in (NAMED, CAUSED)]
    refused = events.where((F.col("kind") == "refused") & F.col("reason").isin(reasons)).select(
        *INCARNATION, "conn", "ip", "listener", "reason", "limit", "limit_value", "version",
        F.col("mono_ns").alias("at_ns"), (F.col("mono_ns") - _held_ns()).alias("arrived_ns"),
    )  # fmt: skip
    named = [row.asDict() for row in misnamed(refused, timeline).collect()]
    unseen = _unseen(found)
    uncaused: list[dict[str, Any]] = []
    for reason in reasons:
        if reason in CAPS:
            frame = without_full_pool(refused, events, paired, timeline, found, unseen, reason)
        elif reason == "ip_rate":
            frame = without_violation(refused, events, unseen)
        elif reason == "core_rate":
            frame = without_pace(refused, events, timeline, unseen)
        else:
            continue  # R1 finds those: no setting refuses so
        uncaused += [row.asDict() for row in frame.collect()]
    return [
        _check(NAMED, named, total, "each by a limit that was in force, with its value", ()),
        _check(CAUSED, uncaused, total, "each by a limit that was reached", incomplete),
    ]


def _check(name: str, rows: list[dict[str, Any]], total: int, held: str, incomplete: Collection[int]) -> Check:
    if not rows:
        return Check(name, HELD, f"{total} connections refused, {held}", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("refusals")
    sure = [row for row in rows if row["broker"] not in incomplete]
    shown = sorted(sure or rows, key=lambda row: (row["at_ns"], row["broker"]))[: sweep.SHOWN]
    first = shown[0]
    number = sum(count for broker, count in counts.items() if not sure or broker not in incomplete)
    detail = (
        f"{number} refusals; first {first['ip']} by {first['limit']}={first['limit_value']:g} of version {first['version']} "
        f"on broker {first['broker']}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    if sure:
        return Check(name, NOT_JUSTIFIED, detail, shown, counts)
    return Check(name, UNKNOWN, f"{detail}; but events of that broker are missing", shown, counts)


def _held_ns() -> Column:
    return F.coalesce((F.col("held_ms") * 1_000_000).cast("long"), F.lit(0))


# ---- R1


def misnamed(refused: DataFrame, timeline: Timeline) -> DataFrame:
    """FOUND: refusals that name a limit, a value or a version that was not in force; the first of each that are alike."""
    stored = F.lit(None).cast("long")
    passed = F.lit(None).cast("long")
    for version in timeline.versions:
        is_it = F.col("version") == version
        if version in timeline.stored:
            stored = F.when(is_it, F.lit(timeline.stored[version])).otherwise(stored)
        later = [at_ns for at_ns, each in timeline.acknowledged if each > version]
        if later:
            passed = F.when(is_it, F.lit(min(later))).otherwise(passed)
    too_early = F.coalesce(F.col("at_ns") < stored, F.lit(False))
    too_late = F.coalesce(F.col("arrived_ns") > passed, F.lit(False))
    grouped = refused.groupBy(
        "broker", "ip", "reason", "limit", "limit_value", "version", too_early.alias("early"), too_late.alias("late")
    ).agg(
        F.count("*").alias("refusals"),
        F.min_by(F.struct("shard", "epoch", "conn", "at_ns"), "at_ns").alias("first"),
    )
    alike = grouped.select(
        "broker", "first.shard", "first.epoch", "first.conn", "ip", "first.at_ns", "reason", "limit", "limit_value",
        "version", F.lit("").alias("why"), "refusals", "early", "late",
    )  # fmt: skip

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            found = []
            for row in batch.to_pylist():
                row["why"] = _misnamed(row, timeline, early=row.pop("early"), late=row.pop("late"))
                if row["why"]:
                    found.append(row)
            yield pyarrow.RecordBatch.from_pylist(found, _FOUND)

    return alike.mapInArrow(judge, FOUND)


def _misnamed(row: dict[str, Any], timeline: Timeline, *, early: bool, late: bool) -> str:
    """What is wrong with what a refusal names; "" for nothing, or when what its version says is not known."""
    version = row["version"]
    if not version:
        return "it names no version"
    if version not in timeline.versions:
        return ""
    if early:
        return "that version was stored later"
    if late:
        return "a newer version had been acknowledged when the connection arrived"
    limits = timeline.limits(version, row["broker"])
    said = row["limit"], row["limit_value"]
    expected = refusing(limits, row["reason"], row["ip"])
    if said == expected or (expected is None and row["reason"] in ("ip_rate", "core_rate") and not row["limit_value"]):
        return ""  # the rate of a connection that was held, or waited, may have been removed meanwhile
    if expected is None:
        return "that version sets no such limit"
    return f"that version says {expected[0]}={expected[1]:g}"


def refusing(limits: VersionLimits, reason: str, ip: str) -> tuple[str, float] | None:
    """(setting or quota, its value) that refuses an address for a reason under a version; None: none does."""
    if reason in CAPS:
        rule = limits.limits.refusing if reason == "broker_cap" else limits.limits.rule_of(f"ip:{ip}")
        return None if rule.cap is None else (rule.name, float(rule.cap))
    if reason == "ip_rate":
        rate = limits.rate("ip", ip)
        return None if rate == float("inf") else (CONNECTION_RATE, rate)
    if reason == "core_rate":
        core = limits.limits.core_rate_of(ip)
        return None if core.rate is None else (core.name, core.rate)
    return None


# ---- R2


def without_full_pool(
    refused: DataFrame,
    events: DataFrame,
    paired: DataFrame,
    timeline: Timeline,
    found: Survey,
    unseen: Unseen,
    reason: str,
) -> DataFrame:
    """FOUND: refusals by a cap while fewer connections than that could hold a token."""
    kind = CAPS[reason]
    mine = refused.where(F.col("reason") == reason)
    others = events.where((F.col("kind") == "refused") & (F.col("reason") != reason))
    if kind == "ip":  # only `broker:all` is asked after the pool of the address
        others = others.where(F.col("reason") == "broker_cap")
    ended = paired.sparkSession.createDataFrame(
        _deaths(found) or [(-2, -2, -2, 0, 0)], f"{_PLACE}, low long, died_ns long"
    )
    used = (
        paired.where(F.col("admitted_ns").isNotNull())
        .join(F.broadcast(ended.drop("low")), [*INCARNATION], how="left")
        .select(
            "broker", "ip", F.col("admitted_ns").alias("start_ns"), F.coalesce("closed_ns", "died_ns").alias("end_ns")
        )
        .unionByName(
            others.select(
                "broker", "ip", (F.col("mono_ns") - _held_ns()).alias("start_ns"), F.col("mono_ns").alias("end_ns")
            )
        )
    )
    if kind == "ip":
        used = used.join(mine.select("broker", "ip").distinct(), ["broker", "ip"], how="leftsemi")
    blank = [F.lit(None).cast(kind).alias(name) for name, kind in _ASKED.items()]
    opened = F.struct((F.col("start_ns") - SLACK_NS).alias("at_ns"), F.lit(1).alias("change"))
    closed = F.when(
        F.col("end_ns").isNotNull(), F.struct((F.col("end_ns") + SLACK_NS).alias("at_ns"), F.lit(-1).alias("change"))
    )
    steps = used.withColumn("step", F.explode(F.array_compact(F.array(opened, closed)))).select(
        "broker", "ip", "step.at_ns", "step.change", *blank
    )
    asked = mine.select("broker", "ip", "at_ns", F.lit(0).alias("change"), *_ASKED)
    both = steps.unionByName(asked).withColumn("listener", F.lit(None).cast("string"))
    rows = 2 * sum(each.events for each in found.processes)
    cut, slices = sweep.sliced(both, rows=rows)
    acceptors = max(1, len({each[:2] for each in found.processes}) * max(1, len(found.listeners)))
    judge = partial(_not_full, timeline, unseen, acceptors)
    return sweep.judged(cut, slices, [kind], judge, _FOUND, closes_first=False)


_PLACE = "broker int, shard int, epoch long"
_ASKED = {
    "shard": "int", "epoch": "long", "conn": "long", "reason": "string", "limit": "string", "limit_value": "double",
    "version": "long",
}  # fmt: skip


def _not_full(timeline: Timeline, unseen: Unseen, acceptors: int, counted: PoolCounts) -> pyarrow.Table:
    """The refusals of one kind of pool in one slice at which it can't have been full."""
    steps, open_now = counted.steps, counted.open
    caps = steps["limit_value"].to_numpy()[counted.order]
    likely = numpy.flatnonzero((counted.change == 0) & (open_now < caps))
    if not len(likely):
        return _FOUND.empty_table()
    picked = steps.take(pyarrow.array(counted.order[likely])).select(_SHOWN).to_pylist()
    found = []
    for row, count in zip(picked, open_now[likely].tolist(), strict=True):
        parked = _parked(timeline, row["version"], row["broker"]) * acceptors if counted.kind == "broker" else 0
        if count + parked >= row["limit_value"] or unseen.contains(row["broker"], row["at_ns"]):
            continue
        found.append({**row, "why": f"at most {count} could be in use", "refusals": 1})
    return pyarrow.Table.from_pylist(found, _FOUND)


def _parked(timeline: Timeline, version: int | None, broker: int) -> int:
    """How many connections of a listener on a shard may hold a token of the broker's pool and wait for the listener's."""
    limits = timeline.limits(version or 0, broker).limits
    if all(rule.cap is None for rule in (limits.waiting, *limits.listeners.values())):
        return 0
    return (
        0 if limits.rule_of("broker").wait else PARKED
    )  # else the pool that refuses is asked last: nothing waits there


def _deaths(found: Survey) -> list[tuple[int, int, int, int, int]]:
    """(broker, shard, epoch, its last event, when it is known to be dead) of each process that is gone."""
    dead = []
    successor: Process | None = None
    for each in sorted(found.processes, reverse=True):
        known = [successor.first_ns] if successor is not None and successor[:2] == each[:2] else []
        known += [found.lost[each[:3]]] if each[:3] in found.lost else []
        if known and each.broker >= 0:
            dead.append((*each[:3], each.last_ns, max(each.last_ns, min(known))))
        successor = each
    return dead


def _unseen(found: Survey) -> Unseen:
    spans: dict[int, list[tuple[int, int]]] = {}
    for broker, _, _, last_ns, died_ns in _deaths(found):
        spans.setdefault(broker, []).append((last_ns - SLACK_NS, died_ns + SLACK_NS))
    return Unseen(spans, max(each.last_ns for each in found.processes) - SLACK_NS)


# ---- R3


def without_violation(refused: DataFrame, events: DataFrame, unseen: Unseen) -> DataFrame:
    """FOUND: refusals by an address's rate that its home had not found violated since the connection arrived."""
    pool = F.get_json_object("detail", "$.pool")
    violated = (
        events.where(
            (F.col("kind") == "grant") & F.col("detail").contains('"rate:ip:') & F.col("detail").contains("violated")
        )
        .where(F.get_json_object("detail", "$.violated") == "true")
        .select("broker", F.substring(pool, 9, 1_000).alias("ip"), F.col("mono_ns").alias("violated_ns"))
    )
    mine = refused.where(F.col("reason") == "ip_rate").withColumn("order_ns", F.col("at_ns") + SLACK_NS)
    both = mine.unionByName(violated.withColumn("order_ns", F.col("violated_ns")), allowMissingColumns=True)
    until = Window.partitionBy("broker", "ip").orderBy("order_ns").rangeBetween(Window.unboundedPreceding, 0)
    latest = both.withColumn("latest_ns", F.max("violated_ns").over(until))
    never = F.coalesce(F.col("latest_ns") < F.col("arrived_ns") - SLACK_NS, F.lit(True))
    rows = latest.where(F.col("at_ns").isNotNull() & never).select(*_SHOWN)
    return rows.mapInArrow(_seen(unseen, "its home found no violation of that rate"), FOUND)


# ---- R4


def without_pace(refused: DataFrame, events: DataFrame, timeline: Timeline, unseen: Unseen) -> DataFrame:
    """FOUND: refusals by a core's rate although fewer than that came to a shard within a second before."""
    is_mine = (F.col("kind") == "refused") & (F.col("reason") == "core_rate")
    passed = events.where(F.col("kind").isin("admitted", "refused") & ~is_mine).select(
        *INCARNATION, "ip", (F.col("mono_ns") - _held_ns()).alias("arrived_ns")
    )
    mine = refused.where(F.col("reason") == "core_rate")
    both = mine.unionByName(passed, allowMissingColumns=True)
    of_core = Window.partitionBy(*INCARNATION).orderBy("arrived_ns").rangeBetween(-2 * SECOND_NS, SECOND_NS)
    of_ip = Window.partitionBy(*INCARNATION, "ip").orderBy("arrived_ns").rangeBetween(-2 * SECOND_NS, SECOND_NS)
    others = F.col("at_ns").isNull()
    counted = both.withColumns({"of_core": F.count_if(others).over(of_core), "of_ip": F.count_if(others).over(of_ip)})
    count = F.when(F.col("limit").endswith("overrides"), F.col("of_ip")).otherwise(F.col("of_core"))
    rows = counted.where(F.col("at_ns").isNotNull() & (count < F.col("limit_value"))).select(*_SHOWN)
    # A bucket keeps its tokens when its rate changes, so at first it may have fewer than the new rate says.
    changed = [period.start_ns for period in timeline.periods]
    return rows.mapInArrow(_seen(unseen, "fewer than that came within a second", changed), FOUND)


def _seen(unseen: Unseen, why: str, changed_ns: Sequence[int] = ()) -> Callable[[Batches], Batches]:
    """Rows of _SHOWN as FOUND, without those that can't be judged: `unseen`, or soon after one of the sorted `changed_ns`."""

    def is_sure(broker: int, at_ns: int) -> bool:
        recent = bisect_right(changed_ns, at_ns) - bisect_right(changed_ns, at_ns - SLACK_NS)
        return not recent and not unseen.contains(broker, at_ns)

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            rows = [row for row in batch.to_pylist() if is_sure(row["broker"], row["at_ns"])]
            yield pyarrow.RecordBatch.from_pylist([{**row, "why": why, "refusals": 1} for row in rows], _FOUND)

    return judge
