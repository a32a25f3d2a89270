"""Did every home keep its books, and every shard to what it was granted? Done again from each move of tokens.

B1  A grant leaves a home within the cap of its version: what is out to other shards, plus its own open connections.
B2  A shard that is not the home has no more open than it was granted and has not given back, at each admission, and whenever
    something has come back: a home notes grants before, and returns after they have been there.

What a shard reports is in use before its home knows. So B2 is only asked of an admission when the pool has had a cap in each
version since the last that all shards acknowledged: no report of a cap that appeared is on its way then. A home that starts
anew is reported to before it grants: until its first grant or report, what the home before it granted counts. The pool that
a connection may be forced into (KIP-402, max.connections beside an inter-broker listener) is left out, and so are brokers of
which any event is missing.

A broker that was started again with another number of shards has other homes from then on, and no token of before: each such
span (Survey.spans) is judged by itself. A span whose number of shards no process tells is not judged.

The work is one sort of the moves and connections of each pool and shard.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.audit.moves import BAD, GRANT, LOST, REPORT, RETURN, TOKENS
from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, NOT_JUDGED, UNKNOWN, Check
from turnstile.pipeline.events import arrays, sweep
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Incarnation, Span, Survey
from turnstile.pipeline.events.timeline import UNLIMITED, Timeline

GRANTED, USED = "granted_within_cap", "used_within_grants"
SENTENCE = {
    GRANTED: "every grant was within the cap that its home knew",
    USED: "no shard had more open than it was granted",
}
STEPS = pyarrow.schema(
    [
        ("broker", pyarrow.int32()),
        ("span", pyarrow.int64()),
        ("pool", pyarrow.string()),
        ("shard", pyarrow.int32()),
        ("is_own", pyarrow.bool_()),
        ("at_ns", pyarrow.int64()),
        ("rank", pyarrow.int32()),
        ("epoch", pyarrow.int64()),
        ("what", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("tokens", "change", "version")),
    ]
)
"""What happened to a pool at its home (`is_own`) and at each other shard: moves of tokens (`what`: a number of WHAT, `epoch` of
their home), connections that open and close (what 0, `change`).

`rank` orders what happens at one instant so that less is out: returns and closes come before grants at a home, grants
before admissions and those before returns elsewhere."""
WHAT = {GRANT: 1, REPORT: 2, RETURN: 3, LOST: 4, BAD: 5}
BEYOND = pyarrow.schema(
    [
        ("check", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("at_ns", "open", "tokens", "allowed", "version", "count")),
    ]
)
Spans = Mapping[Incarnation, Span]


def checks(moves: Rows, held: Rows, timeline: Timeline, seen: Survey, incomplete: Collection[int]) -> list[Check]:
    """Both checks. `held`: connections.CONNECTIONS; `incomplete`: brokers of which events are missing."""
    kinds = [kind for kind in sweep.KINDS if timeline.any_limit(kind) and not (kind == "broker" and timeline.protected)]
    if not kinds or not seen.kinds["grant"] + seen.kinds["reclaim"]:
        return [Check(name, HELD, "no moves of tokens to judge", []) for name in (GRANTED, USED)]
    spans = {place: span for place, span in seen.spans().items() if place[0] not in incomplete}
    whole = {place: span for place, span in spans.items() if span.shards}
    steps = moves.each(partial(_moved, whole, kinds), STEPS).and_(held.each(partial(_opened, whole, kinds), STEPS))
    found = steps.by(("broker", "pool"), partial(beyond, timeline), BEYOND).table().to_pylist()
    unread = Counter(row["broker"] for row in found if row["check"] == BAD)
    left_out = {place[0]: 1 for place in [each[:3] for each in seen.processes] if place[0] >= 0 and place not in whole}
    return [_check(name, [row for row in found if row["check"] == name], unread, left_out) for name in (GRANTED, USED)]


def _check(name: str, rows: list[dict[str, Any]], unread: Counter[int], left_out: Mapping[int, int]) -> Check:
    if not rows and unread:
        return Check(
            name, UNKNOWN, "moves of tokens can't be read, or are of a shard that is not their home", [], unread
        )
    if not rows and left_out:
        which = ", ".join(map(str, sorted(left_out)[:5])) + (", ..." if len(left_out) > 5 else "")
        why = f"events of broker {which} are missing, or how many shards it had"
        return Check(name, NOT_JUDGED, why, [], left_out)
    if not rows:
        return Check(name, HELD, SENTENCE[name], [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("count")
    ordered = sorted(rows, key=lambda row: (row["at_ns"], row["broker"], row["pool"], row["shard"]))
    shown = [{key: value for key, value in row.items() if key != "check"} for row in ordered[: sweep.SHOWN]]
    first = shown[0]
    where = f"{counts.total()} times beyond; first {first['pool']} of broker {first['broker']}"
    said = (
        f"its home {first['shard']} had {first['tokens']} granted to others and {first['open']} open, "
        f"{first['allowed']} allowed"
        if name == GRANTED
        else f"shard {first['shard']} had {first['open']} open and {first['tokens']} tokens"
    )
    return Check(name, EXCEEDED, f"{where}: {said}, at mono_ns {first['at_ns']}", shown, counts)


# ---- steps


def _moved(spans: Spans, kinds: Collection[str], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of moves.MOVES, each at its home and at the shard that it was to or from."""
    wanted = arrays.is_one_of(table, "what", (*TOKENS, BAD))
    pool, pools = arrays.codes(table, "pool")
    wanted &= numpy.array([str(name).partition(":")[0] in kinds or name is None for name in pools])[pool]
    span, shards = _spans_of(spans, table)
    mine = numpy.flatnonzero(wanted & (shards > 0))
    what_of, names = arrays.codes(table, "what")
    what = numpy.array([WHAT.get(name or "", 0) for name in names])[what_of[mine]]
    home, peer = arrays.numbers(table, "shard")[mine], arrays.numbers(table, "peer")[mine]
    tokens = arrays.numbers(table, "tokens")[mine]
    is_home = home == numpy.array([crc32((name or "").encode()) for name in pools])[pool[mine]] % shards[mine]
    what = numpy.where(is_home, what, WHAT[BAD])  # only a home moves a pool's tokens
    is_out = (what == WHAT[GRANT]) | (what == WHAT[REPORT])
    places = numpy.concatenate([mine, mine[peer != home]])
    at_home, elsewhere = numpy.arange(len(mine)), numpy.flatnonzero(peer != home)
    both = numpy.concatenate([at_home, elsewhere])
    is_own = numpy.arange(len(both)) < len(at_home)
    # What a dead shard had counts there until its successor is granted something: its last events may come after this.
    counted = numpy.where(is_own, peer[both] != home[both], what[both] != WHAT[LOST])
    taken = table.select(["broker", "pool", "at_ns", "epoch", "version"]).take(pyarrow.array(places))
    return arrays.table_of(
        STEPS,
        span=span[places],
        shard=numpy.where(is_own, home[both], peer[both]),
        is_own=is_own,
        rank=numpy.where(is_own, is_out[both], numpy.where(is_out[both], 1, 3)).astype("i4"),
        what=what[both],
        tokens=numpy.where(counted, tokens[both], 0),
        change=numpy.zeros(len(both), dtype="i8"),
        **{name: taken[name] for name in taken.column_names},
    )


def _opened(spans: Spans, kinds: Collection[str], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of connections.CONNECTIONS in each pool of `kinds`."""
    span, shards = _spans_of(spans, table)
    mine = table.append_column("span", pyarrow.array(span)).append_column("shards", pyarrow.array(shards))
    mine = mine.filter(pyarrow.array(shards > 0))
    tables = [STEPS.empty_table()]
    start_ns, end_ns = arrays.numbers(mine, "admitted_ns"), arrays.numbers(mine, "end_ns", null=sweep.NEVER)
    opens = numpy.flatnonzero(arrays.present(mine, "admitted_ns") & (end_ns > start_ns))
    closes = opens[end_ns[opens] < sweep.NEVER]
    places = numpy.concatenate([opens, closes])
    is_open = numpy.arange(len(places)) < len(opens)
    taken = mine.take(pyarrow.array(places))
    for kind in kinds:
        key, keys = (numpy.zeros(len(places), dtype="i8"), [""]) if kind == "broker" else arrays.codes(taken, kind)
        names = [kind if kind == "broker" else f"{kind}:{name}" for name in keys]
        home = numpy.array([crc32(name.encode()) for name in names])[key] % arrays.numbers(taken, "shards")
        tables.append(
            arrays.table_of(
                STEPS,
                pool=pyarrow.array(names).take(pyarrow.array(key)),
                is_own=arrays.numbers(taken, "shard") == home,
                at_ns=numpy.where(is_open, start_ns[places], end_ns[places]),
                rank=numpy.where(is_open, 2, 0).astype("i4"),
                epoch=numpy.zeros(len(places), dtype="i8"),
                what=numpy.zeros(len(places), dtype="i4"),
                tokens=numpy.zeros(len(places), dtype="i8"),
                change=numpy.where(is_open, 1, -1),
                **{name: taken[name] for name in ("broker", "span", "shard", "version")},
            )
        )
    return pyarrow.concat_tables(tables)


def _spans_of(spans: Spans, table: pyarrow.Table) -> tuple[arrays.Array, arrays.Array]:
    """Of each row its span's number, and how many shards the broker had then; 0 where that is not judged."""
    places = [arrays.numbers(table, name) for name in ("broker", "shard", "epoch")]
    numbers, shards = (arrays.looked_up(places, partial(_of_span, spans, index)) for index in (0, 1))
    return numbers, shards


def _of_span(spans: Spans, index: int, key: tuple[int, ...]) -> int:
    return spans.get((key[0], key[1], key[2]), Span(0, 0))[index]


# ---- what is beyond


def beyond(timeline: Timeline, table: pyarrow.Table) -> pyarrow.Table:
    """BEYOND: what B1 and B2 don't allow among STEPS, the first of each broker; and BAD of brokers whose moves can't be judged."""
    columns = {name: arrays.numbers(table, name) for name in STEPS.names if name not in ("pool", "is_own")}
    pool, pools = arrays.codes(table, "pool")
    broker = columns["broker"]
    bad = {int(each) for each in numpy.unique(broker[columns["what"] == WHAT[BAD]])}
    order = numpy.lexsort([columns["rank"], columns["at_ns"], columns["shard"], pool, columns["span"], broker])
    columns = {name: values[order] for name, values in columns.items()}
    pool, is_own = pool[order], table["is_own"].to_numpy()[order]
    starts = arrays.begins(columns["broker"], columns["span"], pool, columns["shard"])
    booked, opened, admission = _booked(columns, is_own, starts)
    is_grant = is_own & (columns["what"] == WHAT[GRANT])
    is_use = ~is_own & ((columns["change"] > 0) | (columns["what"] == WHAT[RETURN])) & (opened > booked)
    allowed = numpy.where(is_grant, _allowed(timeline, columns, pool, pools, is_grant), booked)
    over = (is_grant & (booked + opened > allowed)) | is_use
    over &= ~numpy.isin(columns["broker"], list(bad))
    rows = []
    for place in numpy.flatnonzero(over):
        of = {
            "broker": int(columns["broker"][place]),
            "pool": pools[pool[place]],
            "shard": int(columns["shard"][place]),
        }
        under, sure_ns = (int(columns[name][admission[place]]) for name in ("version", "at_ns"))
        if is_use[place] and not _is_settled(timeline, of, under, sure_ns, int(booked[place])):
            continue
        version = int(columns["version"][place]) if is_grant[place] else under
        rows.append({**of, "check": GRANTED if is_grant[place] else USED, "at_ns": int(columns["at_ns"][place]),
                     "open": int(opened[place]), "tokens": int(booked[place]), "allowed": int(allowed[place]),
                     "version": version})  # fmt: skip
    return _first(rows, bad)


def _booked(
    columns: Mapping[str, arrays.Array], is_own: arrays.Array, starts: arrays.Array
) -> tuple[arrays.Array, arrays.Array, arrays.Array]:
    """At each step the tokens that its shard has (at home: that are out), how many are open, and where the last admission is."""
    what, epoch = columns["what"], columns["epoch"]
    is_move = what > 0
    begins = is_move & (is_own | (what == WHAT[GRANT]) | (what == WHAT[REPORT]))
    # A home that starts anew, and a shard that does, begin with nothing: from the first grant or report on.
    last = arrays.before(arrays.latest(is_move, starts), starts)
    is_first = (last < 0) | (epoch[last] != epoch) | (~is_own & (what[last] == WHAT[LOST]))
    total = arrays.running(columns["tokens"], starts)
    anew = arrays.latest(begins & is_first, starts)
    base = numpy.where(anew >= 0, (total - columns["tokens"])[anew], 0)
    admission = arrays.latest(columns["change"] > 0, starts)
    return total - base, arrays.running(columns["change"], starts), admission


def _allowed(
    timeline: Timeline,
    columns: Mapping[str, arrays.Array],
    pool: arrays.Array,
    pools: Sequence[str | None],
    wanted: arrays.Array,
) -> arrays.Array:
    """The cap at each wanted row; limits are asked once per broker, version and pool."""
    allowed = numpy.zeros(len(pool), dtype="i8")
    places = numpy.flatnonzero(wanted)
    broker, version = columns["broker"][places], columns["version"][places]
    order, starts = arrays.grouped(broker, version, pool[places])
    caps = []
    for row in order[starts]:
        kind, _, key = str(pools[pool[places[row]]]).partition(":")
        caps.append(timeline.limits(int(version[row]), int(broker[row])).cap(kind, key))
    allowed[places[order]] = numpy.array(caps, dtype="i8")[arrays.group_of(starts, len(order))] if caps else 0
    return allowed


def _is_settled(timeline: Timeline, of: Mapping[str, Any], version: int, at_ns: int, tokens: int) -> bool:
    """Whether no report of what is in use can be on its way: a cap in each version since the last that all had."""
    if tokens < 0:
        return True
    kind, _, key = of["pool"].partition(":")
    versions = timeline.unsettled(at_ns, version)
    caps = (timeline.limits(each, of["broker"]).cap(kind, key) for each in versions)
    return bool(versions) and all(cap < UNLIMITED for cap in caps)


def _first(rows: Sequence[dict[str, Any]], bad: Collection[int]) -> pyarrow.Table:
    found = pyarrow.Table.from_pylist([{**row, "count": 0} for row in rows], BEYOND)
    is_use = numpy.array([row["check"] == USED for row in rows], dtype="i8")
    key = 2 * arrays.numbers(found, "broker").astype("i8") + is_use
    places, counts = arrays.first_of_each(numpy.arange(len(rows)), key, arrays.numbers(found, "at_ns"), sweep.SHOWN)
    found = found.take(pyarrow.array(places)).set_column(
        BEYOND.get_field_index("count"), "count", pyarrow.array(counts)
    )
    return pyarrow.concat_tables(
        [found, pyarrow.Table.from_pylist([{"check": BAD, "broker": each} for each in bad], BEYOND)]
    )
