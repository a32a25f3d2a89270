"""A sweep (sweep.py) on Spark: cut in slices of time, and addresses by their hash, each slice a task."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.events.sweep import CARRY, Judge, counts, ddl

SLICE_ROWS = 1_000_000
SAMPLE_PER_SLICE = 2000
CELLS = 4096


def changes(intervals: DataFrame) -> DataFrame:
    """Intervals (broker, listener, ip, start_ns, end_ns or null, version, conn) -> one row per open (+1) and close (-1)."""
    opened = F.struct(F.col("start_ns").alias("at_ns"), F.lit(1).alias("change"))
    closed = F.when(F.col("end_ns").isNotNull(), F.struct(F.col("end_ns").alias("at_ns"), F.lit(-1).alias("change")))
    rows = intervals.where(F.col("end_ns").isNull() | (F.col("end_ns") > F.col("start_ns")))
    exploded = rows.withColumn("step", F.explode(F.array_compact(F.array(opened, closed))))
    return exploded.select("broker", "listener", "ip", "step.at_ns", "step.change", "version", "conn")


def sliced(steps: DataFrame, *, rows: int, keys: Sequence[str] = ("broker", "ip")) -> tuple[DataFrame, int]:
    """The same with `slice`, a number that rises with at_ns, in slices of about equal size; and how many slices.

    `is_hot`, if there is such a key (an address): whether it is one that has a good part of a slice's rows.
    """
    count = max(1, rows // SLICE_ROWS)
    if count == 1:
        return steps.withColumn("slice", F.lit(0)), 1
    share = min(1.0, count * SAMPLE_PER_SLICE / rows)
    sample = steps.sample(share, 1).select("at_ns", *keys).persist()
    inner = [number / count for number in range(1, count)]
    bounds = sorted({int(bound) for bound in sample.approxQuantile("at_ns", inner, 0.2 / count)})
    name = F.concat_ws("/", *keys)
    often = sample.groupBy(name.alias("name")).count().where(F.col("count") > share * rows / count / 4)
    hot = [row["name"] for row in often.collect()]
    sample.unpersist()
    placed = steps.withColumn("slice", _place(F.col("at_ns"), bounds))
    return (placed.withColumn("is_hot", name.isin(hot)) if hot else placed), len(bounds) + 1


def _place(at_ns: Column, bounds: Sequence[int]) -> Column:
    """How many of the sorted bounds are at or before an instant, at the same cost however many there are.

    A grid of equal cells says how many bounds are before a cell; only those within the cell are compared.
    """
    if not bounds:
        return F.lit(0)
    low = bounds[0]
    width = (bounds[-1] - low) // CELLS + 1
    edges = [low + cell * width for cell in range(CELLS + 1)]
    before = [bisect_right(bounds, edge - 1) for edge in edges]
    firsts = F.array(*(F.lit(each) for each in before[:-1]))
    within = F.array(*(F.lit(following - each) for each, following in pairwise(before)))
    table = F.array(*(F.lit(bound) for bound in bounds))
    whole = F.call_function("div", F.greatest(at_ns - low, F.lit(0)), F.lit(width))  # in longs: a double has 53 bits
    cell = F.least(whole, F.lit(CELLS - 1)).cast("int") + 1
    first = F.element_at(firsts, cell)
    near = F.slice(table, first + 1, F.element_at(within, cell))
    return first + F.size(F.filter(near, lambda bound: bound <= at_ns))


def _carried(steps: DataFrame, kinds: Sequence[str]) -> dict[int, pyarrow.Table]:
    """Slice -> kind, broker, pool, carry: how many of a pool that is cut in time are open when the slice begins."""
    has_hot = "ip" in kinds and "is_hot" in steps.columns
    hot = F.when(F.col("is_hot"), F.col("ip")) if has_hot else F.lit(None).cast("string")
    nets = steps.groupBy("slice", "broker", "listener", hot.alias("ip")).agg(F.sum("change").alias("net")).collect()
    by_slice: defaultdict[int, Counter[tuple[str, int, str]]] = defaultdict(Counter)
    for row in nets:
        pools = {"broker": "", "listener": row["listener"] or "", "ip": row["ip"]}
        for kind, pool in pools.items():
            if kind in kinds and pool is not None:
                by_slice[row["slice"]][kind, row["broker"], pool] += row["net"]
    open_now: Counter[tuple[str, int, str]] = Counter()
    carried = {}
    for number in sorted(by_slice):
        rows = [{"kind": kind, "broker": broker, "pool": pool, "carry": count}
                for (kind, broker, pool), count in open_now.items() if count]  # fmt: skip
        carried[number] = pyarrow.Table.from_pylist(rows, CARRY)
        open_now.update(by_slice[number])
    return carried


def judged(
    steps: DataFrame, slices: int, kinds: Sequence[str], judge: Judge, schema: pyarrow.Schema, *, closes_first: bool
) -> DataFrame:
    """All that `judge` finds (columns of `schema`). `steps` as `sliced` makes them, with any further columns.

    Slices below 0 are no time, but a share of the addresses of one broker. `closes_first`: the order at one instant (W1);
    else opens come first, and closes after rows that change nothing.
    """
    has_hot = "is_hot" in steps.columns
    cut = [kind for kind in kinds if kind != "ip" or slices == 1]
    carried: dict[int, pyarrow.Table] = {}
    tasks = steps
    if slices > 1:
        is_hot = F.col("is_hot") if has_hot else F.lit(False)
        of_time = F.col("slice") if cut else F.when(is_hot, F.col("slice"))
        of_address = -1 - F.pmod(F.xxhash64("ip"), F.lit(slices)).cast("int") - slices * F.col("broker")
        both = F.array(of_time, F.when(~is_hot, of_address)) if "ip" in kinds else F.array(of_time)
        tasks = steps.withColumn("slice", F.explode(F.array_compact(both)))
        if cut or has_hot:
            carried = _carried(steps, kinds)

    def check(rows: pyarrow.Table) -> pyarrow.Table:
        number = rows["slice"][0].as_py()
        carry = carried.get(number, CARRY.empty_table())
        found = []
        if number < 0:
            found.append(judge(counts(rows, carry, "ip", closes_first=closes_first)))
        else:
            found += [judge(counts(rows, carry, kind, closes_first=closes_first)) for kind in cut]
            if has_hot and "ip" in kinds and (hot := rows.filter(rows["is_hot"])).num_rows:
                found.append(judge(counts(hot, carry, "ip", closes_first=closes_first)))
        return pyarrow.concat_tables([schema.empty_table(), *found])

    return tasks.groupBy("slice").applyInArrow(check, ddl(schema))
