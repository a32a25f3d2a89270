"""The arrivals at all brokers of a cluster, of which a rate of the whole cluster lets some in: as a journal of theirs has them, or
another log of connections.

arrived_is_asked  An arrival is a connection that asks the rate of the whole cluster: also one that another limit refused later, as
    that stays recorded. What BEFORE_THE_RATE refused did not come so far.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.journal import EVENTS, read_part
from turnstile.pipeline.events.parts import Unreadable, broker_of, parts_in
from turnstile.pipeline.inputs.entities import EntityType

BEFORE_THE_RATE = ("proxy_header", "fd_limit", "core_rate")
"""Reasons of refusals that come before the rate of the cluster is asked (broker/accept/admission_steps.py)."""
KINDS = ("admitted", "refused")
TOLD = ("shard_up", "config")
"""Kinds of events that say how many brokers there were, and the windows of their rates."""
ARRIVED = pyarrow.schema(
    [
        ("kind", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("shard", pyarrow.int32()),
        ("epoch", pyarrow.int64()),
        ("at_ns", pyarrow.int64()),
        ("wall_us", pyarrow.int64()),
        ("detail", pyarrow.string()),
    ]
)
"""An arrival, or an event of TOLD. `at_ns`: when it arrived, of mono_ns; null in other logs than a journal. `wall_us`: the same by
the wall clock."""
DDL = "kind string, broker int, shard int, epoch long, at_ns long, wall_us long, detail string"
READ = ("ts_us", "mono_ns", "broker", "shard", "epoch", "kind", "reason", "held_ms", "detail")


class JournalArrivals(NamedTuple):
    """ARRIVED, and the parts of the journal that can't be read."""

    arrived: pyarrow.Table
    unreadable: list[Unreadable]


def of_journal(folders: Sequence[Path]) -> JournalArrivals:
    """ARRIVED of a journal of this machine, read part after part."""
    parts = parts_in(folders)
    columns = pyarrow.schema([EVENTS.field(name) for name in READ])
    tables, unreadable = [ARRIVED.empty_table()], list(parts.unreadable)
    for path in parts.whole:
        try:
            tables.append(_of_events(read_part(path, columns)))
        except (OSError, pyarrow.ArrowException):
            unreadable.append(Unreadable(f"{path} is damaged; its events are missing.", broker_of(path)))
    return JournalArrivals(pyarrow.concat_tables(tables), unreadable)


def _of_events(events: pyarrow.Table) -> pyarrow.Table:
    is_arrival = arrays.is_one_of(events, "kind", KINDS) & ~arrays.is_one_of(events, "reason", BEFORE_THE_RATE)
    kept = events.filter(pyarrow.array(is_arrival | arrays.is_one_of(events, "kind", TOLD)))
    held_ns = (arrays.numbers(kept, "held_ms") * 1_000_000).astype("i8")
    same = {name: kept[name] for name in ("broker", "shard", "epoch")}
    detail = pyarrow.compute.if_else(pyarrow.array(arrays.is_one_of(kept, "kind", TOLD)), kept["detail"], None)
    return arrays.table_of(
        ARRIVED,
        kind=kept["kind"],
        at_ns=arrays.numbers(kept, "mono_ns") - held_ns,
        wall_us=arrays.numbers(kept, "ts_us") - held_ns // 1000,
        detail=detail,
        **same,
    )


def of_log(rows: pyarrow.Table, by: EntityType) -> pyarrow.Table:
    """ARRIVED of rows of a log that is no journal, with their `ip`, `opened_us` and `bad`: those that can be used."""
    usable = rows.filter(pyarrow.compute.is_null(rows["bad"]))
    usable = usable.filter(pyarrow.array(by.columns(usable["ip"].combine_chunks()).is_usable))
    count = usable.num_rows
    return arrays.table_of(
        ARRIVED,
        kind=pyarrow.repeat("admitted", count),
        wall_us=usable["opened_us"],
        at_ns=pyarrow.nulls(count, pyarrow.int64()),
        detail=pyarrow.nulls(count, pyarrow.string()),
        **{name: numpy.zeros(count, "i8") for name in ("broker", "shard", "epoch")},
    )
