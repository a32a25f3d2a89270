"""Connections of a journal of this machine, as inputs/journal.py has them, without Spark.

killed_is_closed  A connection without a close whose shard was started again had ended by then, and counts as closed at that start:
    its process was killed.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute

from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.journal import EVENTS, here
from turnstile.pipeline.events.logins import of_users
from turnstile.pipeline.events.open_counts import NEVER
from turnstile.pipeline.inputs.entities import USER, EntityType
from turnstile.pipeline.inputs.plain import ARRIVALS, DEFAULT_LISTENER

_KEYS = ("broker", "shard", "epoch", "conn")
_READ = ("ts_us", *_KEYS, "ip", "listener", "port", "mono_ns", "kind")
_OF_USERS = ("user", "reason")
_RANK = pyarrow.field("rank", pyarrow.int64())
_STARTS = ("ts_us", "broker", "shard", "epoch")


def placed(folders: Sequence[Path], at_most: int, by: EntityType) -> pyarrow.Table | None:
    """ARRIVALS with `rank`, in no order, of the connections that took a place in the pool of their entity; None of a larger
    journal. Raises NoInput as `journal.here` does."""
    is_by_user = by.name == USER.name
    names = (*_READ, *_OF_USERS) if is_by_user else _READ
    columns = pyarrow.schema([field for field in EVENTS if field.name in names])
    journal = here(folders, at_most=2 * at_most, columns=columns)
    if journal is None:
        return None
    taken = "authenticated" if is_by_user else "admitted"
    table = journal.rows.of_kinds((taken, "closed"), names).table()
    if is_by_user:
        table = of_users(table.filter(pyarrow.array(arrays.present(table, "user"))))
    keys = [arrays.numbers(table, name, null=-1) for name in _KEYS]
    keys += [arrays.codes(table, name)[0] for name in ("ip", "listener")]
    order, starts = arrays.grouped(*keys, arrays.numbers(table, "port", null=-1))
    if not len(starts):
        return pyarrow.table({field.name: pyarrow.nulls(0, field.type) for field in (*ARRIVALS, _RANK)})
    is_taken = arrays.is_one_of(table, "kind", (taken,))[order]
    ts_us, mono_ns = arrays.numbers(table, "ts_us")[order], arrays.numbers(table, "mono_ns")[order]
    opened_us, rank = (numpy.minimum.reduceat(numpy.where(is_taken, each, NEVER), starts) for each in (ts_us, mono_ns))
    closed_us = numpy.maximum.reduceat(numpy.where(is_taken, -1, ts_us), starts)
    again_us = _started_again(
        journal.rows.of_kinds(("shard_up",), _STARTS).table(), *(key[order[starts]] for key in keys[:3])
    )
    closed_us = numpy.where(closed_us < 0, again_us, closed_us)
    never = opened_us == NEVER
    first = table.select(["ip", "listener"]).take(pyarrow.array(order[starts]))
    bad = pyarrow.array(numpy.where(never, "closed, but never seen admitted", ""), pyarrow.string())
    found = pyarrow.table(
        {
            "ip": first["ip"].cast(pyarrow.string()),
            "opened_us": pyarrow.array(opened_us, mask=never),
            "closed_us": pyarrow.array(numpy.maximum(closed_us, opened_us), mask=closed_us < 0),
            "listener": pyarrow.compute.fill_null(first["listener"].cast(pyarrow.string()), DEFAULT_LISTENER),
            "bad": pyarrow.compute.if_else(pyarrow.array(never), bad, None),
            "rank": pyarrow.array(rank, mask=never),
        }
    )
    return found.filter(found["bad"].is_null()) if is_by_user else found  # a client that never logged in is no row


def _started_again(ups: pyarrow.Table, *places: arrays.Array) -> arrays.Array:
    """The time by the wall clock at which the shard of each place (broker, shard, epoch) was next started; -1: it was not.
    `ups`: `shard_up` events."""
    of_shards = ups.filter(pyarrow.array(arrays.numbers(ups, "broker") >= 0))
    starts: dict[tuple[int, int], dict[int, int]] = {}
    for row in of_shards.to_pylist():
        starts.setdefault((row["broker"], row["shard"]), {})[row["epoch"]] = row["ts_us"]

    def next_start(place: tuple[int, ...]) -> int:
        epochs = starts.get((place[0], place[1]), {})
        later = [epoch for epoch in epochs if epoch > place[2]] if place[2] in epochs else []
        return epochs[min(later)] if later else -1

    return arrays.looked_up(places, next_start)
