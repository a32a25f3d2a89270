"""The books of each pool and shard: tokens that it has (at home: that are out), and connections that it has open, at every step.

A prefix sum that begins anew where a home, or a shard, does. So it splits in time: what a slice says of each pool and
shard (ENDS) is put after what was so before it, and the next slice begins with two rows of that (`carried`).

K1  a slice with what is carried into it has the books of the same steps in one piece
K2  whether the first move in a slice begins anew depends on the move before it, so a slice says both; for every later move it
    is known in the slice
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.audit.moves import GRANT, LOST, REPORT
from turnstile.pipeline.audit.token_steps import STEPS, WHAT
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.rows import Carry

Array = arrays.Array
KEY = ("broker", "span", "pool", "shard")
ENDS = pyarrow.schema(
    [
        *(STEPS.field(name) for name in (*KEY, "is_own")),
        *((name, pyarrow.int64()) for name in ("change", "tokens", "booked")),
        *((name, pyarrow.bool_()) for name in ("is_anew", "begins")),
        *((name, pyarrow.int64()) for name in ("first_epoch", "what", "epoch", "version", "at_ns")),
    ]
)
"""Of a pool and shard in one slice: the sums of `change` and `tokens`; `is_anew`: whether a move after the first began anew, with
`booked` since then; whether the first may (`begins`) and its epoch; `what` (0: none) and epoch of the last; version and at_ns
of the last admission (-1: none)."""


class Books(NamedTuple):
    """STEPS in order, pool after pool and shard after shard, as columns; `pool` indexes `pools`, groups begin at `starts`.

    booked, open   at each step
    admission      the place of the last admission at or before it, -1 without any
    anew           the place of the last move that began anew
    """

    columns: Mapping[str, Array]
    pool: Array
    pools: list[str | None]
    starts: Array
    booked: Array
    open: Array
    admission: Array
    anew: Array


def books(table: pyarrow.Table) -> Books:
    """Of STEPS in any order."""
    columns = {name: table[name].to_numpy() for name in ("is_own", "is_carried")}
    columns |= {name: arrays.numbers(table, name) for name in STEPS.names if name not in (*columns, "pool")}
    pool, pools = arrays.codes(table, "pool")
    order = numpy.lexsort(
        [columns["rank"], columns["at_ns"], columns["shard"], pool, columns["span"], columns["broker"]]
    )
    columns = {name: values[order] for name, values in columns.items()}
    pool = pool[order]
    starts = arrays.begins(columns["broker"], columns["span"], pool, columns["shard"])
    what, epoch = columns["what"], columns["epoch"]
    # A home that starts anew, and a shard that does, begin with nothing: from the first grant or report on.
    last = arrays.before(arrays.latest(what > 0, starts), starts)
    is_first = (last < 0) | (epoch[last] != epoch) | (~columns["is_own"] & (what[last] == WHAT[LOST]))
    total = arrays.running(columns["tokens"], starts)
    anew = arrays.latest(_begins(columns) & is_first, starts)
    base = numpy.where(anew >= 0, (total - columns["tokens"])[anew], 0)
    is_noted = columns["is_carried"] & (what == 0) & (columns["at_ns"] >= 0)
    admission = arrays.latest((columns["change"] > 0) | is_noted, starts)
    return Books(columns, pool, pools, starts, total - base, arrays.running(columns["change"], starts), admission, anew)


def _begins(columns: Mapping[str, Array]) -> Array:
    """Whether each step is a move with which books may begin."""
    what = columns["what"]
    begins: Array = (what > 0) & (columns["is_own"] | (what == WHAT[GRANT]) | (what == WHAT[REPORT]))
    return begins


def ends(table: pyarrow.Table) -> pyarrow.Table:
    """ENDS of the STEPS of one slice."""
    found = books(table)
    columns, starts = found.columns, found.starts
    rows = len(found.pool)
    if not rows:
        return ENDS.empty_table()
    last = numpy.append(starts[1:], rows) - 1
    is_move = columns["what"] > 0
    first_move = numpy.minimum.reduceat(numpy.where(is_move, numpy.arange(rows), rows), starts)
    has_move, first = first_move < rows, numpy.minimum(first_move, rows - 1)
    last_move = arrays.latest(is_move, starts)[last]
    admission = found.admission[last]
    names = pyarrow.array(found.pools, pyarrow.string())
    return arrays.table_of(
        ENDS,
        pool=names.take(pyarrow.array(found.pool[starts])),
        **{name: columns[name][starts] for name in ("broker", "span", "shard", "is_own")},
        change=found.open[last],
        tokens=arrays.running(columns["tokens"], starts)[last],
        booked=found.booked[last],
        is_anew=found.anew[last] > first_move,
        begins=has_move & _begins(columns)[first],
        first_epoch=columns["epoch"][first],
        what=numpy.where(has_move, columns["what"][last_move], 0),
        epoch=columns["epoch"][last_move],
        version=numpy.where(admission >= 0, columns["version"][admission], 0),
        at_ns=numpy.where(admission >= 0, columns["at_ns"][admission], -1),
    )


class _Known(NamedTuple):
    """What is so of a pool and shard after some slices."""

    what: int = 0
    epoch: int = 0
    booked: int = 0
    open: int = 0
    version: int = 0
    at_ns: int = -1

    def after(self, end: Mapping[str, Any]) -> "_Known":
        """And after one more, of which ENDS is given (K2)."""
        is_new = self.what == 0 or self.epoch != end["first_epoch"]
        is_new |= not end["is_own"] and self.what == WHAT[LOST]
        if end["is_anew"]:
            booked = end["booked"]
        else:
            booked = end["tokens"] + (0 if end["begins"] and is_new else self.booked)
        found = self._replace(booked=booked, open=self.open + end["change"])
        if end["what"]:
            found = found._replace(what=end["what"], epoch=end["epoch"])
        if end["at_ns"] >= 0:
            found = found._replace(version=end["version"], at_ns=end["at_ns"])
        return found

    def rows(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The same as STEPS: a move, if there was one, and the last admission, before all that follows."""
        same = {**key, "is_carried": True, "tokens": 0, "change": 0, "version": self.version, "epoch": self.epoch}
        move = {**same, "at_ns": -1, "rank": 0, "what": self.what, "tokens": self.booked}
        admission = {**same, "at_ns": self.at_ns, "rank": 2, "what": 0, "change": self.open}
        return [*([move] if self.what else []), *([admission] if self.open or self.at_ns >= 0 else [])]


def carried(slices: Sequence[pyarrow.Table]) -> list[pyarrow.Table]:
    """STEPS that stand for all before each slice. `slices`: ENDS of each, in order of time."""
    known: dict[tuple[Any, ...], tuple[dict[str, Any], _Known]] = {}
    found = []
    for each in slices:
        rows = [row for key, of in known.values() for row in of.rows(key)]
        found.append(pyarrow.Table.from_pylist(rows, STEPS))
        for end in each.to_pylist():
            key = {name: end[name] for name in (*KEY, "is_own")}
            place = tuple(end[name] for name in KEY)
            _, before = known.get(place, ({}, _Known()))
            known[place] = key, before.after(end)
    return found


CARRY = Carry(ends, ENDS, carried)
