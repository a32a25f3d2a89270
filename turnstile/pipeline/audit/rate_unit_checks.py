"""Was every unit of a connection creation rate (KIP-612) recorded within its quota? Judged one by one, by Kafka's arithmetic.

The home of a rate journals every change of its windows (docs/journal.md), so shards/limits/rate_replay.py goes
through the very states that it went through, under the quotas of the version that each event names. Incarnations of
homes share nothing: a home that starts anew journals what it begins with. Addresses don't, either, and are spread
over BUCKETS tasks; the listeners of a broker meet in its own rate, and are one.

After a gap a home's windows are not known any more, and what it recorded later is not judged.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shards.limits.ranges import INT_MAX
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas, RateReplay
from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, Check
from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.sequence import Gap, first_gaps
from turnstile.pipeline.events.timeline import Timeline

SHOWN = 10
BUCKETS = 32
_LISTENERS = -1
NAMES = {"ip": "ip_rate_units", "listener": "listener_rate_units"}
UNITS = (
    "kind string, broker int, shard int, epoch long, seq long, at_ns long, pool string, to int, units long, "
    "beyond long, version long"
)
_SCHEMA = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        ("epoch", pyarrow.int64()),
        ("seq", pyarrow.int64()),
        ("at_ns", pyarrow.int64()),
        ("pool", pyarrow.string()),
        ("to", pyarrow.int32()),
        ("units", pyarrow.int64()),
        ("beyond", pyarrow.int64()),
        ("version", pyarrow.int64()),
    ]
)


def checks(events: DataFrame, timeline: Timeline, missing: Sequence[Gap]) -> list[Check]:
    """A check for addresses and one for listeners, if any version limits them."""
    limited = {"ip": ("ip",), "listener": ("listener", "broker")}
    kinds = [kind for kind, rates in limited.items() if any(timeline.any_limit(rate, "rate") for rate in rates)]
    if not kinds:
        return []
    over = beyond(changes(events, missing), timeline).persist()
    counts: dict[str, Counter[int]] = {kind: Counter() for kind in kinds}
    for row in over.groupBy("kind", "broker").agg(F.sum("beyond").alias("units")).collect():
        counts[row["kind"]][row["broker"]] = row["units"]
    found = [_check(kind, over, counts[kind]) for kind in kinds]
    over.unpersist()
    return found


def changes(events: DataFrame, missing: Sequence[Gap]) -> DataFrame:
    """INCARNATION, bucket, seq, mono_ns, version, detail: every change of a window, in each bucket that it may concern."""
    pool = F.get_json_object("detail", "$.pool")
    rated = (
        events.where(F.col("kind").isin("grant", "reclaim") & F.col("detail").contains('"rate:'))
        .select(*INCARNATION, "seq", "mono_ns", "version", "detail", pool.alias("pool"))
        .where(F.col("pool").startswith("rate:"))
    )
    if missing:
        rows = [(*place, gap.first) for place, gap in first_gaps(missing).items()]
        until = events.sparkSession.createDataFrame(rows, "broker int, shard int, epoch long, until_seq long")
        rated = rated.join(F.broadcast(until), [*INCARNATION], how="left")
        rated = rated.where(F.col("until_seq").isNull() | (F.col("seq") < F.col("until_seq"))).drop("until_seq")
    bucket = F.when(F.col("pool").startswith("rate:listener:"), F.lit(_LISTENERS)).otherwise(
        (F.crc32(F.substring("pool", 6, 1_000)) % BUCKETS).cast("int")
    )
    of_one = rated.where(F.col("pool") != "rate:").withColumn("bucket", bucket)
    # A start concerns all windows of its home: it goes to every bucket that has any.
    buckets = of_one.select(*INCARNATION, "bucket").distinct()
    of_all = rated.where(F.col("pool") == "rate:").join(buckets, [*INCARNATION], how="inner")
    return of_one.unionByName(of_all).drop("pool")


def beyond(changed: DataFrame, timeline: Timeline) -> DataFrame:
    """UNITS: the events of `changes` that recorded units which no single broker would have let in."""
    exempt = timeline.inter_broker

    def judge(table: pyarrow.Table) -> pyarrow.Table:
        broker, bucket = table["broker"][0].as_py(), table["bucket"][0].as_py()
        home = RateReplay(Window(*timeline.windows[0]))  # until it says which windows it begins with
        found: list[dict[str, Any]] = []
        for row in table.sort_by("seq").to_pylist():
            detail = json.loads(row["detail"])
            if "remembered" in detail:
                detail["remembered"] = [each for each in detail["remembered"] if _bucket_of(each[1]) == bucket]
            limits = timeline.limits(row["version"], broker)

            def quotas(key: str, limits: Any = limits) -> RateQuotas:
                kind, _, name = key.partition(":")
                if kind == "ip":
                    return RateQuotas(_quota(limits.rate("ip", name)))
                return RateQuotas(_quota(limits.rate(kind, name)), _quota(limits.rate("broker", "")), name in exempt)

            units = home.event(detail, quotas, Window(*limits.limits.window))
            if units:
                pool = detail["pool"].removeprefix("rate:")
                same = {name: row[name] for name in ("broker", "shard", "epoch", "seq", "version")}
                of = {"kind": pool.partition(":")[0], "at_ns": row["mono_ns"], "pool": pool, "to": detail["to"]}
                found.append({**same, **of, "units": detail["tokens"], "beyond": units})
        return pyarrow.Table.from_pylist(found, _SCHEMA)

    return changed.groupBy(*INCARNATION, "bucket").applyInArrow(judge, UNITS)


def _bucket_of(key: str) -> int:
    return _LISTENERS if key.startswith("listener:") else crc32(key.encode()) % BUCKETS


def _quota(rate: float) -> float | None:
    return rate if rate < INT_MAX else None


def _check(kind: str, over: DataFrame, counts: Counter[int]) -> Check:
    if not counts:
        return Check(NAMES[kind], HELD, "every unit that was recorded was within its quota, by Kafka's arithmetic", [])
    rows = over.where(F.col("kind") == kind).orderBy("at_ns", *INCARNATION, "seq").limit(SHOWN).collect()
    shown = [row.asDict() for row in rows]
    first = shown[0]
    detail = (
        f"{counts.total()} units beyond their quota; first {first['pool']} of broker {first['broker']}: "
        f"{first['beyond']} of {first['units']} for shard {first['to']}, at mono_ns {first['at_ns']}"
    )
    return Check(NAMES[kind], EXCEEDED, detail, shown, counts)
