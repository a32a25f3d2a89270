"""The connections of a journal, each paired from its own events; and the faults that they show: admitted under an obsolete version,
counted twice, or never admitted.

close_of_another_address_is_its_own  A close whose address, listener or port differs from the admission's counts as a
    connection of its own that was never admitted.
counted_while_certain  A connection counts for no longer than is certain: to its close, else through the last event of a process
    that is gone, or the last before events that are missing.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, UNKNOWN, Check
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.open_counts import NEVER, SHOWN
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.sequence import Gap, Incarnation, first_gaps
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

INCARNATION = ("broker", "shard", "epoch")
READ = (*INCARNATION, "conn", "ip", "listener", "port", "version", "mono_ns", "kind")
_PLACE = [
    ("broker", pyarrow.int32()),
    ("shard", pyarrow.int32()),
    ("epoch", pyarrow.int64()),
    ("conn", pyarrow.int64()),
]
CONNECTIONS = pyarrow.schema(
    [
        *_PLACE,
        ("ip", pyarrow.string()),
        ("listener", pyarrow.string()),
        *(
            (name, pyarrow.int64())
            for name in ("version", "admitted_ns", "closed_ns", "end_ns", "admissions", "closes")
        ),
    ]
)
"""admitted_ns, closed_ns: null where not seen; end_ns: until when it counts (counted_while_certain), null for one that is
open; admissions, closes: how many events of each there are, 1 and at most 1 in a sound journal."""
_FOUND = pyarrow.schema(
    [
        ("what", pyarrow.string()),
        *_PLACE,
        ("ip", pyarrow.string()),
        *((name, pyarrow.int64()) for name in ("at_ns", "version", "acknowledged", "admissions", "closes", "count")),
    ]
)


class Ends(NamedTuple):
    """The ends of connections without a close (counted_while_certain): just after the last event of a process that is gone, or just
    after the last event before each gap. `in_order`: processes that have journaled all that was under way before they ended."""

    last_ns: Mapping[Incarnation, int]
    gaps_ns: Mapping[Incarnation, Sequence[int]]
    in_order: frozenset[Incarnation] = frozenset()

    @classmethod
    def of(
        cls, last_ns: Mapping[Incarnation, int], missing: Sequence[Gap], in_order: Collection[Incarnation] = ()
    ) -> "Ends":
        """`last_ns`: as Survey.ends has it, `in_order`: as Survey.ended."""
        gaps: dict[Incarnation, list[int]] = {}
        for gap in sorted(missing):
            gaps.setdefault(gap[:3], []).append(gap.before_ns + 1)
        return cls({place: at_ns + 1 for place, at_ns in last_ns.items()}, gaps, frozenset(in_order))


def paired(events: Rows, ends: Ends) -> Rows:
    """CONNECTIONS: one row per connection that was admitted or closed."""
    of_connections = events.of_kinds(("admitted", "closed"), READ)
    return of_connections.by((*INCARNATION, "conn"), partial(pair, ends), CONNECTIONS)


def pair(ends: Ends, table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS from the columns of READ."""
    if not table.num_rows:
        return CONNECTIONS.empty_table()
    place = [arrays.numbers(table, name) for name in (*INCARNATION, "conn")]
    (ip, _), (listener, _), port = (
        arrays.codes(table, "ip"),
        arrays.codes(table, "listener"),
        arrays.numbers(table, "port"),
    )
    order, starts = arrays.grouped(*place, ip, listener, port)
    first = pyarrow.array(order[starts])
    is_admission = arrays.is_one_of(table, "kind", ("admitted",))[order]
    at_ns = arrays.numbers(table, "mono_ns")[order]
    version = numpy.maximum.reduceat(arrays.numbers(table, "version")[order], starts)
    admissions = numpy.add.reduceat(is_admission.astype("i8"), starts)
    closes = numpy.diff(numpy.append(starts, len(order))) - admissions
    admitted_ns = numpy.minimum.reduceat(numpy.where(is_admission, at_ns, NEVER), starts)
    closed_ns = numpy.maximum.reduceat(numpy.where(is_admission, -1, at_ns), starts)
    end_ns = _end_ns([each[order][starts] for each in place[:3]], admitted_ns, closed_ns, closes > 0, ends)
    names = (*INCARNATION, "conn", "ip", "listener")
    return arrays.table_of(
        CONNECTIONS,
        **{name: table[name].take(first) for name in names},
        version=version,
        admitted_ns=pyarrow.array(admitted_ns, mask=admissions == 0),
        closed_ns=pyarrow.array(closed_ns, mask=closes == 0),
        end_ns=pyarrow.array(end_ns, mask=end_ns == NEVER),
        admissions=admissions,
        closes=closes,
    )


def _end_ns(
    place: Sequence[arrays.Array],
    admitted_ns: arrays.Array,
    closed_ns: arrays.Array,
    is_closed: arrays.Array,
    ends: Ends,
) -> arrays.Array:
    """The time until which each connection counts; NEVER where it is open. `place`: their incarnations, in order."""
    end_ns = numpy.where(is_closed, closed_ns, NEVER)
    starts = arrays.begins(*place)
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(end_ns)
        of = int(place[0][start]), int(place[1][start]), int(place[2][start])
        last_ns, gaps = ends.last_ns.get(of, NEVER), numpy.array([*ends.gaps_ns.get(of, ()), NEVER])
        if last_ns < NEVER or len(gaps) > 1:
            span = slice(start, end)
            next_gap = gaps[numpy.searchsorted(gaps[:-1], admitted_ns[span], side="right")]
            end_ns[span] = numpy.where(is_closed[span], end_ns[span], numpy.minimum(last_ns, next_gap))
    return end_ns


class _FirstFound(NamedTuple):
    """Rows that are shown, and how many were found in all, by broker."""

    rows: list[TableRow]
    counts: Counter[int]


class ConnectionChecks:
    """The checks of a journal's connections by themselves; `count` of them."""

    def __init__(self, connections: Rows, timeline: Timeline, seen: Survey) -> None:
        self._floor = timeline.floor
        first_ns = {place: gap.before_ns for place, gap in first_gaps(seen.gaps).items()}
        ended = seen.ended.keys() - first_ns.keys()
        found = connections.each(partial(_judge, self._floor, first_ns, ended), _FOUND).table().to_pylist()
        self.count = sum(row["count"] for row in found if row["what"] == "all")
        self._found = {what: [row for row in found if row["what"] == what] for what in ("stale", "sure", "unsure")}

    def acknowledged(self) -> Check:
        """Invariant 5 of docs/internals/tokens.md: once a change is acknowledged, nothing is decided under an older version."""
        name = "enforced_on_return"
        if not self._floor:
            return Check(name, HELD, "no change was acknowledged", [])
        if not self._found["stale"]:
            return Check(
                name, HELD, f"{len(self._floor)} acknowledged versions, nothing admitted under an older one", []
            )
        shown, counts = self._first("stale", (*INCARNATION, "conn", "ip", "at_ns", "version", "acknowledged"))
        first = shown[0]
        detail = (
            f"{first['ip']} was admitted under version {first['version']} at mono_ns {first['at_ns']}, "
            f"after version {first['acknowledged']} was acknowledged"
        )
        return Check(name, EXCEEDED, detail, shown, counts)

    def conserved(self) -> Check:
        """Every token is taken once and given back at most once, and not before it was taken."""
        name = "conservation"
        for what, verdict in (("sure", EXCEEDED), ("unsure", UNKNOWN)):
            if self._found[what]:
                shown, counts = self._first(what, (*INCARNATION, "conn", "ip", "admissions", "closes"))
                first = shown[0]
                detail = (
                    f"connection {first['broker']}/{first['shard']}/{first['epoch']}/{first['conn']} of {first['ip']} has "
                    f"{first['admissions']} admissions and {first['closes']} closes"
                )
                return Check(name, verdict, detail, shown, counts)
        return Check(name, HELD, "every connection was admitted once and closed at most once", [])

    def _first(self, what: str, columns: Sequence[str]) -> _FirstFound:
        counts: Counter[int] = Counter()
        for row in self._found[what]:
            counts[row["broker"]] += row["count"]
        rows = sorted(
            self._found[what], key=lambda row: (row["at_ns"], *(row[name] for name in (*INCARNATION, "conn")))
        )
        return _FirstFound([{name: row[name] for name in columns} for row in rows[:SHOWN]], counts)


def _judge(
    floor: Sequence[tuple[int, int]],
    first_gap_ns: Mapping[Incarnation, int],
    ended: Collection[tuple[int, ...]],
    table: pyarrow.Table,
) -> pyarrow.Table:
    """_FOUND: the first of each kind and broker, with how many there are of it; and how many connections there are in all."""
    admitted_ns, closed_ns = (
        arrays.numbers(table, "admitted_ns", null=NEVER),
        arrays.numbers(table, "closed_ns", null=-1),
    )
    admissions, closes = arrays.numbers(table, "admissions"), arrays.numbers(table, "closes")
    passed = numpy.searchsorted(numpy.array([at for at, _ in floor], dtype="i8"), admitted_ns) - 1
    acknowledged = numpy.array([*(version for _, version in floor), 0], dtype="i8")[passed]
    is_closed_before = (closes > 0) & (admissions > 0) & (closed_ns < admitted_ns)
    twice = (admissions > 1) | (closes > 1) | is_closed_before
    never = (admissions == 0) & ~twice
    # What closed after events were lost may have been admitted in one of them.
    after_gap = numpy.zeros(table.num_rows, dtype=bool)
    for place in numpy.flatnonzero(never) if first_gap_ns else ():
        of = tuple(table[name][place].as_py() for name in INCARNATION)
        after_gap[place] = closed_ns[place] >= first_gap_ns.get(of, NEVER)
    # A process that ends in order closes what it has before its last event.
    has_ended = (
        arrays.looked_up([arrays.numbers(table, name) for name in INCARNATION], lambda place: place in ended) > 0
    )
    masks = {
        "stale": (admissions > 0) & (passed >= 0) & (arrays.numbers(table, "version") < acknowledged),
        "sure": twice | (never & ~after_gap),
        "unsure": (never & after_gap) | ((closes == 0) & has_ended),
    }
    at_ns = numpy.where(closes > 0, closed_ns, admitted_ns)
    found = [
        _found(what, table, mask, admitted_ns if what == "stale" else at_ns, acknowledged)
        for what, mask in masks.items()
    ]
    return pyarrow.concat_tables(
        [pyarrow.Table.from_pylist([{"what": "all", "count": table.num_rows}], _FOUND), *found]
    )


def _found(
    what: str, table: pyarrow.Table, mask: arrays.Array, at_ns: arrays.Array, acknowledged: arrays.Array
) -> pyarrow.Table:
    """_FOUND of the connections that are it, the first of each broker."""
    places, counts = arrays.first_of_each(numpy.flatnonzero(mask), arrays.numbers(table, "broker"), at_ns, SHOWN)
    picked = table.take(pyarrow.array(places))
    return arrays.table_of(
        _FOUND,
        what=[what] * len(places),
        at_ns=at_ns[places],
        acknowledged=acknowledged[places],
        count=counts,
        **{name: picked[name] for name in (*INCARNATION, "conn", "ip", "version", "admissions", "closes")},
    )
