"""Moves of tokens and connections as steps of each pool, at its home and at each other shard: what grant_checks.py judges."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow

from shards.ownership import hash_of
from turnstile.pipeline.audit.moves import BAD, GRANT, LOST, REPORT, RETURN, TOKENS
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.survey import Span

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
        ("is_carried", pyarrow.bool_()),
    ]
)
"""The events of a pool at its home (`is_own`) and at each other shard: moves of tokens (`what`: a number of WHAT, `epoch` of
their home), connections that open and close (what 0, `change`).

`is_carried`: no step, but what was so before them (token_books.py).

`rank` orders what happens at one instant so that less is out: returns and closes come before grants at a home, grants
before admissions and those before returns elsewhere."""
WHAT = {GRANT: 1, REPORT: 2, RETURN: 3, LOST: 4, BAD: 5}
Spans = Mapping[Incarnation, Span]


def moved(spans: Spans, kinds: Collection[str], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of moves.MOVES, each at its home and at the shard that it was to or from."""
    wanted = arrays.is_one_of(table, "what", (*TOKENS, BAD))
    pool, pools = arrays.codes(table, "pool")
    wanted &= numpy.array([str(name).partition(":")[0] in kinds or name is None for name in pools])[pool]
    span, shards = _spans_of(spans, table)
    chosen = numpy.flatnonzero(wanted & (shards > 0))
    what_of, names = arrays.codes(table, "what")
    what = numpy.array([WHAT.get(name or "", 0) for name in names])[what_of[chosen]]
    home, peer = arrays.numbers(table, "shard")[chosen], arrays.numbers(table, "peer")[chosen]
    tokens = arrays.numbers(table, "tokens")[chosen]
    is_home = home == numpy.array([hash_of(name or "") for name in pools])[pool[chosen]] % shards[chosen]
    what = numpy.where(is_home, what, WHAT[BAD])  # only a home moves a pool's tokens
    is_out = (what == WHAT[GRANT]) | (what == WHAT[REPORT])
    places = numpy.concatenate([chosen, chosen[peer != home]])
    at_home, elsewhere = numpy.arange(len(chosen)), numpy.flatnonzero(peer != home)
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
        is_carried=numpy.zeros(len(both), dtype=bool),
        **{name: taken[name] for name in taken.column_names},
    )


def opened(spans: Spans, kinds: Collection[str], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of connections.CONNECTIONS in each pool of `kinds`."""
    span, shards = _spans_of(spans, table)
    rows = table.append_column("span", pyarrow.array(span)).append_column("shards", pyarrow.array(shards))
    rows = rows.filter(pyarrow.array(shards > 0))
    tables = [STEPS.empty_table()]
    start_ns, end_ns = arrays.numbers(rows, "admitted_ns"), arrays.numbers(rows, "end_ns", null=open_counts.NEVER)
    opens = numpy.flatnonzero(arrays.present(rows, "admitted_ns") & (end_ns > start_ns))
    closes = opens[end_ns[opens] < open_counts.NEVER]
    places = numpy.concatenate([opens, closes])
    is_open = numpy.arange(len(places)) < len(opens)
    taken = rows.take(pyarrow.array(places))
    for kind in kinds:
        is_one = kind in open_counts.ONE_A_BROKER
        key, keys = (numpy.zeros(len(places), dtype="i8"), [""]) if is_one else arrays.codes(taken, kind)
        names = [kind if is_one else f"{kind}:{name}" for name in keys]
        home = numpy.array([hash_of(name) for name in names])[key] % arrays.numbers(taken, "shards")
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
                is_carried=numpy.zeros(len(places), dtype=bool),
                **{name: taken[name] for name in ("broker", "span", "shard", "version")},
            )
        )
    return pyarrow.concat_tables(tables)


class _SpansOfRows(NamedTuple):
    """The number of each row's span, and how many shards the broker had then; 0 where that is not judged."""

    numbers: arrays.Array
    shards: arrays.Array


def _spans_of(spans: Spans, table: pyarrow.Table) -> _SpansOfRows:
    places = [arrays.numbers(table, name) for name in ("broker", "shard", "epoch")]
    numbers, shards = (arrays.looked_up(places, partial(_of_span, spans, index)) for index in (0, 1))
    return _SpansOfRows(numbers, shards)


def _of_span(spans: Spans, index: int, key: tuple[int, ...]) -> int:
    return spans.get((key[0], key[1], key[2]), Span(0, 0))[index]
