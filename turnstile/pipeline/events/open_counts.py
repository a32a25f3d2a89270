"""The open connections of a pool, at every admission, over a whole journal, without a hot key doing all the work.

Counting is a prefix sum, so it is cut in slices of time: what a pool carries into a slice is the sum of what happened in it
before (`nets`, `carried`), a number. In a slice every pool is counted with numpy in one pass. One address may have every event
of the journal and still be counted by all cores.

closes_count_before_opens  at one instant closes count before opens, as a plan does
admission_counts_itself  the count at an admission includes itself
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from shards.limits.caps import CLUSTER
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.events.timeline import Timeline

SHOWN = 10
NEVER = (1 << 63) - 1
KINDS = ("broker", "listener", "ip")
ONE_A_BROKER = ("broker", "ssl", CLUSTER)
"""Kinds of which a broker has one pool. That of TLS (ssl_connections.py) is swept over the connections of its listeners alone, that
of the cluster over those of all brokers as of one (whole_cluster.py)."""
STEPS = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("listener", pyarrow.string()),
        ("ip", pyarrow.string()),
        ("at_ns", pyarrow.int64()),
        ("change", pyarrow.int32()),
        ("version", pyarrow.int64()),
        ("conn", pyarrow.int64()),
    ]
)
"""A connection opens (change 1) or closes (-1). Further columns may follow."""
CARRY = pyarrow.schema(
    [("kind", pyarrow.string()), ("broker", pyarrow.int32()), ("pool", pyarrow.string()), ("carry", pyarrow.int64())]
)
EXCESS = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("at_ns", "open", "allowed", "version", "conn", "excess")),
    ]
)


def steps(connections: pyarrow.Table) -> pyarrow.Table:
    """STEPS of connections.CONNECTIONS, or of any table with broker, listener, ip, version, conn, admitted_ns and end_ns."""
    start_ns = arrays.numbers(connections, "admitted_ns")
    is_open, end_ns = ~arrays.present(connections, "end_ns"), arrays.numbers(connections, "end_ns")
    counted = arrays.present(connections, "admitted_ns") & (is_open | (end_ns > start_ns))
    opens, closes = numpy.flatnonzero(counted), numpy.flatnonzero(counted & ~is_open)
    places = pyarrow.array(numpy.concatenate([opens, closes]))
    return arrays.table_of(
        STEPS,
        **{name: connections[name].take(places) for name in ("broker", "listener", "ip", "version", "conn")},
        at_ns=numpy.concatenate([start_ns[opens], end_ns[closes]]),
        change=numpy.concatenate([numpy.ones(len(opens), "i4"), numpy.full(len(closes), -1, "i4")]),
    )


class PoolCounts(NamedTuple):
    """One kind of pool in one slice: rows pool after pool, each in order of time.

    order    the row of `steps` that each is
    pools    (broker, key) of each pool's number; the key of a pool of ONE_A_BROKER is ""
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


def nets(kinds: Sequence[str], steps: pyarrow.Table) -> pyarrow.Table:
    """CARRY: what a slice adds to the pools of these kinds, where it is not nothing."""
    change = arrays.numbers(steps, "change").astype("i8")
    tables = [CARRY.empty_table()]
    for kind in kinds:
        codes, pools = _codes(steps, kind)
        net = numpy.zeros(len(pools), "i8")
        numpy.add.at(net, codes, change)
        changed = numpy.flatnonzero(net).tolist()
        brokers, names = [pools[place][0] for place in changed], [pools[place][1] for place in changed]
        tables.append(
            arrays.table_of(CARRY, kind=[kind] * len(changed), broker=brokers, pool=names, carry=net[changed])
        )
    return pyarrow.concat_tables(tables)


def carried(slices: Sequence[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """CARRY: what each pool brings into each slice, in turn. `slices`: nets of each, in order of time."""
    every = pyarrow.concat_tables([CARRY.empty_table(), *(each.cast(CARRY) for each in slices)])
    (kind, _), (pool, _) = arrays.codes(every, "kind"), arrays.codes(every, "pool")
    order, starts = arrays.grouped(kind, arrays.numbers(every, "broker"), pool)
    key = numpy.empty(len(order), "i8")
    key[order] = arrays.group_of(starts, len(order))
    names, net = every.take(pyarrow.array(order[starts])), arrays.numbers(every, "carry")
    total = numpy.zeros(len(starts), "i8")
    first = 0
    for each in slices:
        there = numpy.flatnonzero(total)
        chosen = names.take(pyarrow.array(there))
        yield chosen.set_column(CARRY.get_field_index("carry"), "carry", pyarrow.array(total[there]))
        numpy.add.at(total, key[first : first + each.num_rows], net[first : first + each.num_rows])
        first += each.num_rows


Judge = Callable[[PoolCounts], pyarrow.Table]
"""The findings among the rows of one kind of pool in one slice."""


def judged(
    steps: pyarrow.Table,
    carry: pyarrow.Table,
    kinds: Sequence[str],
    judge: Judge,
    schema: pyarrow.Schema,
    *,
    closes_first: bool,
) -> pyarrow.Table:
    """The findings of `judge` in pools of these kinds in one slice."""
    if not steps.num_rows:
        return schema.empty_table()
    found = [judge(counts(steps, carry, kind, closes_first=closes_first)) for kind in kinds]
    return pyarrow.concat_tables([schema.empty_table(), *found])


def counts(steps: pyarrow.Table, carry: pyarrow.Table, kind: str, *, closes_first: bool = True) -> PoolCounts:
    """`steps` counted by their pool of a kind; `carry`: what each pool brings into the slice (CARRY)."""
    codes, pools = _codes(steps, kind)
    at_ns = steps["at_ns"].to_numpy()
    change = steps["change"].to_numpy().astype("i8")
    order = numpy.lexsort((change if closes_first else -change, at_ns, codes))
    codes, at_ns, change = codes[order], at_ns[order], change[order]
    starts = arrays.begins(codes)
    count = arrays.running(change, starts) + _carries(carry, kind, pools)[codes]
    return PoolCounts(steps, kind, order, pools, codes, at_ns, change, count)


def over_the_cap(timeline: Timeline, counted: PoolCounts) -> pyarrow.Table:
    """EXCESS of one kind of pool in one slice: the first SHOWN admissions of each broker at which more were open than was
    allowed. `excess`: how many such admissions of that broker there are, beside the first, 0 beside the others."""
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
    brokers = numpy.array([broker for broker, _ in pools])[codes]
    first, excess = arrays.first_of_each(over, brokers, at_ns, SHOWN)
    picked = steps.take(pyarrow.array(order[first]))
    columns = {
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


class _PoolCodes(NamedTuple):
    """A number per row for its pool, and the (broker, key) of each number."""

    of_rows: Array
    pools: list[tuple[int, str]]


def _codes(steps: pyarrow.Table, kind: str) -> _PoolCodes:
    broker = steps["broker"].to_numpy()
    if kind in ONE_A_BROKER:
        brokers, codes = numpy.unique(broker, return_inverse=True)
        return _PoolCodes(codes, [(int(number), "") for number in brokers])
    indices, names = arrays.codes(steps, kind)
    both, codes = numpy.unique(broker.astype("i8") * len(names) + indices, return_inverse=True)
    return _PoolCodes(codes, [(int(number) // len(names), names[int(number) % len(names)] or "") for number in both])


def _carries(carry: pyarrow.Table, kind: str, pools: list[tuple[int, str]]) -> Array:
    """The connections that each pool carries into this slice, by number."""
    own = carry.filter(pyarrow.compute.equal(carry["kind"], kind)) if carry.num_rows else carry
    if not own.num_rows:
        return numpy.zeros(len(pools), dtype="i8")
    wanted = pyarrow.table({"broker": [broker for broker, _ in pools], "pool": [pool for _, pool in pools]})
    both = pyarrow.concat_tables([wanted, own.select(["broker", "pool"]).cast(wanted.schema)])
    pool, words = arrays.codes(both, "pool")
    _, code = numpy.unique(arrays.numbers(both, "broker") * len(words) + pool, return_inverse=True)
    found = numpy.zeros(int(code.max()) + 1, dtype="i8")
    found[code[len(pools) :]] = arrays.numbers(own, "carry")
    brought: Array = found[code[: len(pools)]]
    return brought


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
    """The schema in Spark's notation."""
    names = {"int32": "int", "int64": "long", "double": "double", "string": "string", "bool": "boolean"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in schema)
