"""How many connections of a pool are open, at every admission, over a whole journal, without a hot key doing all the work.

Counting is a prefix sum, so it splits by pool and in time. Addresses are spread over tasks by their hash, each whole. What
would be too much for one task, a broker, a listener or an address with very many connections, is cut into slices of time
of about equal size: what such a pool carries into a slice is the sum of what happened in it before, a handful of numbers.
In a task every pool is counted with numpy in one pass. One address may have every event of the journal and still be
counted by all cores.

W1  at one instant closes count before opens, as a plan does
W2  the count at an admission includes itself
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.events.timeline import Timeline

Array = numpy.ndarray[Any, Any]
SLICE_ROWS = 1_000_000
SAMPLE_PER_SLICE = 2000
CELLS = 4096
SHOWN = 10
KINDS = ("broker", "listener", "ip")
CHANGES = "slice int, broker int, listener string, ip string, at_ns long, change int, version long, conn long"
_CARRY = pyarrow.schema(
    [("kind", pyarrow.string()), ("broker", pyarrow.int32()), ("pool", pyarrow.string()), ("carry", pyarrow.int64())]
)
EXCESS = pyarrow.schema(
    [
        ("slice", pyarrow.int32()),
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("at_ns", "open", "allowed", "version", "conn", "excess")),
    ]
)


def changes(intervals: DataFrame) -> DataFrame:
    """Intervals (broker, listener, ip, start_ns, end_ns or null, version, conn) -> one row per open (+1) and close (-1)."""
    opened = F.struct(F.col("start_ns").alias("at_ns"), F.lit(1).alias("change"))
    closed = F.when(F.col("end_ns").isNotNull(), F.struct(F.col("end_ns").alias("at_ns"), F.lit(-1).alias("change")))
    rows = intervals.where(F.col("end_ns").isNull() | (F.col("end_ns") > F.col("start_ns")))
    exploded = rows.withColumn("step", F.explode(F.array_compact(F.array(opened, closed))))
    return exploded.select("broker", "listener", "ip", "step.at_ns", "step.change", "version", "conn")


def sliced(steps: DataFrame, *, rows: int, slice_rows: int = SLICE_ROWS) -> tuple[DataFrame, int]:
    """The same with `slice`, a number that rises with at_ns, in slices of about equal size; and how many slices.

    `is_hot`, if there is such an address: whether it is one that has a good part of a slice's rows.
    """
    count = max(1, rows // slice_rows)
    if count == 1:
        return steps.withColumn("slice", F.lit(0)), 1
    share = min(1.0, count * SAMPLE_PER_SLICE / rows)
    sample = steps.sample(share, 1).select("at_ns", "broker", "ip").persist()
    inner = [number / count for number in range(1, count)]
    bounds = sorted({int(bound) for bound in sample.approxQuantile("at_ns", inner, 0.2 / count)})
    name = F.concat_ws("/", "broker", "ip")
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
        carried[number] = pyarrow.Table.from_pylist(rows, _CARRY)
        open_now.update(by_slice[number])
    return carried


class PoolCounts(NamedTuple):
    """One kind of pool in one slice: rows pool after pool, each in order of time.

    order    the row of `steps` that each is
    pools    (broker, key) of each pool's number; the key of a broker's own pool is ""
    codes    the number of each row's pool
    open     how many of that pool are open at each row, itself included
    """

    steps: pyarrow.Table
    kind: str
    order: Array
    pools: list[tuple[int, str]]
    codes: Array
    at_ns: Array
    change: Array
    open: Array


Judge = Callable[[PoolCounts], pyarrow.Table]
"""What is found among the rows of one kind of pool in one slice."""


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
        carry = carried.get(number, _CARRY.empty_table())
        found = []
        if number < 0:
            found.append(judge(counts(rows, carry, "ip", closes_first=closes_first)))
        else:
            found += [judge(counts(rows, carry, kind, closes_first=closes_first)) for kind in cut]
            if has_hot and "ip" in kinds and (hot := rows.filter(rows["is_hot"])).num_rows:
                found.append(judge(counts(hot, carry, "ip", closes_first=closes_first)))
        return pyarrow.concat_tables([schema.empty_table(), *found])

    return tasks.groupBy("slice").applyInArrow(check, ddl(schema))


def excesses(steps: DataFrame, slices: int, timeline: Timeline, kinds: Sequence[str] = KINDS) -> DataFrame:
    """EXCESS: the first SHOWN admissions per slice, kind of pool and broker at which more were open than was allowed.

    `excess` is how many such admissions of that broker the slice has in all.
    """
    return judged(steps, slices, kinds, partial(beyond, timeline), EXCESS, closes_first=True)


def counts(steps: pyarrow.Table, carry: pyarrow.Table, kind: str, *, closes_first: bool = True) -> PoolCounts:
    """`steps` counted by their pool of a kind; `carry`: what each pool brings into the slice (_CARRY)."""
    codes, pools = _codes(steps, kind)
    at_ns = steps["at_ns"].to_numpy()
    change = steps["change"].to_numpy().astype("i8")
    order = numpy.lexsort((change if closes_first else -change, at_ns, codes))
    codes, at_ns, change = codes[order], at_ns[order], change[order]
    total = numpy.cumsum(change)
    is_first = numpy.concatenate(([True], codes[1:] != codes[:-1]))
    starts = numpy.flatnonzero(is_first)
    base = (total - change)[starts] - _carries(carry, kind, pools)[codes[starts]]
    count = total - numpy.repeat(base, numpy.diff(numpy.append(starts, len(codes))))
    return PoolCounts(steps, kind, order, pools, codes, at_ns, change, count)


def beyond(timeline: Timeline, counted: PoolCounts) -> pyarrow.Table:
    """EXCESS of one kind of pool in one slice."""
    steps, kind, order, pools, codes, at_ns, change, count = counted
    opened = numpy.flatnonzero(change > 0)
    # What the broker pool allows depends on the listener: one between brokers is exempt from max.connections.
    asked, names = _codes(steps, "listener") if kind == "broker" else (None, pools)
    asked = codes if asked is None else asked[order]
    allowed = numpy.full(len(codes), -1, dtype="i8")
    allowed[opened] = _allowed(timeline, kind, names, asked[opened], at_ns[opened])
    over = opened[count[opened] > allowed[opened]]
    if not len(over):
        return EXCESS.empty_table()
    brokers = numpy.array([broker for broker, _ in pools])[codes[over]]
    by_broker = numpy.lexsort((at_ns[over], brokers))
    over, brokers = over[by_broker], brokers[by_broker]
    starts = numpy.flatnonzero(numpy.concatenate(([True], brokers[1:] != brokers[:-1])))
    sizes = numpy.diff(numpy.append(starts, len(over)))
    is_first = numpy.arange(len(over)) - numpy.repeat(starts, sizes) < SHOWN
    first, excess = over[is_first], numpy.repeat(sizes, sizes)[is_first]
    picked = steps.take(pyarrow.array(order[first]))
    columns = {
        "slice": picked["slice"],
        "kind": pyarrow.array([kind] * len(first)),
        "broker": picked["broker"],
        "pool": pyarrow.array([pools[code][1] for code in codes[first]]),
        "at_ns": pyarrow.array(at_ns[first]),
        "open": pyarrow.array(count[first]),
        "allowed": pyarrow.array(allowed[first]),
        "version": picked["version"],
        "conn": picked["conn"],
        "excess": pyarrow.array(excess),
    }
    return pyarrow.table(columns).cast(EXCESS)


def _codes(steps: pyarrow.Table, kind: str) -> tuple[Array, list[tuple[int, str]]]:
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


def _carries(carry: pyarrow.Table, kind: str, pools: list[tuple[int, str]]) -> Array:
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


def _allowed(timeline: Timeline, kind: str, pools: list[tuple[int, str]], codes: Array, at_ns: Array) -> Array:
    """The cap allowed at each row; limits are asked once per (pool, period) that occurs."""
    starts = numpy.array([period.start_ns for period in timeline.periods], dtype="i8")
    periods = numpy.maximum(numpy.searchsorted(starts, at_ns, side="right") - 1, 0)
    width = max(1, len(starts))
    both, inverse = numpy.unique(codes.astype("i8") * width + periods, return_inverse=True)
    caps = [
        timeline.allowed(int(each % width), pools[each // width][0], kind, pools[each // width][1]) for each in both
    ]
    return numpy.array(caps, dtype="i8")[inverse]


def ddl(schema: pyarrow.Schema) -> str:
    """The same as Spark wants it."""
    names = {"int32": "int", "int64": "long", "double": "double", "string": "string"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in schema)
