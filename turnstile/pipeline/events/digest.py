"""Any part of a journal's events summed up in some rows, on whatever worker has it; survey.py puts them together.

A run of events of one process whose numbers follow each other is one row.

only_whole_events_are_judged  an event without what places it (KEYS), of an unknown kind, or without what its kind must have
    (NEEDED) is rejected: it counts as missing, and the audit says so
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from broker.journal.schema import KINDS, TOLD_LATE
from shards.limits.quota_entities import CLIENT_KEYS
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow

KEYS = ("broker", "shard", "epoch", "seq", "mono_ns", "kind")
_CHARGE = ("limit", "limit_value", "bytes", "throttle_ms", "version", "detail")
NEEDED = {
    "admitted": ("conn", "ip", "listener", "version"),
    "closed": ("conn", "ip", "listener"),
    "refused": ("conn", "ip", "listener", "reason"),
    "grant": ("detail",),
    "reclaim": ("detail",),
    "config": ("version", "detail"),
    "shard_lost": ("detail",),
    "charge": _CHARGE,
    "meter": ("version", "detail"),
    "observed_charge": _CHARGE,
    "observed_meter": ("version", "detail"),
    "observed_rate": ("version", "detail"),
    "authenticated": ("conn", "ip", "listener", "user", "version"),
}
"""Kind -> columns without which an event of it can't be judged."""
READ = (*KEYS, "ts_us", *dict.fromkeys((*(name for names in NEEDED.values() for name in names), "reason")))
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


def sound(table: pyarrow.Table) -> pyarrow.Table:
    """The events that can be judged (only_whole_events_are_judged)."""
    faults, _ = _faults(table)
    return table.filter(pyarrow.array(faults < 0)) if (faults >= 0).any() else table


def once(table: pyarrow.Table) -> pyarrow.Table:
    """The events, each number once: identical duplicates are merged, conflicting ones are dropped."""
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
        rows += _wall(table)
    return pyarrow.Table.from_pylist(rows, DIGEST)


class _Faults(NamedTuple):
    """The number of the reason why each event is rejected, -1 for those that are not; and the reasons."""

    of_rows: arrays.Array
    reasons: list[str]


def _faults(table: pyarrow.Table) -> _Faults:
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
    for each in ("charge", "observed_charge"):
        if each in kinds:
            is_known = arrays.is_one_of(table, "limit", CLIENT_KEYS)
            faults[(kind == kinds.index(each)) & ~is_known & (faults < 0)] = len(reasons)
            reasons.append(f"{each} of an unknown quota")
    return _Faults(faults, reasons)


def _bad(table: pyarrow.Table, faults: arrays.Array, reasons: Sequence[str]) -> list[TableRow]:
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
) -> list[TableRow]:
    """A row per run, and one where mono_ns goes back. Events of TOLD_LATE have the earlier time of their meter.

    first_ns: of its first event; timed_ns: of its first that is not of TOLD_LATE; last_ns: the latest of any.
    """
    steps = numpy.concatenate(([0], numpy.cumsum(seq[1:] != seq[:-1] + 1)))
    starts = arrays.begins(*place, steps)
    ends = numpy.append(starts[1:], len(seq)) - 1
    timed = numpy.flatnonzero(~numpy.isin(kind, [number for number, name in enumerate(kinds) if name in TOLD_LATE]))
    run_of = arrays.group_of(starts, len(seq))[timed]
    goes_back = timed[1:][(run_of[1:] == run_of[:-1]) & (mono_ns[timed][1:] < mono_ns[timed][:-1])]
    first_timed = dict(zip(run_of[::-1].tolist(), mono_ns[timed][::-1].tolist(), strict=True))
    rows = [
        {"what": "run", **_place(place, first), "low": seq[first], "high": seq[last], "count": last - first + 1,
         "first_ns": mono_ns[first], "timed_ns": first_timed.get(number), "last_ns": mono_ns[first : last + 1].max()}
        for number, (first, last) in enumerate(zip(starts, ends, strict=True))
    ]  # fmt: skip
    return rows + [{"what": "back", **_place(place, each), "low": seq[each]} for each in goes_back[:1]]


def _place(place: Sequence[arrays.Array], row: int) -> TableRow:
    return {name: int(column[row]) for name, column in zip(KEYS[:3], place, strict=True)}


def _of_versions(
    table: pyarrow.Table,
    place: Sequence[arrays.Array],
    mono_ns: arrays.Array,
    kind: arrays.Array,
    kinds: Sequence[str | None],
) -> list[TableRow]:
    """The time at which a version was first carried by any event, and that of the first admission under it."""
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
) -> list[TableRow]:
    """Listeners, kinds of events, reasons of refusals, and the processes that served."""
    rows: list[TableRow] = []
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
    serving = [*(each[is_serving] for each in place), listener[is_serving]]
    order, starts = arrays.grouped(*serving)
    for row in order[starts]:
        rows.append({"what": "serving", **_place(serving[:3], row), "name": listeners[serving[3][row]]})
    return rows


def _wall(table: pyarrow.Table) -> list[TableRow]:
    span = pyarrow.compute.min_max(table["ts_us"]).as_py()
    if span["min"] is None:
        return []
    ahead_ns = pyarrow.compute.subtract(pyarrow.compute.multiply(table["ts_us"], 1000), table["mono_ns"])
    ahead = pyarrow.compute.min_max(ahead_ns).as_py()
    return [
        {"what": "wall", "first_ns": span["min"] * 1000, "last_ns": span["max"] * 1000},
        {"what": "ahead", "first_ns": ahead["min"], "last_ns": ahead["max"]},
    ]


def _told(table: pyarrow.Table, kind: arrays.Array, kinds: Sequence[str | None]) -> list[TableRow]:
    wanted = numpy.isin(kind, [number for number, name in enumerate(kinds) if name in TOLD])
    if not wanted.any():
        return []
    return [
        {"what": "told", "broker": row["broker"], "shard": row["shard"], "epoch": row["epoch"], "low": row["seq"],
         "first_ns": row["mono_ns"], "version": row["version"], "name": row["kind"], "detail": row["detail"]}
        for row in table.filter(pyarrow.array(wanted)).select([*KEYS, "version", "detail"]).to_pylist()
    ]  # fmt: skip
