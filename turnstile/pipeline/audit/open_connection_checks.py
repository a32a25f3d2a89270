"""Open connections of a pool never beyond the cap in force, for every broker, listener and address, over TLS and over all brokers.

With an inter-broker listener, KIP-402 lets `max.connections` be passed by its connections: for each, the one elsewhere that
is idle longest is closed (`max_connections`). That takes the shards a moment: a shard that has not heard of it yet may let in
a connection by a token that it had before. So a connection of the inter-broker listener counts in the broker's pool, for
connections of other listeners, only ROOM_NS after it got in. `kafka_connections_max` is exact.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow
import pyarrow.compute

from shards.limits.caps import CLUSTER
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, Check
from turnstile.pipeline.audit.connections import CONNECTIONS
from turnstile.pipeline.audit.ssl_connections import are_over_tls, over_tls
from turnstile.pipeline.audit.whole_cluster import broker_text, of_cluster
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.timeline import Timeline

INVOLVED = 20
ROOM_NS = 10_000_000_000
_INVOLVED = pyarrow.schema([("place", pyarrow.int64()), ("start_ns", pyarrow.int64()), ("name", pyarrow.string())])
NAMES = {"broker": "broker_cap", "listener": "listener_cap", "ssl": "ssl_cap", "ip": "ip_cap", CLUSTER: "cluster_cap"}
_WHERE_CAPPED = ("ssl", CLUSTER)
"""Kinds whose check is shown where they have a cap."""


class _Excesses(NamedTuple):
    """Excesses of one kind of pool: the first of each broker in order of time, and how many each broker has in all."""

    first: list[TableRow]
    counts: Counter[int]


def checks(connections: Rows, timeline: Timeline, count: int) -> list[Check]:
    """A check per kind of pool; of _WHERE_CAPPED where it has a cap. `connections`: connections.CONNECTIONS, `count` of them."""
    kinds = [kind for kind in (*open_counts.KINDS, *_WHERE_CAPPED) if timeline.any_limit(kind)]
    found = _over(connections, timeline, kinds) if kinds and count else {}
    _name_involved(connections, timeline, [each for kind in kinds if kind in found for each in found[kind].first])
    shown = [*open_counts.KINDS, *(kind for kind in _WHERE_CAPPED if kind in kinds)]
    return [_check(kind, kind in kinds, found.get(kind), count) for kind in shown]


def _check(kind: str, is_limited: bool, found: _Excesses | None, count: int) -> Check:
    name = NAMES[kind]
    if not is_limited:
        return Check(name, HELD, "no cap was set", [])
    if found is None:
        return Check(name, HELD, f"{count} connections, never more open than allowed", [])
    first = found.first[0]
    of = broker_text(first["broker"])
    pool = {"broker": of, "ssl": f"TLS of {of}", CLUSTER: of}.get(kind, f"{kind} {first['pool']} of {of}")
    detail = (
        f"{found.counts.total()} admissions beyond the cap; first {pool}: {first['open']} open, "
        f"{first['allowed']} allowed, at mono_ns {first['at_ns']}"
    )
    return Check(name, EXCEEDED, detail, found.first, found.counts)


def _over(connections: Rows, timeline: Timeline, kinds: Sequence[str]) -> dict[str, _Excesses]:
    """Kind of pool -> what is beyond, for kinds that have anything."""
    protected = timeline.protected
    if not protected:
        rows = _over_any_cap(connections, timeline, kinds)
    else:
        rows = _over_any_cap(connections, timeline.without_slots(), kinds)
        later = connections.each(partial(_with_room, protected), open_counts.STEPS)
        rows += _found(later, timeline.only_slots(), ["broker"])
    found: dict[str, _Excesses] = {}
    for kind in {each["kind"] for each in rows}:
        of_kind = sorted((each for each in rows if each["kind"] == kind), key=lambda each: each["at_ns"])
        counts: Counter[int] = Counter()
        for each in of_kind:
            counts[each["broker"]] += each.pop("excess")
        found[kind] = _Excesses(of_kind[: open_counts.SHOWN], counts)
    return found


def _over_any_cap(connections: Rows, timeline: Timeline, kinds: Sequence[str]) -> list[TableRow]:
    steps = connections.each(open_counts.steps, open_counts.STEPS)
    rows = _found(steps, timeline, [kind for kind in kinds if kind not in _WHERE_CAPPED])
    if CLUSTER in kinds:
        rows += _found(steps.each(of_cluster, open_counts.STEPS), timeline, [CLUSTER])
    if "ssl" in kinds:
        of_tls = connections.each(partial(over_tls, timeline), CONNECTIONS)
        rows += _found(of_tls.each(open_counts.steps, open_counts.STEPS), timeline, ["ssl"])
    return rows


def _found(steps: Rows, timeline: Timeline, kinds: Sequence[str]) -> list[TableRow]:
    """Rows of open_counts.EXCESS."""
    found = steps.swept(kinds, partial(open_counts.over_the_cap, timeline), open_counts.EXCESS, closes_first=True)
    rows: list[TableRow] = found.to_pylist()
    return rows


def _with_room(protected: Sequence[str], connections: pyarrow.Table) -> pyarrow.Table:
    """open_counts.STEPS, in which connections of these listeners count ROOM_NS later, and not at all if they close before."""
    is_protected = arrays.is_one_of(connections, "listener", protected)
    later = pyarrow.compute.add(connections["admitted_ns"], pyarrow.array(numpy.where(is_protected, ROOM_NS, 0)))
    return open_counts.steps(
        connections.set_column(connections.schema.get_field_index("admitted_ns"), "admitted_ns", later)
    )


def _name_involved(connections: Rows, timeline: Timeline, excesses: list[TableRow]) -> None:
    """Puts into each excess the `connections` open in its pool then, the latest INVOLVED, as broker/shard/epoch/number."""
    if not excesses:
        return
    for each in excesses:
        each["connections"] = []
    found = connections.each(partial(_involved, timeline, excesses), _INVOLVED).table().to_pylist()
    for row in sorted(found, key=lambda row: (row["place"], -row["start_ns"])):
        names = excesses[row["place"]]["connections"]
        if len(names) < INVOLVED:
            names.append(row["name"])


def _involved(timeline: Timeline, excesses: Sequence[TableRow], table: pyarrow.Table) -> pyarrow.Table:
    """The latest INVOLVED among some connections for each excess."""
    start_ns, end_ns = arrays.numbers(table, "admitted_ns"), arrays.numbers(table, "end_ns", null=open_counts.NEVER)
    is_counted, broker = arrays.present(table, "admitted_ns"), arrays.numbers(table, "broker")
    rows = []
    for place, each in enumerate(excesses):
        is_mine = is_counted & (start_ns <= each["at_ns"]) & (end_ns > each["at_ns"])
        is_mine &= (each["kind"] == CLUSTER) | (broker == each["broker"])
        if each["kind"] == "ssl":
            is_mine &= are_over_tls(timeline, table)
        elif each["kind"] not in open_counts.ONE_A_BROKER:
            is_mine &= arrays.is_one_of(table, each["kind"], (each["pool"],))
        places = numpy.flatnonzero(is_mine)
        places = places[numpy.argsort(-start_ns[places], kind="stable")][:INVOLVED]
        for row in table.take(pyarrow.array(places)).to_pylist():
            name = "/".join(str(row[column]) for column in ("broker", "shard", "epoch", "conn"))
            rows.append({"place": place, "start_ns": row["admitted_ns"], "name": name})
    return pyarrow.Table.from_pylist(rows, _INVOLVED)
