"""Did every home keep its books, and every shard to what it was granted? Done again from each move of tokens.

B1  A grant leaves a home within the cap of its version: what is out to other shards, plus its own open connections.
B2  A shard that is not the home has no more open than it was granted and has not given back, at each admission, and whenever
    something has come back: a home notes grants before, and returns after they have been there.

What a shard reports is in use before its home knows. So B2 is only asked of an admission when the pool has had a cap in each
version since the last that all shards acknowledged: no report of a cap that appeared is on its way then. A home that starts
anew is reported to before it grants: until its first grant or report, what the home before it granted counts. The pool that
a connection may be forced into (KIP-402, max.connections beside an inter-broker listener) is left out, and so are brokers of
which any event is missing.

The work is one sort of the moves and connections of each pool and shard, in the JVM, which spills.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, Check
from turnstile.pipeline.events import sweep
from turnstile.pipeline.events.journal_events import Unreadable
from turnstile.pipeline.events.sequence import Gap
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import UNLIMITED, Timeline

GRANTED, USED = "granted_within_cap", "used_within_grants"
SENTENCE = {
    GRANTED: "every grant was within the cap that its home knew",
    USED: "no shard had more open than it was granted",
}
_MOVED = "pool string, `to` int, `from` int, tokens long, reported boolean, lost map<string,long>"  # a move's detail, by kind
_KEYS: dict[str, Callable[[], Column]] = {
    "broker": lambda: F.lit("broker"),
    "listener": lambda: F.concat(F.lit("listener:"), "listener"),
    "ip": lambda: F.concat(F.lit("ip:"), "ip"),
}
_NAMES = ("check", "broker", "pool", "shard", "at_ns", "open", "tokens", "allowed", "version", "sure_ns")
BEYOND = (
    "check string, broker int, pool string, shard int, at_ns long, open long, tokens long, allowed long, version long, "
    "sure_ns long"
)


def checks(
    events: DataFrame,
    held: DataFrame,
    timeline: Timeline,
    found: Survey,
    missing: Sequence[Gap],
    unreadable: Sequence[Unreadable],
) -> list[Check]:
    """Both checks. `held`: as audit.intervals has them."""
    kinds = [kind for kind in sweep.KINDS if timeline.any_limit(kind) and not (kind == "broker" and timeline.protected)]
    shards = _whole(found, missing, unreadable)
    moved = moves(events).persist(StorageLevel.MEMORY_AND_DISK)  # what takes time is to parse it
    homes = _homes(moved, shards) if kinds and shards and found.grants else {}
    if not homes:
        moved.unpersist()
        return [Check(name, HELD, "no moves of tokens to judge", []) for name in (GRANTED, USED)]
    over = beyond(moved, held, timeline, homes, kinds).persist()
    counts: dict[str, Counter[int]] = {GRANTED: Counter(), USED: Counter()}
    for row in over.groupBy("check", "broker").count().collect():
        counts[row["check"]][row["broker"]] = row["count"]
    made = [_check(name, over, counts[name]) for name in (GRANTED, USED)]
    over.unpersist()
    moved.unpersist()
    return made


def _check(name: str, over: DataFrame, counts: Counter[int]) -> Check:
    if not counts:
        return Check(name, HELD, SENTENCE[name], [])
    rows = over.where(F.col("check") == name).drop("check", "sure_ns").orderBy("at_ns", "broker", "pool", "shard")
    shown = [row.asDict() for row in rows.limit(sweep.SHOWN).collect()]
    first = shown[0]
    where = f"{counts.total()} times beyond; first {first['pool']} of broker {first['broker']}"
    said = (
        f"its home {first['shard']} had {first['tokens']} granted to others and {first['open']} open, "
        f"{first['allowed']} allowed"
        if name == GRANTED
        else f"shard {first['shard']} had {first['open']} open and {first['tokens']} tokens"
    )
    return Check(name, EXCEEDED, f"{where}: {said}, at mono_ns {first['at_ns']}", shown, counts)


def _whole(found: Survey, missing: Sequence[Gap], unreadable: Sequence[Unreadable]) -> dict[int, int]:
    """Broker -> how many shards it has, of brokers of which no event is known to be missing."""
    shards: dict[int, set[int]] = {}
    for each in found.processes:
        shards.setdefault(each.broker, set()).add(each.shard)
    unsure = {gap.broker for gap in missing} | {part.broker for part in unreadable}
    # Of a process that is said to have died there are events, but if they were deleted.
    unsure |= {place[0] for place in found.lost.keys() - {each[:3] for each in found.processes}}
    if None in unsure:
        return {}
    return {
        broker: len(seen)
        for broker, seen in shards.items()
        if broker >= 0 and broker not in unsure and len(seen) == max(seen) + 1 > 1
    }


def moves(events: DataFrame) -> DataFrame:
    """broker, home, epoch (of the home), at_ns, version, pool, peer, tokens (+ out, - back), kind: grant, report, return, lost.

    One row per event and pool, of pools of connections.
    """
    is_grant = F.col("kind") == "grant"
    mine = events.where(
        F.col("kind").isin("grant", "reclaim") & F.col("detail").isNotNull() & ~F.col("detail").contains('"rate:')
    ).withColumn("told", F.from_json("detail", _MOVED))
    one = F.array(F.struct(F.col("told.pool").alias("key"), F.col("told.tokens").alias("value")))
    each = mine.withColumn("each", F.explode(F.coalesce(F.map_entries("told.lost"), one)))
    kind = (
        F.when(is_grant, F.when(F.col("told.reported"), "report").otherwise("grant"))
        .when(F.col("told.lost").isNotNull(), "lost")
        .otherwise("return")
    )
    return each.select(
        "broker",
        F.col("shard").alias("home"),
        "epoch",
        F.col("mono_ns").alias("at_ns"),
        "version",
        F.col("each.key").alias("pool"),
        F.coalesce("told.to", "told.from").alias("peer"),
        F.when(is_grant, F.col("each.value")).otherwise(-F.col("each.value")).alias("tokens"),
        kind.alias("kind"),
    ).where(F.col("pool").isNotNull() & F.col("peer").isNotNull() & F.col("tokens").isNotNull())


def _homes(moved: DataFrame, shards: Mapping[int, int]) -> dict[int, int]:
    """Those of `shards` that have moves, all by the homes that so many shards have: an event of each shard was seen."""
    mine = moved.where(F.col("broker").isin(*shards))
    rows = mine.groupBy("broker").agg(F.bool_and(F.col("home") == _home(shards)).alias("is_all")).collect()
    return {row["broker"]: shards[row["broker"]] for row in rows if row["is_all"]}


def _home(shards: Mapping[int, int]) -> Column:
    """The home of `pool`, as shards/tokens/homes.py has it."""
    of_broker = F.create_map(*(F.lit(each) for pair in shards.items() for each in pair))
    return F.pmod(F.crc32(F.col("pool").cast("binary")), of_broker[F.col("broker")]).cast("int")


def beyond(
    moved: DataFrame, held: DataFrame, timeline: Timeline, homes: Mapping[int, int], kinds: Collection[str]
) -> DataFrame:
    """BEYOND: what B1 and B2 don't allow. `homes`: how many shards each broker has that is judged."""
    steps = _steps(moved, held, homes, kinds)
    place = Window.partitionBy("broker", "pool", "shard").orderBy("at_ns", "rank")
    before = place.rowsBetween(Window.unboundedPreceding, -1)
    until = place.rowsBetween(Window.unboundedPreceding, 0)
    # A home that starts anew, and a shard that does, begin with nothing: from the first grant or report on.
    anew = F.col("begins") & (
        ~F.last("epoch", True).over(before).eqNullSafe(F.col("epoch")) | F.last("is_lost", True).over(before)
    )
    is_admission = F.col("change") > 0
    summed = steps.withColumns(
        {
            "is_anew": anew,
            "sum": F.sum("tokens").over(until),
            "open": F.sum("change").over(until),
            "sure_ns": F.last(F.when(is_admission, F.col("at_ns")), True).over(until),
            "under": F.last(F.when(is_admission, F.col("version")), True).over(until),
        }
    )
    base = F.last(F.when(F.col("is_anew"), F.col("sum") - F.col("tokens")), True).over(until)
    booked = summed.withColumn("tokens", F.col("sum") - F.coalesce(base, F.lit(0)))
    is_grant = F.col("is_own") & (F.col("kind") == "grant")
    is_use = ~F.col("is_own") & (is_admission | (F.col("kind") == "return")) & (F.col("open") > F.col("tokens"))
    asked = booked.where(is_grant | is_use).select(
        F.when(is_grant, GRANTED).otherwise(USED).alias("check"),
        "broker",
        "pool",
        "shard",
        "at_ns",
        "open",
        "tokens",
        F.lit(None).cast("long").alias("allowed"),
        F.when(is_grant, F.col("version")).otherwise(F.col("under")).alias("version"),
        "sure_ns",
    )
    return asked.mapInArrow(_judge(timeline), BEYOND)


def _steps(moved: DataFrame, held: DataFrame, homes: Mapping[int, int], kinds: Iterable[str]) -> DataFrame:
    """Moves and connections by pool and shard: broker, pool, shard, is_own (the pool is at home there), at_ns, rank, epoch (of
    the home, of moves), kind, begins, is_lost, tokens, change, version.

    `rank` orders what happens at one instant so that less is out: returns and closes come before grants at a home, grants
    before admissions and those before returns elsewhere.
    """
    kind = F.col("kind")
    mine = moved.where(F.col("broker").isin(*homes))
    begins = kind.isin("grant", "report")
    common = ("broker", "pool")
    at_home = mine.select(
        *common,
        F.col("home").alias("shard"),
        F.lit(True).alias("is_own"),
        "at_ns",
        F.when(begins, 1).otherwise(0).alias("rank"),
        "epoch",
        "kind",
        F.lit(True).alias("begins"),
        F.lit(False).alias("is_lost"),
        F.when(F.col("peer") == F.col("home"), F.lit(0)).otherwise(F.col("tokens")).alias("tokens"),
        F.lit(0).alias("change"),
        "version",
    )
    elsewhere = mine.where(F.col("peer") != F.col("home")).select(
        *common,
        F.col("peer").alias("shard"),
        F.lit(False).alias("is_own"),
        "at_ns",
        F.when(begins, 1).otherwise(3).alias("rank"),
        "epoch",
        "kind",
        begins.alias("begins"),
        (kind == "lost").alias("is_lost"),
        # What a dead shard had counts until its successor is granted something: its last events may come after this.
        F.when(kind == "lost", F.lit(0)).otherwise(F.col("tokens")).alias("tokens"),
        F.lit(0).alias("change"),
        "version",
    )
    opens = F.struct(F.col("start_ns").alias("at_ns"), F.lit(1).alias("change"))
    closes = F.when(F.col("end_ns").isNotNull(), F.struct(F.col("end_ns").alias("at_ns"), F.lit(-1).alias("change")))
    pools = F.array_compact(F.array(*(_KEYS[kind]() for kind in kinds)))
    opened = (
        held.where(F.col("broker").isin(*homes) & (F.col("end_ns").isNull() | (F.col("end_ns") > F.col("start_ns"))))
        .withColumn("step", F.explode(F.array_compact(F.array(opens, closes))))
        .select("broker", "shard", "version", F.explode(pools).alias("pool"), "step.at_ns", "step.change")
    )
    connections = opened.select(
        *common,
        "shard",
        (F.col("shard") == _home(homes)).alias("is_own"),
        "at_ns",
        F.when(F.col("change") > 0, 2).otherwise(0).alias("rank"),
        F.lit(None).cast("long").alias("epoch"),
        F.lit("").alias("kind"),
        F.lit(False).alias("begins"),
        F.lit(None).cast("boolean").alias("is_lost"),
        F.lit(0).cast("long").alias("tokens"),
        "change",
        "version",
    )
    return reduce(DataFrame.unionByName, [at_home, elsewhere, connections])


def _judge(timeline: Timeline) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Of the rows of BEYOND, those that are: B1 by the cap of the version, B2 unless something may be on its way."""
    is_protected = bool(timeline.protected)
    kinds = {"broker": pyarrow.int32(), "shard": pyarrow.int32(), "check": pyarrow.string(), "pool": pyarrow.string()}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.int64())) for name in _NAMES])

    def is_beyond(row: dict[str, Any]) -> bool:
        kind, _, key = row["pool"].partition(":")
        if kind == "broker" and is_protected:
            return False
        if row["check"] == GRANTED:
            row["allowed"] = timeline.limits(row["version"], row["broker"]).cap(kind, key)
            return bool(row["tokens"] + row["open"] > row["allowed"])
        row["allowed"] = row["tokens"]
        if row["tokens"] < 0:
            return True
        versions = timeline.unsettled(row["sure_ns"], row["version"])
        caps = (timeline.limits(version, row["broker"]).cap(kind, key) for version in versions)
        return bool(versions) and all(cap < UNLIMITED for cap in caps)

    def judge(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield pyarrow.RecordBatch.from_pylist([row for row in batch.to_pylist() if is_beyond(row)], schema)

    return judge
