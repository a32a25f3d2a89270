"""How many connections of a pool are open, at every admission, over a whole journal, without a hot key doing all the work.

Counting is a prefix sum, so it splits in time: the journal is cut into slices of about equal size; what a pool carries
into a slice is the sum of what happened in it before, a small table; inside a slice every pool is counted with numpy in
one pass. One IP or the broker pool may have every event of the journal and still be counted by all cores.

W1  at one instant closes count before opens, as a plan does
W2  the count at an admission includes itself
"""

from collections.abc import Sequence

import numpy
import pyarrow
import pyarrow.compute
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.timeline import Timeline

SLICE_ROWS = 400_000
SHOWN = 10
KINDS = ("broker", "listener", "ip")
CHANGES = "slice int, broker int, listener string, ip string, at_ns long, change int, version long, conn long"
EXCESS = (
    "slice int, kind string, broker int, pool string, at_ns long, open long, allowed long, version long, conn long, "
    "excess long"
)


def changes(intervals: DataFrame) -> DataFrame:
    """Intervals (broker, listener, ip, start_ns, end_ns or null, version, conn) -> one row per open (+1) and close (-1)."""
    opened = F.struct(F.col("start_ns").alias("at_ns"), F.lit(1).alias("change"))
    closed = F.when(F.col("end_ns").isNotNull(), F.struct(F.col("end_ns").alias("at_ns"), F.lit(-1).alias("change")))
    rows = intervals.where(F.col("end_ns").isNull() | (F.col("end_ns") > F.col("start_ns")))
    exploded = rows.withColumn("step", F.explode(F.array_compact(F.array(opened, closed))))
    return exploded.select("broker", "listener", "ip", "step.at_ns", "step.change", "version", "conn")


def sliced(steps: DataFrame, *, rows: int, slice_rows: int = SLICE_ROWS) -> tuple[DataFrame, int]:
    """The same with `slice`, a number that rises with at_ns, in slices of about equal size; and how many slices."""
    count = max(1, rows // slice_rows)
    inner = [number / count for number in range(1, count)]
    bounds = sorted(set(steps.approxQuantile("at_ns", inner, 0.2 / count))) if inner else []
    if not bounds:
        return steps.withColumn("slice", F.lit(0)), 1
    # A sorted literal array and a search in it: 400 slices are no chain of 400 comparisons.
    table = F.array(*(F.lit(int(bound)) for bound in bounds))
    place = F.size(F.filter(table, lambda bound: bound <= F.col("at_ns")))
    return steps.withColumn("slice", place).persist(StorageLevel.DISK_ONLY), len(bounds) + 1


def carried(steps: DataFrame) -> DataFrame:
    """slice, kind, broker, pool, carry: how many of a pool are open when a slice begins in which it has events."""
    per_ip = steps.groupBy("slice", "broker", "listener", "ip").agg(F.sum("change").alias("net"))
    pools = [("ip", F.col("ip")), ("listener", F.col("listener")), ("broker", F.lit(""))]
    options = F.array(*(F.struct(F.lit(kind).alias("kind"), key.alias("pool")) for kind, key in pools))
    exploded = per_ip.select("slice", "broker", "net", F.explode(options).alias("of"))
    per_pool = exploded.groupBy("slice", "broker", "of.kind", "of.pool").agg(F.sum("net").alias("net"))
    earlier = Window.partitionBy("kind", "broker", "pool").orderBy("slice").rowsBetween(Window.unboundedPreceding, -1)
    carry = per_pool.withColumn("carry", F.sum("net").over(earlier))
    # Aliased, for these columns meet the ones they come from in a cogroup.
    names = ("slice", "kind", "broker", "pool", "carry")
    return carry.where(F.col("carry") != 0).select(*(F.col(name).alias(name) for name in names))


def excesses(steps: DataFrame, slices: int, timeline: Timeline, kinds: Sequence[str] = KINDS) -> DataFrame:
    """EXCESS: the first SHOWN admissions per slice and kind of pool at which more were open than was allowed.

    `excess` is how many such admissions the slice has in all.
    """

    def check(left: pyarrow.Table, right: pyarrow.Table) -> pyarrow.Table:
        found = [_check_kind(left, right, kind, timeline) for kind in kinds] if left.num_rows else []
        return pyarrow.concat_tables([_excess_schema().empty_table(), *found])

    if slices == 1:  # nothing is carried anywhere
        none = pyarrow.table({"kind": pyarrow.array([], pyarrow.string())})
        return steps.groupBy("slice").applyInArrow(lambda left: check(left, none), EXCESS)
    return steps.groupBy("slice").cogroup(carried(steps).groupBy("slice")).applyInArrow(check, EXCESS)


def _check_kind(steps: pyarrow.Table, carry: pyarrow.Table, kind: str, timeline: Timeline) -> pyarrow.Table:
    """The excesses of one kind of pool in one slice."""
    codes, pools = _codes(steps, kind)
    at_ns = steps["at_ns"].to_numpy()
    change = steps["change"].to_numpy().astype("i8")
    order = numpy.lexsort((change, at_ns, codes))
    codes, at_ns, change = codes[order], at_ns[order], change[order]
    total = numpy.cumsum(change)
    is_first = numpy.concatenate(([True], codes[1:] != codes[:-1]))
    starts = numpy.flatnonzero(is_first)
    base = (total - change)[starts] - _carries(carry, kind, pools)[codes[starts]]
    count = total - numpy.repeat(base, numpy.diff(numpy.append(starts, len(codes))))
    opened = numpy.flatnonzero(change > 0)
    # What the broker pool allows depends on the listener: one between brokers is exempt from max.connections.
    asked, names = _codes(steps, "listener") if kind == "broker" else (None, pools)
    asked = codes if asked is None else asked[order]
    allowed = numpy.full(len(codes), -1, dtype="i8")
    allowed[opened] = _allowed(timeline, kind, names, asked[opened], at_ns[opened])
    over = opened[count[opened] > allowed[opened]]
    if not len(over):
        return _excess_schema().empty_table()
    first = over[numpy.argsort(at_ns[over], kind="stable")[:SHOWN]]
    picked = steps.take(pyarrow.array(order[first]))
    return pyarrow.Table.from_arrays(
        [
            picked["slice"].combine_chunks().cast(pyarrow.int32()),
            pyarrow.array([kind] * len(first)),
            picked["broker"].combine_chunks().cast(pyarrow.int32()),
            pyarrow.array([pools[code][1] for code in codes[first]]),
            pyarrow.array(at_ns[first]),
            pyarrow.array(count[first]),
            pyarrow.array(allowed[first]),
            picked["version"].combine_chunks(),
            picked["conn"].combine_chunks(),
            pyarrow.array(numpy.full(len(first), len(over), dtype="i8")),
        ],
        schema=_excess_schema(),
    )


def _codes(steps: pyarrow.Table, kind: str) -> tuple[numpy.ndarray, list[tuple[int, str]]]:
    """A number per row for its pool, and the (broker, key) of each number."""
    broker = steps["broker"].to_numpy()
    if kind == "broker":
        brokers, codes = numpy.unique(broker, return_inverse=True)
        return codes, [(int(number), "") for number in brokers]
    keys = pyarrow.compute.dictionary_encode(pyarrow.compute.fill_null(steps[kind], "")).combine_chunks()
    indices = keys.indices.to_numpy()
    names = keys.dictionary.to_pylist()
    both, codes = numpy.unique(broker.astype("i8") * len(names) + indices, return_inverse=True)
    return codes, [(int(number) // len(names), names[int(number) % len(names)]) for number in both]


def _carries(carry: pyarrow.Table, kind: str, pools: list[tuple[int, str]]) -> numpy.ndarray:
    """What each pool carries into this slice, by number."""
    if not carry.num_rows:
        return numpy.zeros(len(pools), dtype="i8")
    mine = carry.filter(pyarrow.compute.equal(carry["kind"], kind))
    table = {
        (broker, pool or ""): amount
        for broker, pool, amount in zip(
            mine["broker"].to_pylist(), mine["pool"].to_pylist(), mine["carry"].to_pylist(), strict=True
        )
    }
    return numpy.array([table.get(pool, 0) for pool in pools], dtype="i8")


def _allowed(
    timeline: Timeline, kind: str, pools: list[tuple[int, str]], codes: numpy.ndarray, at_ns: numpy.ndarray
) -> numpy.ndarray:
    """The cap allowed at each row; limits are asked once per (pool, period) that occurs."""
    starts = numpy.array([period.start_ns for period in timeline.periods], dtype="i8")
    periods = numpy.maximum(numpy.searchsorted(starts, at_ns, side="right") - 1, 0)
    width = max(1, len(starts))
    both, inverse = numpy.unique(codes.astype("i8") * width + periods, return_inverse=True)
    caps = [
        timeline.allowed(int(each % width), pools[each // width][0], kind, pools[each // width][1]) for each in both
    ]
    return numpy.array(caps, dtype="i8")[inverse]


def _excess_schema() -> pyarrow.Schema:
    names = {"slice": pyarrow.int32(), "kind": pyarrow.string(), "broker": pyarrow.int32(), "pool": pyarrow.string()}
    numbers = ("at_ns", "open", "allowed", "version", "conn", "excess")
    return pyarrow.schema([*names.items(), *((name, pyarrow.int64()) for name in numbers)])
