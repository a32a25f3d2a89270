"""Checks that every unit of a connection creation rate (KIP-612) was recorded within its quota, one by one, by Kafka's arithmetic.

The home of a rate journals every change of its windows (docs/internals/journal.md), so shards/limits/rate_replay.py goes
through the very states that it went through, under the quotas of the version that each event names. Incarnations of
homes share nothing: a home that starts anew journals what it begins with. Addresses and users share nothing either, so each is
judged by itself; the listeners of a broker meet in its own rate, and are judged together.

below_this_no_replay_is_needed  What a window of N samples of a size counts at an instant was recorded within N + 1 sizes
    before, and it divides by N - 1 sizes at least. So an address that had no more than quota * (N - 1) sizes in any N + 1 of
    them is never over its quota, and isn't replayed.

Where a sample of a window begins depends on every record before it (samples_start_at_records), so the windows of one address, or
of one broker's listeners, are replayed one event after the other. Events of listeners come slice of time after slice of time, and
windows are carried from one into the next (`_Replay`); those of addresses are few beside them.

After a gap a home's windows are not known any more, and what it recorded later is not judged.
"""

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from shards.limits.caps import CLUSTER
from shards.limits.rate import Window
from shards.limits.rate_replay import RateReplay
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, UNKNOWN, Check
from turnstile.pipeline.audit.moves import BAD, RATE, START
from turnstile.pipeline.audit.rate_quotas import OBSERVED_CLUSTER, RateTimelines, VersionQuotas
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import EventDetail, TableRow
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.open_counts import NEVER
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.sequence import Gap, Incarnation, first_gaps
from turnstile.pipeline.events.timeline import Timeline

SHOWN = 10
SLICE = 100_000
INCARNATION = ("broker", "shard", "epoch")
NAMES = {
    "ip": "ip_rate_units",
    "user": "user_rate_units",
    "listener": "listener_rate_units",
    CLUSTER: "cluster_rate_units",
    OBSERVED_CLUSTER: "observed_cluster_rate_units",
}
CHANGES = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "at_ns", "version")),
        ("what", pyarrow.string()),
        ("window", pyarrow.string()),
        ("pool", pyarrow.string()),
        ("peer", pyarrow.int32()),
        ("tokens", pyarrow.int64()),
        ("at_ms", pyarrow.int64()),
        *((name, pyarrow.bool_()) for name in ("is_grant", "is_violated", "is_charged")),
        ("detail", pyarrow.string()),
    ]
)
"""The moves about rates in moves.MOVES. `window`: the address or user that is judged by itself, as `cluster` is, or "listener:"
for all listeners of a broker."""
UNITS = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("epoch", "seq", "at_ns")),
        ("pool", pyarrow.string()),
        ("to", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("units", "beyond", "version")),
    ]
)


Start = tuple[int, int, EventDetail]
"""(seq, version, detail) of an event with which windows begin."""


def checks(
    moves: Rows, timeline: Timeline, missing: Sequence[Gap], starts: Sequence[TableRow], *, back: bool
) -> list[Check]:
    """A check for addresses, users, listeners and the cluster each, if a version limits them, and for the cluster if one observes
    its rate. `starts`: rows of `started`; `back`: whether the clock of any process goes back."""
    limited = {"ip": ("ip",), "user": ("user",), "listener": ("listener", "broker"), CLUSTER: (CLUSTER,)}
    kinds = [kind for kind, rates in limited.items() if any(timeline.any_limit(rate, "rate") for rate in rates)]
    timelines = RateTimelines(timeline, ObservedTimeline(timeline))
    if timelines.observed.any_limit(OBSERVED_CLUSTER, "rate"):
        kinds.append(OBSERVED_CLUSTER)
    if not kinds:
        return []
    until = {place: gap.first for place, gap in first_gaps(missing).items()}
    begun: dict[Incarnation, list[Start]] = {}
    for row in starts:
        detail = {**json.loads(row["detail"]), "pool": f"rate:{row['pool']}"}
        place = tuple(row[name] for name in INCARNATION)
        begun.setdefault(place, []).append((row["seq"], row["version"] or 0, detail))
    changes = moves.each(rated, CHANGES)
    judge = partial(beyond, timelines, until, begun)
    if back:  # an event of an earlier slice may follow one of a later
        changes = changes.by(("broker", "window"), lambda table: judge(iter([table])), UNITS)
    else:
        changes = changes.in_turn(("broker", "window"), judge, UNITS)
    found = changes.table().to_pylist()
    unread = Counter(row["broker"] for row in found if row["kind"] == BAD)
    return [_check(kind, [row for row in found if row["kind"] == kind], unread) for kind in kinds]


def started(moves: Rows) -> list[TableRow]:
    """The events with which windows begin, in order."""
    rows = moves.each(_starts, CHANGES).table().to_pylist()
    return sorted(rows, key=lambda row: (*(row[name] for name in INCARNATION), row["seq"]))


def resets(starts: Sequence[TableRow]) -> dict[int, list[int]]:
    """Broker -> when a home of it began all windows anew, but for its first time; EVERY_BROKER: that of the cluster. `starts`: as
    `started` has them."""
    found: dict[int, list[int]] = {}
    known = set()
    for row in starts:
        if row["pool"] in ("", CLUSTER) and json.loads(row["detail"])["started"]:
            place = (*(row[name] for name in INCARNATION), row["pool"])
            if place in known:
                found.setdefault(EVERY_BROKER if row["pool"] else row["broker"], []).append(row["at_ns"])
            known.add(place)
    return found


def rated(table: pyarrow.Table) -> pyarrow.Table:
    """CHANGES of some moves, those that begin windows left out."""
    mine = table.filter(pyarrow.array(arrays.is_one_of(table, "what", (RATE, BAD))))
    pool, pools = arrays.codes(mine, "pool")
    window = pyarrow.array([_window_of(name or "") for name in pools])
    return arrays.table_of(
        CHANGES,
        window=window.take(pyarrow.array(pool)),
        **{field.name: mine[field.name] for field in CHANGES if field.name != "window"},
    )


def _starts(table: pyarrow.Table) -> pyarrow.Table:
    mine = table.filter(pyarrow.array(arrays.is_one_of(table, "what", (START,))))
    same = {field.name: mine[field.name] for field in CHANGES if field.name != "window"}
    return arrays.table_of(CHANGES, window=mine["pool"], **same)


def beyond(
    timelines: RateTimelines,
    until: Mapping[Incarnation, int],
    begun: Mapping[Incarnation, Sequence[Start]],
    turns: Iterator[pyarrow.Table],
) -> pyarrow.Table:
    """UNITS: the events of CHANGES that recorded units which no single broker would have let in.

    `until`: incarnation -> the first of its numbers that is missing; `begun`: with what its windows begin. `turns`: CHANGES in
    slices of time; what is of one incarnation and window rises in `seq` from one to the next.
    """
    found: list[TableRow] = []
    replays: dict[tuple[Incarnation, str], _Replay] = {}
    rest = [CHANGES.empty_table()]

    def replay(rows: pyarrow.Table, place: Incarnation, name: str) -> None:
        if (place, name) not in replays:
            replays[place, name] = _Replay(name, place[0], timelines.of(name), until.get(place), begun.get(place, ()))
        found.extend(replays[place, name].beyond(rows))

    for table in turns:
        is_listener = pyarrow.compute.fill_null(pyarrow.compute.equal(table["window"], "listener:"), False)
        rest.append(table.filter(pyarrow.compute.invert(is_listener)).cast(CHANGES))
        rows, starts = _grouped(table.filter(is_listener))
        for place, name, start, end in _groups(rows, starts):
            replay(rows.slice(start, end - start), place, name)
    rows, starts = _grouped(pyarrow.concat_tables(rest))
    calm = _calm(rows, starts, timelines)
    remembered = {key for each in begun.values() for *_, detail in each for _, key, _ in detail["remembered"]}
    for is_calm, (place, name, start, end) in zip(calm, _groups(rows, starts), strict=True):
        if not name:
            found.append({"kind": BAD, "broker": place[0]})
        elif not is_calm or name in remembered:
            replay(rows.slice(start, end - start), place, name)
    return pyarrow.Table.from_pylist(found, UNITS)


class _GroupedChanges(NamedTuple):
    """CHANGES by incarnation and window, each in order of `seq`; and where each of these begins."""

    rows: pyarrow.Table
    starts: arrays.Array


def _grouped(table: pyarrow.Table) -> _GroupedChanges:
    places = [arrays.numbers(table, name) for name in INCARNATION]
    window, _ = arrays.codes(table, "window")
    order, _ = arrays.grouped(*places, window, arrays.numbers(table, "seq"))
    starts = arrays.begins(*(each[order] for each in places), window[order])
    return _GroupedChanges(table.take(pyarrow.array(order)), starts)


def _groups(rows: pyarrow.Table, starts: arrays.Array) -> Iterator[tuple[Incarnation, str, int, int]]:
    """Incarnation, window ("" of what can't be read), start and end of each."""
    ends = numpy.append(starts, rows.num_rows)[1:].tolist()
    firsts = rows.select([*INCARNATION, "window"]).take(pyarrow.array(starts, pyarrow.int64())).to_pylist()
    for first, start, end in zip(firsts, starts.tolist(), ends, strict=True):
        yield (first["broker"], first["shard"], first["epoch"]), first["window"] or "", start, end


def _calm(rows: pyarrow.Table, starts: arrays.Array, timelines: RateTimelines) -> arrays.Array:
    """True for each group of an address or user that can't have come over its quota (below_this_no_replay_is_needed)."""
    lowest = {kind: timelines.of(kind).lowest_rate(kind) for kind in ("ip", "user", CLUSTER, OBSERVED_CLUSTER)}
    timeline = timelines.enforced
    samples = min(samples for samples, _ in timeline.windows)
    size_ms = min(size_ms for _, size_ms in timeline.windows)
    longest_ms = max((samples + 1) * size_ms for samples, size_ms in timeline.windows)
    group = arrays.group_of(starts, rows.num_rows)
    at_ms = arrays.numbers(rows, "at_ms")
    units = numpy.maximum(arrays.numbers(rows, "tokens"), 0) * arrays.numbers(rows, "is_grant").astype("i8")
    low = int(at_ms.min()) if len(at_ms) else 0
    latest_ms = at_ms - low
    last = arrays.running(
        numpy.maximum(numpy.diff(latest_ms, prepend=0), 0), starts
    )  # instants within a group never go back
    width = int(last.max() if len(last) else 0) + longest_ms + 1
    key = group * width + last
    begin = numpy.maximum(numpy.searchsorted(key, key - longest_ms), starts[group] if len(group) else 0)
    total = numpy.concatenate(([0], numpy.cumsum(units)))
    busiest = numpy.maximum.reduceat(total[1:] - total[begin], starts) if len(starts) else starts
    pool, pools = arrays.codes(rows, "window")
    least = numpy.array([lowest.get(str(name).partition(":")[0], -1.0) for name in pools])[pool[starts]]
    calm: arrays.Array = busiest <= least * (samples - 1) * size_ms / 1000
    return calm


class _Replay:
    """The windows of one address or user, or of a broker's listeners, at one home: from one run of its events to the next."""

    def __init__(self, window: str, broker: int, timeline: Timeline, until: int | None, begun: Sequence[Start]) -> None:
        self._home = RateReplay(Window(*timeline.windows[0]))  # until it says which windows it begins with
        self._broker = broker
        self._timeline = timeline
        self._until = NEVER if until is None else until
        self._begins = deque(
            sorted(((seq, version, _of(detail, window)) for seq, version, detail in begun), key=itemgetter(0))
        )
        self._quotas: dict[int, VersionQuotas] = {}

    def beyond(self, rows: pyarrow.Table) -> list[TableRow]:
        """Rows of UNITS among the next events. `rows`: CHANGES in order of seq."""
        found = []
        for seq, version, detail, place in _events(rows):
            while self._begins and self._begins[0][0] <= seq:
                begun_seq, begun_version, begin = self._begins.popleft()
                self._event(begun_seq, begun_version, begin)
            beyond = self._event(seq, version, detail)
            if beyond:
                row = rows.slice(place, 1).to_pylist()[0]
                same = {name: row[name] for name in ("broker", "shard", "epoch", "seq", "at_ns", "version", "pool")}
                of = {
                    "kind": row["pool"].partition(":")[0],
                    "to": row["peer"],
                    "units": row["tokens"],
                    "beyond": beyond,
                }
                found.append({**same, **of})
        return found

    def _event(self, seq: int, version: int, detail: EventDetail) -> int:
        """The number of units of an event that are beyond; none of one that follows a gap."""
        if seq >= self._until:
            return 0
        quotas = self._quotas.get(version)
        if quotas is None:
            limits = self._timeline.limits(version, self._broker)
            quotas = self._quotas[version] = VersionQuotas(limits, self._timeline.inter_broker)
        return self._home.event(detail, quotas.of, quotas.window)


def _of(detail: EventDetail, window: str) -> EventDetail:
    """An event with which windows begin, as far as it is about one."""
    return {**detail, "remembered": [each for each in detail["remembered"] if _window_of(each[1]) == window]}


def _window_of(pool: str) -> str:
    return "listener:" if pool.startswith("listener:") else pool


def _events(rows: pyarrow.Table) -> Iterator[tuple[int, int, EventDetail, int]]:
    """(seq, version, detail as their home journaled it, place) of CHANGES in order of seq; SLICE at a time as Python objects, of
    which millions would take gigabytes."""
    names = ("seq", "version", "pool", "tokens", "at_ms", "peer", "is_grant", "is_violated", "is_charged")
    for start in range(0, rows.num_rows, SLICE):
        part = rows.slice(start, SLICE)
        columns = (part[name].to_pylist() for name in names)
        for place, row in enumerate(zip(*columns, strict=True), start):
            seq, version, pool, tokens, at_ms, peer, is_grant, is_violated, is_charged = row
            to = "to" if is_grant else "from"
            detail = {"pool": pool, "tokens": tokens, "at_ms": at_ms, "charged": is_charged, to: peer}
            if is_violated:
                detail["violated"] = True
            yield seq, version or 0, detail, place


def _check(kind: str, rows: list[TableRow], unread: Counter[int]) -> Check:
    if not rows and unread:
        return Check(NAMES[kind], UNKNOWN, "an event of a window can't be read", [], unread)
    if not rows:
        return Check(NAMES[kind], HELD, "every unit that was recorded was within its quota, by Kafka's arithmetic", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row["beyond"]
    shown = sorted(rows, key=lambda row: (row["at_ns"], *(row[name] for name in INCARNATION), row["seq"]))[:SHOWN]
    first = shown[0]
    detail = (
        f"{counts.total()} units beyond their quota; first {first['pool']} of broker {first['broker']}: "
        f"{first['beyond']} of {first['units']} for shard {first['to']}, at mono_ns {first['at_ns']}"
    )
    return Check(NAMES[kind], EXCEEDED, detail, shown, counts)
