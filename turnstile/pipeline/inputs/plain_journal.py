"""Admitted connections of a journal of this machine, as inputs/journal.py has them, without Spark."""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.journal import EVENTS, here
from turnstile.pipeline.events.sweep import NEVER
from turnstile.pipeline.inputs.plain import DEFAULT_LISTENER

_KEYS = ("broker", "shard", "epoch", "conn")
_READ = ("ts_us", *_KEYS, "ip", "listener", "port", "mono_ns", "kind")
_COLUMNS = pyarrow.schema([field for field in EVENTS if field.name in _READ])


def admitted(folders: Sequence[Path], at_most: int) -> pyarrow.Table | None:
    """ARRIVALS with `rank`, in no order; None of a larger journal. Raises NoInput as `journal.here` does."""
    journal = here(folders, at_most=2 * at_most, columns=_COLUMNS)
    if journal is None:
        return None
    table = journal.rows.of_kinds(("admitted", "closed"), _READ).table()
    keys = [arrays.numbers(table, name, null=-1) for name in _KEYS]
    keys += [arrays.codes(table, name)[0] for name in ("ip", "listener")]
    order, starts = arrays.grouped(*keys, arrays.numbers(table, "port", null=-1))
    if not len(starts):
        return None
    is_admission = arrays.is_one_of(table, "kind", ("admitted",))[order]
    ts_us, mono_ns = arrays.numbers(table, "ts_us")[order], arrays.numbers(table, "mono_ns")[order]
    opened_us, rank = (
        numpy.minimum.reduceat(numpy.where(is_admission, each, NEVER), starts) for each in (ts_us, mono_ns)
    )
    closed_us = numpy.maximum.reduceat(numpy.where(is_admission, -1, ts_us), starts)
    never = opened_us == NEVER
    first = table.select(["ip", "listener"]).take(pyarrow.array(order[starts]))
    bad = pyarrow.array(numpy.where(never, "closed, but never seen admitted", ""), pyarrow.string())
    return pyarrow.table(
        {
            "ip": first["ip"].cast(pyarrow.string()),
            "opened_us": pyarrow.array(opened_us, mask=never),
            "closed_us": pyarrow.array(numpy.maximum(closed_us, opened_us), mask=closed_us < 0),
            "listener": pyarrow.compute.fill_null(first["listener"].cast(pyarrow.string()), DEFAULT_LISTENER),
            "bad": pyarrow.compute.if_else(pyarrow.array(never), bad, None),
            "rank": pyarrow.array(rank, mask=never),
        }
    )
