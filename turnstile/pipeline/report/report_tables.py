"""Refused clients, with time and reason: the tables of a report, each a DataFrame with its columns as contract.

A table that only draws a picture is cut into at most BUCKETS steps of time in Spark; what reaches the driver is some
thousand rows, for a journal of any size.
"""

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow
import pyarrow.csv
import pyarrow.parquet
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.audit.connections import Ends, paired
from turnstile.pipeline.events.digest import DIGEST, digest
from turnstile.pipeline.events.journal import EVENTS
from turnstile.pipeline.events.journal_events import JournalEvents
from turnstile.pipeline.events.spark_rows import RowsOnSpark
from turnstile.pipeline.events.spark_sweep import changes
from turnstile.pipeline.events.survey import Survey, survey
from turnstile.pipeline.events.timeline import UNLIMITED, Timeline
from turnstile.pipeline.fetch import fetch

BUCKETS = 240
TOP = 20
SHOWN_IPS = 6
MARKS = 200
_BIN_BASE = 2.0


class Built(NamedTuple):
    """A report's tables, as Arrow has them and as rows for the page, and its summary."""

    tables: dict[str, pyarrow.Table]
    rows: dict[str, list[dict[str, Any]]]
    marks: list[tuple[float, str]]
    caps: dict[str, list[tuple[float, float | None]]]
    bucket_s: float
    summary: dict[str, Any]
    unreadable: list[str]


def build(journal: JournalEvents) -> Built:
    """Every table of the report."""
    events = journal.events.persist(StorageLevel.MEMORY_AND_DISK)
    seconds = F.unix_micros("ts") / 1e6
    facts = events.agg(
        F.count("*").alias("events"),
        F.min(seconds).alias("first"),
        F.max(seconds).alias("last"),
        F.count_if(F.col("kind") == "admitted").alias("admitted"),
        F.count_if(F.col("kind") == "refused").alias("refused"),
        F.count_if(F.col("kind") == "throttled").alias("throttled"),
        F.max(F.unix_micros("ts") * 1000 - F.col("mono_ns")).alias("offset_ns"),
    ).first()
    assert facts is not None  # an aggregate without keys is one row
    span = (facts["last"] or 0) - (facts["first"] or 0)
    bucket_s = max(1.0, round(span / BUCKETS))
    seen = _survey(events)
    timeline, offset_ns = seen.timeline(), facts["offset_ns"] or 0
    tables = {name: fetch(make(events, bucket_s)) for name, make in TABLES.items()}
    rows = {name: table.to_pylist() for name, table in tables.items()}
    summary = {name: facts[name] for name in ("events", "first", "last", "admitted", "refused", "throttled")}
    shown = list(dict.fromkeys(row["ip"] for row in rows["open_per_ip"]))
    return Built(
        tables, rows, _marks(seen, timeline, offset_ns), _caps(timeline, shown, offset_ns, facts), bucket_s, summary,
        [part.sentence for part in journal.unreadable],
    )  # fmt: skip


def in_files(built: Built, format: str) -> dict[str, bytes]:
    """Each table as a file, by its name, of Parquet or CSV."""
    return {f"{name}.{format}": _in_file(table, format) for name, table in built.tables.items()}


def _in_file(table: pyarrow.Table, format: str) -> bytes:
    content = io.BytesIO()
    if format == "csv":
        pyarrow.csv.write_csv(table, content)
    else:
        pyarrow.parquet.write_table(table, content)
    return content.getvalue()


# ---- tables


def decisions(events: DataFrame, bucket_s: float) -> DataFrame:
    """One row per (at, outcome): admitted, or the reason of a refusal, and how many."""
    decided = events.where(F.col("kind").isin("admitted", "refused"))
    outcome = F.coalesce("reason", "kind").alias("outcome")
    counts = decided.groupBy(_bucket(bucket_s).alias("at"), outcome).agg(F.count("*").alias("count"))
    return counts.select("at", "outcome", "count").orderBy("at", "outcome")


def refused_ips(events: DataFrame, bucket_s: float) -> DataFrame:
    """The TOP addresses refused most: ip, reasons (each with how often, the most frequent first), refused, admitted,
    refused_share."""
    decided = events.where(F.col("kind").isin("admitted", "refused"))
    by_reason = decided.groupBy("ip", "reason").agg(
        F.count_if(F.col("kind") == "refused").alias("refused"),
        F.count_if(F.col("kind") == "admitted").alias("admitted"),
    )
    told = F.when(F.col("refused") > 0, F.struct((-F.col("refused")).alias("order"), "reason", "refused"))
    ordered = F.array_sort(F.collect_list(told))
    counts = by_reason.groupBy("ip").agg(
        F.array_join(
            F.transform(ordered, lambda each: F.concat_ws(" ", each["reason"], each["refused"].cast("string"))), ", "
        ).alias("reasons"),
        F.sum("refused").alias("refused"),
        F.sum("admitted").alias("admitted"),
    )
    share = (F.col("refused") / (F.col("refused") + F.col("admitted"))).alias("refused_share")
    top = counts.where(F.col("refused") > 0).orderBy(F.desc("refused"), "ip").limit(TOP)
    return top.select("ip", "reasons", "refused", "admitted", share)


def refused_networks(events: DataFrame, bucket_s: float) -> DataFrame:
    """The TOP networks (/24, /64): network, addresses, refused."""
    refused = events.where(F.col("kind") == "refused")
    v6 = F.concat(F.substring_index("ip", ":", 4), F.lit("::/64"))
    v4 = F.concat(F.substring_index("ip", ".", 3), F.lit(".0/24"))
    network = F.when(F.col("ip").contains(":"), v6).otherwise(v4).alias("network")
    counts = refused.groupBy(network).agg(F.countDistinct("ip").alias("addresses"), F.count("*").alias("refused"))
    return counts.select("network", "addresses", "refused").orderBy(F.desc("refused"), "network").limit(TOP)


def open_per_ip(events: DataFrame, bucket_s: float) -> DataFrame:
    """ip, at, open, left: the most open at once in each step of time, and how many when it is over, for the SHOWN_IPS addresses
    open for the most time in all.

    Connections of a process that died count until its last event, as in the audit.
    """
    rows = RowsOnSpark(events.select(*EVENTS.names), 0)
    connections = paired(rows, Ends.of(_survey(events).ends(live=True), []))
    assert isinstance(connections, RowsOnSpark)
    held = connections.frame.where(F.col("admitted_ns").isNotNull()).withColumnRenamed("admitted_ns", "start_ns")
    offset_us = F.max(F.unix_micros("ts") - F.col("mono_ns") / 1000).alias("offset_us")
    facts = events.agg(F.max("mono_ns").alias("last_ns"), offset_us).first()
    assert facts is not None  # an aggregate without keys is one row
    last_ns, offset = facts["last_ns"] or 0, facts["offset_us"] or 0
    open_ns = F.sum(F.coalesce("end_ns", F.lit(last_ns)) - F.col("start_ns"))
    busiest = held.groupBy("ip").agg(open_ns.alias("open_ns")).orderBy(F.desc("open_ns"), "ip").limit(SHOWN_IPS)
    steps = changes(held.join(F.broadcast(busiest), "ip", how="leftsemi"))
    placed = steps.withColumn("at", F.floor((F.col("at_ns") / 1000 + offset) / 1e6 / bucket_s) * bucket_s)
    per_bucket = placed.groupBy("ip", "at").agg(F.sum("change").alias("net"))
    before = Window.partitionBy("ip").orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    carry = per_bucket.withColumn("carry", F.coalesce(F.sum("net").over(before), F.lit(0)))
    inside = Window.partitionBy("ip", "at").orderBy("at_ns", "change").rowsBetween(Window.unboundedPreceding, 0)
    peaks = placed.withColumn("run", F.sum("change").over(inside)).groupBy("ip", "at").agg(F.max("run").alias("peak"))
    open_now = (F.col("carry") + F.greatest("peak", F.lit(0))).alias("open")
    left = (F.col("carry") + F.col("net")).alias("left")
    return peaks.join(carry, ["ip", "at"], how="inner").select("ip", "at", open_now, left).orderBy("ip", "at")


def latency(events: DataFrame, bucket_s: float) -> DataFrame:
    """low_ms, high_ms, count: from accept to decision, of admitted connections, in bins that double."""
    return _bins(events.where(F.col("kind") == "admitted"), F.col("held_ms"), least=0.03125)


def hold_times(events: DataFrame, bucket_s: float) -> DataFrame:
    """low_ms, high_ms, count: how long connections were open, in bins that double."""
    return _bins(events.where(F.col("kind") == "closed"), F.col("held_ms"), least=1.0)


def throttled(events: DataFrame, bucket_s: float) -> DataFrame:
    """The TOP (user, client_id) by throttle time: user, client_id, limit, throttles, throttle_s, worst_ms."""
    mine = events.where(F.col("kind") == "throttled")
    sums = mine.groupBy(
        F.coalesce("user", F.lit("ANONYMOUS")).alias("user"), F.coalesce("client_id", F.lit("")).alias("client_id"),
        F.coalesce("limit", F.lit("")).alias("limit"),
    ).agg(
        F.count("*").alias("throttles"),
        (F.sum("throttle_ms") / 1000).alias("throttle_s"),
        F.max("throttle_ms").alias("worst_ms"),
    )  # fmt: skip
    return sums.orderBy(F.desc("throttle_s"), "user", "client_id").limit(TOP)


def tokens(events: DataFrame, bucket_s: float) -> DataFrame:
    """at, kind (grant or reclaim), messages, tokens: what homes granted, and what came back to them, lost ones included."""
    moved = F.coalesce(F.get_json_object("detail", "$.tokens").try_cast("long"), F.col("bytes"), F.lit(1))
    of_rates = F.coalesce(F.get_json_object("detail", "$.pool").startswith("rate:"), F.lit(False))
    is_news = F.get_json_object("detail", "$.reported").isNotNull()  # the shard had them already
    mine = events.where(F.col("kind").isin("grant", "reclaim") & ~of_rates & ~is_news)
    sums = mine.groupBy(_bucket(bucket_s).alias("at"), "kind").agg(
        F.count("*").alias("messages"), F.sum(moved).alias("tokens")
    )
    return sums.orderBy("at", "kind")


def paths(events: DataFrame, bucket_s: float) -> DataFrame:
    """at, path, count: decisions taken at once on the shard that accepted, and after asking another."""
    decided = events.where(F.col("kind").isin("admitted", "refused"))
    path = F.when(F.col("held_ms") > 0, "asked another shard").otherwise("decided at once").alias("path")
    return decided.groupBy(_bucket(bucket_s).alias("at"), path).agg(F.count("*").alias("count")).orderBy("at", "path")


def reconnects(events: DataFrame, bucket_s: float) -> DataFrame:
    """The TOP refused addresses: ip, refused, median_gap_ms between its refusals, and growth: the median gap of the second half
    of them over that of the first."""
    refused = events.where(F.col("kind") == "refused")
    in_order = Window.partitionBy("ip").orderBy("mono_ns", "seq")
    gap = (F.col("mono_ns") - F.lag("mono_ns").over(in_order)) / 1e6
    half = F.ntile(2).over(in_order)
    gaps = refused.select("ip", gap.alias("gap_ms"), half.alias("half"))
    sums = gaps.groupBy("ip").agg(
        F.count("*").alias("refused"),
        F.percentile_approx("gap_ms", F.lit(0.5)).alias("median_gap_ms"),
        F.percentile_approx(F.when(F.col("half") == 1, F.col("gap_ms")), F.lit(0.5)).alias("early"),
        F.percentile_approx(F.when(F.col("half") == 2, F.col("gap_ms")), F.lit(0.5)).alias("late"),
    )
    growth = F.try_divide("late", "early")
    top = sums.orderBy(F.desc("refused"), "ip").limit(TOP)
    return top.select("ip", "refused", "median_gap_ms", growth.alias("growth"))


TABLES: dict[str, Callable[[DataFrame, float], DataFrame]] = {
    "decisions": decisions,
    "refused_ips": refused_ips,
    "refused_networks": refused_networks,
    "open_per_ip": open_per_ip,
    "latency": latency,
    "hold_times": hold_times,
    "throttled": throttled,
    "tokens": tokens,
    "paths": paths,
    "reconnects": reconnects,
}


def _survey(events: DataFrame) -> Survey:
    return survey(RowsOnSpark(events.select(*EVENTS.names), 0).each(digest, DIGEST).table())


def _bucket(bucket_s: float) -> Column:
    """The start of the step of time an event is in, epoch seconds."""
    return F.floor(F.unix_micros("ts") / 1e6 / bucket_s) * bucket_s


def _bins(rows: DataFrame, value: Column, *, least: float) -> DataFrame:
    """low_ms, high_ms, count in bins that double from `least`; smaller values are in the first."""
    number = F.greatest(F.floor(F.log2(value / least)), F.lit(-1))
    counted = (
        rows.where(value.isNotNull())
        .groupBy(F.coalesce(number, F.lit(-1)).alias("bin"))
        .agg(F.count("*").alias("count"))
    )
    low = F.when(F.col("bin") < 0, F.lit(0.0)).otherwise(least * F.pow(F.lit(_BIN_BASE), "bin")).alias("low_ms")
    high = (least * F.pow(F.lit(_BIN_BASE), F.col("bin") + 1)).alias("high_ms")
    return counted.select(low, high, "count").orderBy("low_ms")


def _marks(seen: Survey, timeline: Timeline, offset_ns: int) -> list[tuple[float, str]]:
    """When each change came into force, with what it changed, and which shards were lost; the first MARKS of each."""
    first: dict[int, int] = {}
    for told in seen.told:
        if told.kind == "config":
            first.setdefault(told.version, told.at_ns)
    changes = [
        (first[version], ", ".join(timeline.changed(version))) for version in timeline.versions if version in first
    ]
    gone = [(at_ns, f"shard {shard} of broker {broker} lost") for (broker, shard, _), at_ns in seen.lost.items()]
    shown = [*[each for each in changes if each[1]][:MARKS], *sorted(gone)[:MARKS]]
    return sorted(((at_ns + offset_ns) / 1e9, text) for at_ns, text in shown)


def _caps(
    timeline: Timeline, ips: list[str], offset_ns: int, facts: Any
) -> dict[str, list[tuple[float, float | None]]]:
    """The cap of each address over time, as steps; None from where there is none."""
    caps: dict[str, list[tuple[float, float | None]]] = {}
    for ip in ips:
        steps: list[tuple[float, float | None]] = []
        for number, period in enumerate(timeline.periods):
            cap = timeline.allowed(number, 0, "ip", ip)
            at = max(facts["first"], (period.start_ns + offset_ns) / 1e9)
            steps.append((at, float(cap) if cap < min(UNLIMITED, 2**31 - 1) else None))
        if any(cap is not None for _, cap in steps):
            caps[ip] = [*steps, (facts["last"], steps[-1][1])]
    return caps
