"""What little is known of a journal before anything is judged, from one look at each event.

Any part of the rows is summed up by `digest`, on whatever worker has them: a run of events of one process whose numbers follow
each other is one row, whatever it has. `survey` puts the runs together, so that each missing number and each that is there
twice is known exactly.

V1  an event without what places it (KEYS), of an unknown kind, or without what its kind must have (NEEDED) is set aside: it
    counts as missing, and is told in `bad`
V2  every number of a process is in exactly one run, or in a gap, or in `twice`
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from broker.journal.schema import KINDS
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.sequence import Gap
from turnstile.pipeline.events.timeline import ConfigEvent, Timeline

Incarnation = tuple[int, int, int]
KEYS = ("broker", "shard", "epoch", "seq", "mono_ns", "kind")
NEEDED = {
    "admitted": ("conn", "ip", "listener", "version"),
    "closed": ("conn", "ip", "listener"),
    "refused": ("conn", "ip", "listener", "reason"),
    "grant": ("detail",),
    "reclaim": ("detail",),
    "config": ("version", "detail"),
    "shard_lost": ("detail",),
}
"""Kind -> columns without which an event of it can't be judged."""
READ = (*KEYS, "conn", "ip", "listener", "reason", "version", "detail")
TOLD = ("config", "shard_up", "shard_lost", "ended")
"""Kinds whose events are all told, with their `detail`. There are few."""
DIGEST = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        *(
            (name, pyarrow.int64())
            for name in ("epoch", "low", "high", "count", "first_ns", "timed_ns", "last_ns", "version")
        ),
        ("name", pyarrow.string()),
        ("detail", pyarrow.string()),
    ]
)


class Process(NamedTuple):
    """An incarnation that wrote events: its least and greatest `seq`, how many `events` there are, when the first and last were."""

    broker: int
    shard: int
    epoch: int
    low: int
    high: int
    events: int
    first_ns: int
    last_ns: int


class Told(NamedTuple):
    """An event of TOLD."""

    place: Incarnation
    seq: int
    at_ns: int
    kind: str
    version: int
    detail: Any
    """As read from JSON; None when it is not there or can't be."""


class Span(NamedTuple):
    """A time in which a broker had so many `shards`: it is started with another number only when all of them have ended."""

    number: int
    shards: int
    """0: no process tells."""


class Survey(NamedTuple):
    """What was seen of a journal.

    processes   in order of broker, shard and epoch
    gaps        what is missing between the events of each, and before its first
    twice       (incarnation, first seq, last seq): numbers that several events have
    back        incarnation -> the first seq whose mono_ns is before that of the event before it
    bad         why events were set aside (V1) -> how many
    told        every event of TOLD in order of time
    first_seen  version -> the first mono_ns of any event that carries it
    decided     version -> the first mono_ns of an admission under it
    listeners   names that were seen
    kinds       kind -> how many events
    serving     (incarnation, listener) where connections were admitted or refused
    refusals    reason -> how many refusals name it
    """

    processes: list[Process]
    gaps: list[Gap]
    twice: list[tuple[Incarnation, int, int]]
    back: dict[Incarnation, int]
    bad: Counter[tuple[int | None, str]]
    told: list[Told]
    first_seen: dict[int, int]
    decided: dict[int, int]
    listeners: list[str]
    kinds: Counter[str]
    serving: set[tuple[Incarnation, str]]
    refusals: Counter[str]

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(each.events for each in self.processes)

    @property
    def lost(self) -> dict[Incarnation, int]:
        """(broker, shard, epoch) that the coordinator says died -> the mono_ns at which it says so."""
        return {place: told.at_ns for told in self.told if told.kind == "shard_lost" and (place := named(told.detail))}

    @property
    def starts(self) -> dict[Incarnation, dict[str, Any]]:
        """Incarnation -> the detail of the `shard_up` that it wrote itself."""
        return {
            told.place: told.detail
            for told in self.told
            if told.kind == "shard_up" and told.place[0] >= 0 and isinstance(told.detail, dict)
        }

    def spans(self) -> dict[Incarnation, Span]:
        """Incarnation of a shard -> the span it is in. Epochs rise, so those of a span follow each other."""
        found: dict[Incarnation, Span] = {}
        starts = self.starts
        last: dict[int, Span] = {}
        for place in sorted((each[:3] for each in self.processes if each.broker >= 0), key=lambda place: place[2]):
            told = starts.get(place, {}).get("shards")
            shards = told if isinstance(told, int) and told > 0 and place[1] < told else 0
            before = last.get(place[0], Span(-1, -1))
            found[place] = before if shards == before.shards else Span(before.number + 1, shards)
            last[place[0]] = found[place]
        return found

    def timeline(self) -> Timeline:
        """The configuration over time."""
        configs = [
            ConfigEvent(told.version, told.at_ns, told.place[0], json.dumps(told.detail))
            for told in self.told
            if told.kind == "config" and told.version > 0 and told.detail is not None
        ]
        return Timeline(configs, self.first_seen, self.listeners)

    @property
    def ended(self) -> dict[Incarnation, int]:
        """Incarnation -> the `seq` of the first event with which it says that it ends."""
        return {told.place: told.seq for told in reversed(self.told) if told.kind == "ended"}

    def gone(self, *, live: bool) -> set[Incarnation]:
        """Processes of which no event follows: succeeded, reported lost, or of a cluster of which no process is alive.

        `live`: whether one that neither ended nor was lost may still be running.
        """
        spans, lost, ended = self.spans(), self.lost, self.ended
        newest: dict[tuple[int, int], int] = {}
        newest_span: dict[int, int] = {}
        for each in self.processes:
            newest[each[:2]] = max(newest.get(each[:2], each.epoch), each.epoch)
            if each.broker >= 0:
                newest_span[each.broker] = max(newest_span.get(each.broker, 0), spans[each[:3]].number)
        return {
            each[:3]
            for each in self.processes
            if each.epoch < newest[each[:2]]
            or each[:3] in lost
            or each[:3] in ended
            or not live
            or (each.broker >= 0 and spans[each[:3]].number < newest_span[each.broker])
        }

    def ends(self, *, live: bool) -> dict[Incarnation, int]:
        """The last instant of each process that is gone."""
        gone = self.gone(live=live)
        return {each[:3]: each.last_ns for each in self.processes if each[:3] in gone}


def named(detail: Any) -> Incarnation | None:
    """The incarnation that a `shard_up` or `shard_lost` is about; None when it names none."""
    if not isinstance(detail, dict):
        return None
    place = tuple(detail.get(name) for name in ("broker", "shard", "epoch"))
    return place if all(isinstance(each, int) for each in place) else None  # type: ignore[return-value]  # three of them


# ---- any part of the rows


def sound(table: pyarrow.Table) -> pyarrow.Table:
    """The events that can be judged (V1)."""
    faults, _ = _faults(table)
    return table.filter(pyarrow.array(faults < 0)) if (faults >= 0).any() else table


def once(table: pyarrow.Table) -> pyarrow.Table:
    """The events, each number once: of several that are alike one is kept, of several that differ none."""
    places = [arrays.numbers(table, name) for name in (*KEYS[:4],)]
    order, starts = arrays.grouped(*places)
    sizes = numpy.diff(numpy.append(starts, len(order)))
    kept = list(order[starts[sizes == 1]])
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        rows = table.take(pyarrow.array(order[start : start + size])).to_pylist()
        if all(row == rows[0] for row in rows):
            kept.append(order[start])
    return table.take(pyarrow.array(numpy.sort(numpy.array(kept, dtype="i8"))))


def digest(table: pyarrow.Table) -> pyarrow.Table:
    """DIGEST of some events, which have the columns of READ."""
    faults, reasons = _faults(table)
    rows = _bad(table, faults, reasons)
    table = table.filter(pyarrow.array(faults < 0)) if rows else table
    if table.num_rows:
        place = [arrays.numbers(table, name).astype("i8") for name in KEYS[:3]]
        seq, mono_ns = arrays.numbers(table, "seq"), arrays.numbers(table, "mono_ns")
        if not _is_in_order(place, seq):
            order = numpy.lexsort((mono_ns, seq, *place[::-1]))
            table = table.take(pyarrow.array(order))
            place, seq, mono_ns = [each[order] for each in place], seq[order], mono_ns[order]
        kind, kinds = arrays.codes(table, "kind")
        rows += _runs(place, seq, mono_ns, kind, kinds)
        rows += _of_versions(table, place, mono_ns, kind, kinds)
        rows += _names(table, place, kind, kinds)
        rows += _told(table, kind, kinds)
    return pyarrow.Table.from_pylist(rows, DIGEST)


def _faults(table: pyarrow.Table) -> tuple[arrays.Array, list[str]]:
    """The number of the reason why each event is set aside, -1 for those that are not; and the reasons."""
    reasons = [f"no {name}" for name in KEYS] + ["an unknown kind"]
    faults = numpy.full(table.num_rows, -1)
    kind, kinds = arrays.codes(table, "kind")
    is_known = numpy.array([each in KINDS for each in kinds])[kind]
    faults[~is_known] = len(KEYS)
    for number, name in enumerate(KEYS):
        faults[~arrays.present(table, name)] = number
    for each, columns in NEEDED.items():
        if each in kinds:
            is_it = kind == kinds.index(each)
            for name in columns:
                if table[name].null_count:
                    faults[is_it & ~arrays.present(table, name) & (faults < 0)] = len(reasons)
                    reasons.append(f"{each} without {name}")
    return faults, reasons


def _bad(table: pyarrow.Table, faults: arrays.Array, reasons: Sequence[str]) -> list[dict[str, Any]]:
    broker = arrays.numbers(table, "broker", null=-2)
    found: Counter[tuple[int, int]] = Counter(
        (int(broker[place]), int(faults[place])) for place in numpy.flatnonzero(faults >= 0)
    )
    return [
        {"what": "bad", "broker": None if broker == -2 else broker, "name": reasons[fault], "count": count}
        for (broker, fault), count in found.items()
    ]


def _is_in_order(place: Sequence[arrays.Array], seq: arrays.Array) -> bool:
    is_same = all((each[1:] == each[:-1]).all() for each in place)
    return bool(is_same and (seq[1:] >= seq[:-1]).all())


def _runs(
    place: Sequence[arrays.Array],
    seq: arrays.Array,
    mono_ns: arrays.Array,
    kind: arrays.Array,
    kinds: Sequence[str | None],
) -> list[dict[str, Any]]:
    """A row per run, and one where mono_ns goes back. `throttled` is told at its home's time, which may be before.

    first_ns: of its first event; timed_ns: of its first that is not `throttled`; last_ns: the latest of any.
    """
    steps = numpy.concatenate(([0], numpy.cumsum(seq[1:] != seq[:-1] + 1)))
    starts = arrays.begins(*place, steps)
    ends = numpy.append(starts[1:], len(seq)) - 1
    timed = numpy.flatnonzero(kind != (kinds.index("throttled") if "throttled" in kinds else -1))
    run_of = arrays.group_of(starts, len(seq))[timed]
    goes_back = timed[1:][(run_of[1:] == run_of[:-1]) & (mono_ns[timed][1:] < mono_ns[timed][:-1])]
    first_timed = dict(zip(run_of[::-1].tolist(), mono_ns[timed][::-1].tolist(), strict=True))
    rows = [
        {"what": "run", **_place(place, first), "low": seq[first], "high": seq[last], "count": last - first + 1,
         "first_ns": mono_ns[first], "timed_ns": first_timed.get(number), "last_ns": mono_ns[first : last + 1].max()}
        for number, (first, last) in enumerate(zip(starts, ends, strict=True))
    ]  # fmt: skip
    return rows + [{"what": "back", **_place(place, each), "low": seq[each]} for each in goes_back[:1]]


def _place(place: Sequence[arrays.Array], row: int) -> dict[str, Any]:
    return {name: int(column[row]) for name, column in zip(KEYS[:3], place, strict=True)}


def _of_versions(
    table: pyarrow.Table,
    place: Sequence[arrays.Array],
    mono_ns: arrays.Array,
    kind: arrays.Array,
    kinds: Sequence[str | None],
) -> list[dict[str, Any]]:
    """When a version was first carried by any event, and when something was first admitted under it."""
    version = arrays.numbers(table, "version")
    is_admission = kind == (kinds.index("admitted") if "admitted" in kinds else -1)
    rows = []
    for what, mask in (("seen", version > 0), ("decided", is_admission)):
        versions, instants = version[mask], mono_ns[mask]
        order, starts = arrays.grouped(versions)
        if len(starts):
            first = numpy.minimum.reduceat(instants[order], starts)
            rows += [
                {"what": what, "version": int(number), "first_ns": int(at_ns)}
                for number, at_ns in zip(versions[order][starts], first, strict=True)
            ]
    return rows


def _names(
    table: pyarrow.Table, place: Sequence[arrays.Array], kind: arrays.Array, kinds: Sequence[str | None]
) -> list[dict[str, Any]]:
    """Listeners, kinds and reasons of refusals, and which processes served."""
    rows: list[dict[str, Any]] = []
    counts = numpy.bincount(kind, minlength=len(kinds))
    rows += [
        {"what": "kind", "name": name, "count": int(count)} for name, count in zip(kinds, counts, strict=True) if count
    ]
    listener, listeners = arrays.codes(table, "listener")
    rows += [
        {"what": "listener", "name": listeners[number]}
        for number in numpy.unique(listener)
        if listeners[number] is not None
    ]
    if "refused" in kinds:
        reason, reasons = arrays.codes(table.filter(pyarrow.array(kind == kinds.index("refused"))), "reason")
        rows += [
            {"what": "refused", "name": reasons[number], "count": int(count)}
            for number, count in enumerate(numpy.bincount(reason)) if count
        ]  # fmt: skip
    is_serving = numpy.isin(kind, [number for number, name in enumerate(kinds) if name in ("admitted", "refused")])
    mine = [*(each[is_serving] for each in place), listener[is_serving]]
    order, starts = arrays.grouped(*mine)
    for row in order[starts]:
        rows.append({"what": "serving", **_place(mine[:3], row), "name": listeners[mine[3][row]]})
    return rows


def _told(table: pyarrow.Table, kind: arrays.Array, kinds: Sequence[str | None]) -> list[dict[str, Any]]:
    mine = numpy.isin(kind, [number for number, name in enumerate(kinds) if name in TOLD])
    if not mine.any():
        return []
    return [
        {"what": "told", "broker": row["broker"], "shard": row["shard"], "epoch": row["epoch"], "low": row["seq"],
         "first_ns": row["mono_ns"], "version": row["version"], "name": row["kind"], "detail": row["detail"]}
        for row in table.filter(pyarrow.array(mine)).select([*KEYS, "version", "detail"]).to_pylist()
    ]  # fmt: skip


# ---- all of them


def survey(digests: pyarrow.Table) -> Survey:
    """What the digests of all parts say together."""
    by: dict[str, list[dict[str, Any]]] = {}
    for row in digests.to_pylist():
        by.setdefault(row["what"], []).append(row)
    back = {_of(row): row["low"] for row in sorted(by.get("back", ()), key=lambda row: -row["low"])}
    processes, gaps, twice = _joined(by.get("run", ()), back)
    bad: Counter[tuple[int | None, str]] = Counter()
    for row in by.get("bad", ()):
        bad[row["broker"], row["name"]] += row["count"]
    told = [
        Told(_of(row), row["low"], row["first_ns"], row["name"], row["version"] or 0, _parsed(row["detail"]))
        for row in by.get("told", ())
    ]
    return Survey(
        processes, gaps, twice, back, bad, sorted(told, key=lambda each: (each.at_ns, each.place, each.seq)),
        _first(by.get("seen", ())), _first(by.get("decided", ())), sorted({row["name"] for row in by.get("listener", ())}),
        _sum(by.get("kind", ())), {(_of(row), row["name"]) for row in by.get("serving", ())}, _sum(by.get("refused", ())),
    )  # fmt: skip


def _joined(
    runs: Iterable[dict[str, Any]], back: dict[Incarnation, int]
) -> tuple[list[Process], list[Gap], list[tuple[Incarnation, int, int]]]:
    """Processes, gaps and numbers that are there twice (V2); adds to `back` what only shows between two runs."""
    processes: list[Process] = []
    gaps: list[Gap] = []
    twice: list[tuple[Incarnation, int, int]] = []
    ordered = sorted(runs, key=lambda row: (_of(row), row["low"], row["high"]))
    for row in ordered:
        place, timed_ns = _of(row), row["timed_ns"]
        if not processes or processes[-1][:3] != place:
            processes.append(Process(*place, row["low"], row["low"] - 1, 0, row["first_ns"], row["first_ns"]))
            if row["low"] > 0:
                gaps.append(Gap(*place, 0, row["low"] - 1, 0))
        now = processes[-1]
        if row["low"] > now.high + 1:
            gaps.append(Gap(*place, now.high + 1, row["low"] - 1, now.last_ns))
        elif row["low"] <= now.high:
            twice.append((place, row["low"], min(row["high"], now.high)))
        elif timed_ns is not None and timed_ns < now.last_ns and place not in back:
            back[place] = row["low"]
        processes[-1] = Process(
            *place, now.low, max(now.high, row["high"]), now.events + row["count"],
            min(now.first_ns, row["first_ns"]), max(now.last_ns, row["last_ns"]),
        )  # fmt: skip
    return processes, sorted(gaps), twice


def _of(row: dict[str, Any]) -> Incarnation:
    return row["broker"], row["shard"], row["epoch"]


def _sum(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row["name"]] += row["count"]
    return found


def _first(rows: Iterable[dict[str, Any]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for row in rows:
        found[row["version"]] = min(found.get(row["version"], row["first_ns"]), row["first_ns"])
    return found


def _parsed(detail: str | None) -> Any:
    try:
        return json.loads(detail or "null")
    except ValueError:
        return None
