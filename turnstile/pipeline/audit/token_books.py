"""The books of each pool and shard: tokens that it has (at home: that are out), and connections that it has open, at every step.

A prefix sum that begins anew where a home, or a shard, does. So it splits in time: what a slice says of each pool and
shard (ENDS) is put after what was so before it, and the next slice begins with two rows of that (`carried`), of the pools and
shards that occur in it.

slices_have_the_books_of_one_piece  a slice with what is carried into it has the books of the same steps in one piece
first_move_depends_on_the_slice_before  whether the first move in a slice begins anew depends on the move before it, so a slice
    says both; for every later move it is known in the slice
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.audit.moves import GRANT, LOST, REPORT
from turnstile.pipeline.audit.token_steps import STEPS, WHAT
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import Array
from turnstile.pipeline.events.rows import Carry

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


_KEYS = pyarrow.schema([ENDS.field(name) for name in KEY])


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
    """The books of STEPS in any order."""
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
    """True for each step that is a move with which books may begin."""
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
    """The state of each pool and shard after some slices; an array of each, by the number of the pool and shard."""

    what: Array
    epoch: Array
    booked: Array
    open: Array
    version: Array
    at_ns: Array
    is_own: Array

    @classmethod
    def of(cls, count: int) -> "_Known":
        """Nothing yet."""
        what, epoch, booked, opened, version = numpy.zeros((5, count), "i8")
        return cls(what, epoch, booked, opened, version, numpy.full(count, -1), numpy.zeros(count, dtype=bool))

    def add(self, chosen: Array, end: Mapping[str, Array]) -> None:
        """One more slice, whose ENDS are those of the pools and shards `chosen` (first_move_depends_on_the_slice_before)."""
        what, at_ns = self.what[chosen], self.at_ns[chosen]
        is_new = (what == 0) | (self.epoch[chosen] != end["first_epoch"]) | (~end["is_own"] & (what == WHAT[LOST]))
        onto = end["tokens"] + numpy.where(end["begins"] & is_new, 0, self.booked[chosen])
        self.booked[chosen] = numpy.where(end["is_anew"], end["booked"], onto)
        self.open[chosen] += end["change"]
        for name in ("what", "epoch"):
            known = getattr(self, name)
            known[chosen] = numpy.where(end["what"] > 0, end[name], known[chosen])
        self.version[chosen] = numpy.where(end["at_ns"] >= 0, end["version"], self.version[chosen])
        self.at_ns[chosen] = numpy.where(end["at_ns"] >= 0, end["at_ns"], at_ns)
        self.is_own[chosen] = end["is_own"]

    def steps(self, chosen: Array, keys: pyarrow.Table) -> pyarrow.Table:
        """Some books as STEPS: a move, if there was one, and the last admission, before all that follows."""
        moved = chosen[self.what[chosen] > 0]
        admitted = chosen[(self.open[chosen] != 0) | (self.at_ns[chosen] >= 0)]
        both = numpy.concatenate([moved, admitted])
        is_move = numpy.arange(len(both)) < len(moved)
        named = keys.take(pyarrow.array(both))
        return arrays.table_of(
            STEPS,
            at_ns=numpy.where(is_move, -1, self.at_ns[both]),
            rank=numpy.where(is_move, 0, 2),
            epoch=self.epoch[both],
            what=numpy.where(is_move, self.what[both], 0),
            tokens=numpy.where(is_move, self.booked[both], 0),
            change=numpy.where(is_move, 0, self.open[both]),
            version=self.version[both],
            is_own=self.is_own[both],
            is_carried=numpy.ones(len(both), dtype=bool),
            **{name: named[name] for name in KEY},
        )


def carried(slices: Sequence[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """STEPS that stand for all before each slice, of the pools and shards that occur in it. `slices`: ENDS of each, in order of
    time."""
    every = pyarrow.concat_tables([_KEYS.empty_table(), *(each.select(KEY).cast(_KEYS) for each in slices)])
    order, starts = arrays.grouped(
        *(arrays.codes(every, name)[0] if name == "pool" else arrays.numbers(every, name) for name in KEY)
    )
    number = numpy.empty(len(order), "i8")
    number[order] = arrays.group_of(starts, len(order))
    keys = every.take(pyarrow.array(order[starts]))
    known, first = _Known.of(len(starts)), 0
    for each in slices:
        chosen = number[first : first + each.num_rows]
        yield known.steps(chosen, keys)
        known.add(chosen, {name: each[name].to_numpy() for name in ENDS.names if name not in KEY})
        first += each.num_rows


CARRY = Carry(ends, ENDS, carried)
