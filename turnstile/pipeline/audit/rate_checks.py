"""No rate beyond its window: what any Kafka broker with that limit could have admitted bounds what was admitted.

A window of `quota.window.num` x `quota.window.size.seconds` seconds holds at most quota x (num + 1) x size: the
sampled rate divides by no more than that (shards/limits/rate.py, its invariants).
Windows are looked at whole second by whole second, so the work is one count per key and second however many events a key has.

A connection is admitted later than its unit is recorded: by up to a second while another shard is asked, and on a
listener by up to one window, or until there is a slot; a unit of the cluster is recorded before that of the listener. So
the spans looked at are that much shorter than the window; each acceptor (one per shard and listener) may add one per
window, and PARKED with max.connections, for the cluster also with a rate of a listener. A shard that is started again may
have forgotten what it recorded, and a reset cluster has forgotten all of it. Redpanda's bucket holds one second's worth
and refills for the rest, and lets wait for 100 ms.

That is a bound, and no more; rate_unit_checks.py judges units one by one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from shards.limits.caps import CLUSTER
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, Check
from turnstile.pipeline.audit.whole_cluster import broker_text, of_cluster
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

SECOND_NS = 1_000_000_000
SHOWN = 10
PARKED = 64  # connections of a listener that a shard may have accepted when the listener has to wait
_PLACE = [
    ("kind", pyarrow.string()),
    ("broker", pyarrow.int32()),
    ("shard", pyarrow.int32()),
    ("epoch", pyarrow.int64()),
    ("pool", pyarrow.string()),
]
PER_SECOND = pyarrow.schema([*_PLACE, ("second", pyarrow.int64()), ("admitted", pyarrow.int64())])
"""The admissions of a pool in a second; shard and epoch are 0 for a rate that all shards share."""
OVER = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        ("at_ns", pyarrow.int64()),
        ("seconds", pyarrow.int32()),
        ("admitted", pyarrow.int64()),
        ("allowed", pyarrow.int64()),
        ("count", pyarrow.int64()),
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
    RateKind("cluster_rate", CLUSTER, None),
    RateKind("user_rate", "user", "user"),
    RateKind("core_rate", "core", None, per_shard=True),
    RateKind("core_rate_override", "core_ip", "ip", per_shard=True),
)


def checks(events: Rows, timeline: Timeline, seen: Survey, started: Mapping[int, Sequence[int]]) -> list[Check]:
    """A check per kind of rate that was ever limited. `started`: broker -> when its windows were begun anew by a reset."""
    limited = [kind for kind in KINDS if timeline.any_limit(kind.kind, "rate")]
    if not limited:
        return []
    columns = ("broker", "shard", "epoch", "ip", "listener", "mono_ns")
    of_arrivals = [kind for kind in limited if kind.kind != "user"]
    counted = events.of_kinds(("admitted",), columns).each(
        partial(per_second, of_arrivals, timeline.inter_broker), PER_SECOND
    )
    of_logins = [kind for kind in limited if kind.kind == "user"]
    if of_logins:
        logins = events.of_kinds(("authenticated",), (*columns, "user", "reason"))
        counted = counted.and_(logins.each(partial(_logins_per_second, of_logins), PER_SECOND))
    again = restarts(seen)
    again[EVERY_BROKER] = [at_ns for instants in again.values() for at_ns in instants]
    for broker, instants in started.items():
        again.setdefault(broker, []).extend(instants)
    judge = partial(beyond, limited, timeline, _acceptors(seen), again)
    found = counted.by(("broker", "pool"), judge, OVER).table().to_pylist()
    return [_check(kind, [row for row in found if row["kind"] == kind.kind]) for kind in limited]


def _check(kind: RateKind, rows: list[TableRow]) -> Check:
    if not rows:
        return Check(kind.name, HELD, "never more admitted in a window than its rate allows", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("count")
    shown = sorted(rows, key=lambda row: (row["at_ns"], row["broker"], row["pool"]))[:SHOWN]
    first = shown[0]
    detail = (
        f"{first['pool'] or broker_text(first['broker'])}: {first['admitted']} admitted in {first['seconds']} s, "
        f"{first['allowed']} allowed, from mono_ns {first['at_ns']}"
    )
    return Check(kind.name, EXCEEDED, detail, shown, counts)


def restarts(seen: Survey) -> dict[int, list[int]]:
    """Broker -> when a shard of it wrote its first event after an earlier incarnation of that shard."""
    found: dict[int, list[int]] = {}
    known: set[tuple[int, int]] = set()
    for each in seen.processes:  # in order of epoch
        if each[:2] in known:
            found.setdefault(each.broker, []).append(each.first_ns)
        known.add(each[:2])
    return found


def _acceptors(seen: Survey) -> dict[int, int]:
    """Broker -> how many pairs of a shard and a listener let connections in; EVERY_BROKER: of all brokers."""
    pairs = {(broker, shard, listener) for (broker, shard, _), listener in seen.serving}
    return {**Counter(broker for broker, _, _ in pairs), EVERY_BROKER: len(pairs)}


def per_second(kinds: Sequence[RateKind], inter_broker: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    """PER_SECOND of some admissions."""
    tables = [PER_SECOND.empty_table()]
    for kind in kinds:
        # A listener between brokers counts for its own rate only.
        left_out = arrays.is_one_of(table, "listener", inter_broker if kind.kind == "broker" else ())
        mine = table.filter(pyarrow.array(~left_out)) if left_out.any() else table
        mine = of_cluster(mine) if kind.kind == CLUSTER else mine
        zeros = numpy.zeros(mine.num_rows, dtype="i8")
        broker, second = arrays.numbers(mine, "broker"), arrays.numbers(mine, "mono_ns") // SECOND_NS
        shard, epoch = (arrays.numbers(mine, name) if kind.per_shard else zeros for name in ("shard", "epoch"))
        pool, pools = arrays.codes(mine, kind.key) if kind.key else (zeros, [""])
        order, starts = arrays.grouped(broker, shard, epoch, pool, second)
        first = order[starts]
        tables.append(
            arrays.table_of(
                PER_SECOND,
                kind=[kind.kind] * len(first),
                broker=broker[first],
                shard=shard[first],
                epoch=epoch[first],
                pool=pyarrow.array([name or "" for name in pools]).take(pyarrow.array(pool[first])),
                second=second[first],
                admitted=numpy.diff(numpy.append(starts, len(order))),
            )
        )
    return pyarrow.concat_tables(tables)


def _logins_per_second(kinds: Sequence[RateKind], table: pyarrow.Table) -> pyarrow.Table:
    return per_second(kinds, (), table.filter(pyarrow.array(~arrays.present(table, "reason"))))


def beyond(
    kinds: Sequence[RateKind],
    timeline: Timeline,
    acceptors: Mapping[int, int],
    again: Mapping[int, Sequence[int]],
    table: pyarrow.Table,
) -> pyarrow.Table:
    """OVER: the windows with more admissions than any version in force allows, of PER_SECOND. `again`: broker -> when windows
    started anew."""
    found = []
    kind_of, names = arrays.codes(table, "kind")
    for kind in kinds:
        if kind.kind not in names:
            continue
        mine = table.filter(pyarrow.array(kind_of == names.index(kind.kind)))
        samples, size_ms = timeline.windows[0]
        span = (
            samples * size_ms // 1000 - 1 - (0 if kind.kind in ("ip", "user", "core", "core_ip") else size_ms // 1000)
        )
        seconds = max(1, span)
        # Beyond the lowest rate ever set, but maybe within the one in force then: decided window by window.
        likely = _trailing(mine, seconds, timeline.lowest_rate(kind.kind) * seconds)
        rows = (
            _over({**row, "acceptors": acceptors.get(row["broker"], 0)}, timeline, kind, seconds, again)
            for row in likely
        )
        found += [row for row in rows if row]
    over = pyarrow.Table.from_pylist([{**row, "count": 0} for row in found], OVER)
    kind_of, names = arrays.codes(over, "kind")
    key = arrays.numbers(over, "broker").astype("i8") * len(names) + kind_of
    places, counts = arrays.first_of_each(numpy.arange(over.num_rows), key, arrays.numbers(over, "at_ns"), SHOWN)
    return over.take(pyarrow.array(places)).set_column(OVER.get_field_index("count"), "count", pyarrow.array(counts))


def _trailing(table: pyarrow.Table, seconds: int, least: float) -> list[TableRow]:
    """broker, pool, second, admitted in the `seconds` that end with it: where that is more than `least`."""
    pool, _ = arrays.codes(table, "pool")
    second = arrays.numbers(table, "second")
    places = [arrays.numbers(table, name) for name in ("broker", "shard", "epoch")]
    order, starts = arrays.grouped(*places, pool, second)
    admitted = numpy.add.reduceat(arrays.numbers(table, "admitted")[order], starts) if len(starts) else order
    first = order[starts]
    group_starts = arrays.begins(*(each[first] for each in places), pool[first])
    group = arrays.group_of(group_starts, len(first))
    # One rising key for group and second, so that a single search finds where each window begins.
    low = int(second.min()) if len(second) else 0
    width = (int(second.max()) - low if len(second) else 0) + seconds + 1
    key = group * width + (second[first] - low)
    begin = numpy.maximum(numpy.searchsorted(key, key - seconds + 1), group_starts[group] if len(group) else 0)
    total = numpy.concatenate(([0], numpy.cumsum(admitted)))
    sums = total[1:] - total[begin]
    likely = numpy.flatnonzero(sums > least)
    rows = table.take(pyarrow.array(first[likely])).select(["broker", "pool", "second"]).to_pylist()
    return [{**row, "admitted": int(count)} for row, count in zip(rows, sums[likely], strict=True)]


def _over(
    row: TableRow, timeline: Timeline, kind: RateKind, seconds: int, again: Mapping[int, Sequence[int]]
) -> TableRow | None:
    """A window (broker, pool, second, admitted, acceptors) that is beyond, as OVER has it."""
    samples, size_ms = timeline.windows[0]
    start_ns, end_ns = (row["second"] - seconds + 1) * SECOND_NS, (row["second"] + 1) * SECOND_NS
    since_ns = start_ns - (samples + 2) * size_ms * 1_000_000
    rate = timeline.allowed_rate(since_ns, end_ns, row["broker"], kind.kind, row["pool"])
    allowed = _allowed(rate, kind, samples, size_ms / 1000, seconds, row["acceptors"])
    if kind.per_shard and (changes := timeline.periods_within(start_ns, end_ns)):
        allowed += rate * changes  # each raise fills the bucket (core_bucket.py, raised_is_full)
    is_parked = kind.kind in ("listener", "broker") and timeline.limits_slots
    if is_parked or (kind.kind == CLUSTER and (timeline.limits_slots or timeline.any_limit("listener", "rate"))):
        allowed += row["acceptors"] * PARKED
    if len(timeline.windows) > 1:
        allowed *= 2  # with a shorter window, this span holds at most twice as much
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
    return bound if kind.kind in ("ip", "user") else bound + acceptors * (samples + 1)
