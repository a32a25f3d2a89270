"""No rate beyond its window: what any Kafka broker with that limit could have admitted bounds what was admitted.

A window of `quota.window.num` x `quota.window.size.seconds` seconds holds at most quota x (num + 1) x size: the
sampled rate divides by no more than that (shards/limits/rate.py, R1 to R3). Windows are looked at whole second by whole second,
so the work is one count per key and second however many events a key has.

A connection is admitted later than its unit is recorded: by up to a second while another shard is asked, and on a
listener by up to one window, or until there is a slot. So the spans looked at are that much shorter than the window;
each acceptor (one per shard and listener) may add one per window, and PARKED with max.connections. A shard that is
started again may have forgotten what it recorded, and a reset cluster has forgotten all of it. Redpanda's bucket
holds one second's worth and refills for the rest, and lets wait for 100 ms.

That is a bound, and no more; rate_unit_checks.py judges units one by one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, Check
from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.survey import Process
from turnstile.pipeline.events.timeline import Timeline

SECOND_NS = 1_000_000_000
SHOWN = 10
PARKED = 64  # connections of a listener that a shard may have accepted when the listener has to wait
OVER = "kind string, broker int, pool string, at_ns long, seconds int, admitted long, allowed long"
_SCHEMA = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        ("at_ns", pyarrow.int64()),
        ("seconds", pyarrow.int32()),
        ("admitted", pyarrow.int64()),
        ("allowed", pyarrow.int64()),
    ]
)


class RateKind(NamedTuple):
    """A kind of rate limit: its check's name, and the columns that its window is shared over."""

    name: str
    kind: str
    key: str | None
    per_shard: bool = False


KINDS = (
    RateKind("ip_rate", "ip", "ip"),
    RateKind("listener_rate", "listener", "listener"),
    RateKind("broker_rate", "broker", None),
    RateKind("core_rate", "core", None, per_shard=True),
    RateKind("core_rate_override", "core_ip", "ip", per_shard=True),
)


def checks(events: DataFrame, timeline: Timeline, seen: Sequence[Process]) -> list[Check]:
    """A check per kind of rate that was ever limited."""
    found = []
    limited = [kind for kind in KINDS if timeline.any_limit(kind.kind, "rate")]
    again = starts(events, seen) if limited else {}
    for kind in limited:
        over = beyond(events, timeline, kind, again).persist()
        counts = Counter({row["broker"]: row["count"] for row in over.groupBy("broker").count().collect()})
        if not counts:
            found.append(Check(kind.name, HELD, "never more admitted in a window than its rate allows", []))
            continue
        shown = [row.asDict() for row in over.orderBy("at_ns", "broker", "pool").limit(SHOWN).collect()]
        over.unpersist()
        first = shown[0]
        detail = (
            f"{first['pool'] or 'the broker'}: {first['admitted']} admitted in {first['seconds']} s, "
            f"{first['allowed']} allowed, from mono_ns {first['at_ns']}"
        )
        found.append(Check(kind.name, EXCEEDED, detail, shown, counts))
    return found


def restarts(seen: Sequence[Process]) -> dict[int, list[int]]:
    """Broker -> when a shard of it wrote its first event after an earlier incarnation of that shard."""
    found: dict[int, list[int]] = {}
    for each in seen:
        if any(other[:2] == each[:2] and other.epoch < each.epoch for other in seen):
            found.setdefault(each.broker, []).append(each.first_ns)
    return found


def starts(events: DataFrame, seen: Sequence[Process]) -> dict[int, list[int]]:
    """Broker -> when windows started anew: with another incarnation of a shard, or when the cluster was reset."""
    found = restarts(seen)
    begun = (
        events.where((F.col("kind") == "grant") & F.col("detail").contains('"rate:"'))
        .where(F.get_json_object("detail", "$.started") == "true")
        .select(*INCARNATION, "mono_ns")
    )
    known: set[tuple[int, int, int]] = set()
    for row in begun.orderBy("mono_ns").collect():
        incarnation = (row["broker"], row["shard"], row["epoch"])
        if incarnation in known:
            found.setdefault(row["broker"], []).append(row["mono_ns"])
        known.add(incarnation)
    return found


def beyond(events: DataFrame, timeline: Timeline, kind: RateKind, again: Mapping[int, Sequence[int]]) -> DataFrame:
    """OVER: the windows with more admissions than any version in force allows. `again`: as `starts` has it."""
    samples, size_ms = timeline.windows[0]
    span = samples * size_ms // 1000 - 1 - (0 if kind.kind in ("ip", "core", "core_ip") else size_ms // 1000)
    seconds = max(1, span)
    place = ["broker", *(["shard", "epoch"] if kind.per_shard else []), *([kind.key] if kind.key else [])]
    admitted = events.where(F.col("kind") == "admitted")
    if kind.kind == "broker" and timeline.inter_broker:
        admitted = admitted.where(~F.col("listener").isin(*timeline.inter_broker))  # counts for its own rate only
    per_second = admitted.groupBy(*place, F.expr(f"mono_ns div {SECOND_NS}").alias("second")).agg(
        F.count("*").alias("n")
    )
    trailing = Window.partitionBy(*place).orderBy("second").rangeBetween(-(seconds - 1), 0)
    windows = per_second.withColumn("admitted", F.sum("n").over(trailing))
    acceptors = admitted.groupBy("broker").agg(F.count_distinct("shard", "listener").alias("acceptors"))
    likely = windows.where(F.col("admitted") > timeline.lowest_rate(kind.kind) * seconds)
    pool = F.col(kind.key) if kind.key else F.lit("")
    asked = likely.join(F.broadcast(acceptors), "broker").select(
        "broker", pool.alias("pool"), "second", "admitted", "acceptors"
    )

    def check(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield pyarrow.RecordBatch.from_pylist(
                [over for row in batch.to_pylist() if (over := _over(row, timeline, kind, seconds, again))], _SCHEMA
            )

    # Beyond the lowest rate ever set, but maybe within the one in force then: decided window by window.
    return asked.mapInArrow(check, OVER)


def _over(
    row: dict[str, Any], timeline: Timeline, kind: RateKind, seconds: int, again: Mapping[int, Sequence[int]]
) -> dict[str, Any] | None:
    """A window (broker, pool, second, admitted, acceptors) that is beyond, as OVER has it."""
    samples, size_ms = timeline.windows[0]
    start_ns, end_ns = (row["second"] - seconds + 1) * SECOND_NS, (row["second"] + 1) * SECOND_NS
    since_ns = start_ns - (samples + 2) * size_ms * 1_000_000
    rate = timeline.allowed_rate(since_ns, end_ns, row["broker"], kind.kind, row["pool"])
    allowed = _allowed(rate, kind, samples, size_ms / 1000, seconds, row["acceptors"])
    if timeline.limits_slots and kind.kind in ("listener", "broker"):
        allowed += row["acceptors"] * PARKED
    if len(timeline.windows) > 1:
        allowed *= 2  # of a shorter window, this span holds at most twice as much
    allowed *= 1 + sum(since_ns <= at_ns <= end_ns for at_ns in again.get(row["broker"], ()))
    if row["admitted"] <= allowed:
        return None
    return {
        "kind": kind.kind, "broker": row["broker"], "pool": row["pool"], "at_ns": start_ns, "seconds": seconds,
        "admitted": row["admitted"], "allowed": int(allowed),
    }  # fmt: skip


def _allowed(rate: float, kind: RateKind, samples: int, size_s: float, seconds: int, acceptors: int) -> float:
    """The most that may be admitted in so many whole seconds."""
    if kind.per_shard:
        return rate * (seconds + 2) + 1
    # Where a span can't be shorter than all samples by what a connection may be late, two windows may fall into it.
    bound = (1 if seconds < samples * size_s else 2) * (rate * (samples + 1) * size_s + 1)
    return bound if kind.kind == "ip" else bound + acceptors * (samples + 1)
