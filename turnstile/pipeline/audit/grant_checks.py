"""Checks that each home kept its books and each shard stayed within its grants. The books are computed again from the moves.

granted_within_the_cap  A grant leaves a home within the cap of its version: what is out to other shards, plus its own open
    connections.
open_within_what_was_granted  A shard that is not the home has no more open than it was granted and has not given back, at each
    admission, and whenever something has come back: a home journals a grant before it sends it, and a return after it has
    arrived.

What a shard reports is in use before its home knows. So open_within_what_was_granted judges an admission only if every
version since the last acknowledged one has a cap. Then no report about a new cap can be on its way. A restarted home grants
only after the reports. Until its first grant or report its predecessor's grants count. The pool that a connection may be
forced into (KIP-402, max.connections beside an inter-broker listener) is left out, and so are brokers of which any event is
missing.

The tokens of the pool `cluster` are judged likewise, as those of one broker whose shards are those of all (whole_cluster.py), if no
event of any broker is missing. Where a version has no such cap, no connection holds one of them (counted_while_capped,
shards/tokens/cluster_pool.py). So a return is judged by every version stored by then.

A broker that was started again with another number of shards has other homes from then on, and no token of before: each such
span (Survey.spans) is judged by itself. A span is not judged if no process says how many shards it had.

The work is one sort of the moves and connections of each pool and shard. A pool with very many of them is cut in time
(token_books.py).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from shards.limits.caps import CLUSTER
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUDGED, UNKNOWN, Check
from turnstile.pipeline.audit.connections import CONNECTIONS
from turnstile.pipeline.audit.moves import BAD, GRANT, MOVES, RETURN
from turnstile.pipeline.audit.ssl_connections import over_tls
from turnstile.pipeline.audit.token_books import CARRY, Books, books
from turnstile.pipeline.audit.token_steps import STEPS, WHAT, Spans, moved, opened
from turnstile.pipeline.audit.whole_cluster import Members, as_members, broker_text, members, moves_of_cluster
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline
from turnstile.pipeline.events.version_limits import UNLIMITED

GRANTED, USED = "granted_within_cap", "used_within_grants"
SENTENCE = {
    GRANTED: "no more of a cap was handed to processes than it has",
    USED: "no process had more open than it was handed",
}
BEYOND = pyarrow.schema(
    [
        ("check", pyarrow.string()),
        ("broker", pyarrow.int32()),
        ("pool", pyarrow.string()),
        ("shard", pyarrow.int32()),
        *((name, pyarrow.int64()) for name in ("at_ns", "open", "tokens", "allowed", "version", "count")),
    ]
)


def checks(
    moves: Rows, connections: Rows, users: Rows, timeline: Timeline, seen: Survey, incomplete: Collection[int]
) -> list[Check]:
    """Both checks. `connections`: connections.CONNECTIONS; `users`: user_checks.logged_in; `incomplete`: brokers of which events
    are missing."""
    kinds = [
        kind for kind in open_counts.KINDS if timeline.any_limit(kind) and not (kind == "broker" and timeline.protected)
    ]
    limits_ssl, limits_users = timeline.any_limit("ssl"), timeline.any_limit("user")
    limits_cluster = timeline.any_limit(CLUSTER)
    moved_kinds = [*kinds, *(["ssl"] if limits_ssl else []), *(["user"] if limits_users else [])]
    if not (moved_kinds or limits_cluster) or not seen.kinds["grant"] + seen.kinds["reclaim"]:
        return [Check(name, HELD, "no moves of tokens to judge", []) for name in (GRANTED, USED)]
    spans = {place: span for place, span in seen.spans().items() if place[0] not in incomplete}
    whole = {place: span for place, span in spans.items() if span.shards}
    steps = moves.each(partial(moved, whole, moved_kinds), STEPS).and_(
        connections.each(partial(opened, whole, kinds), STEPS)
    )
    if limits_ssl:
        of_tls = connections.each(partial(over_tls, timeline), CONNECTIONS)
        steps = steps.and_(of_tls.each(partial(opened, whole, ["ssl"]), STEPS))
    if limits_users:
        steps = steps.and_(users.each(partial(_of_users, whole), STEPS))
    left_out = {place[0]: 1 for place in [each[:3] for each in seen.processes] if place[0] >= 0 and place not in whole}
    if limits_cluster:
        everywhere = None if incomplete else members(seen)
        if everywhere is None:
            left_out[EVERY_BROKER] = 1
        else:
            steps = steps.and_(_of_cluster(moves, connections, everywhere))
    found = steps.by_in_time(("broker", "pool"), partial(beyond, timeline), BEYOND, CARRY).table().to_pylist()
    unread = Counter(row["broker"] for row in found if row["check"] == BAD)
    found = [row for row in found if row["broker"] not in unread]
    return [_check(name, [row for row in found if row["check"] == name], unread, left_out) for name in (GRANTED, USED)]


def _of_users(spans: Spans, table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of user_checks.logged_in."""
    return opened(
        spans, ["user"], table.rename_columns(["user" if name == "ip" else name for name in table.column_names])
    )


def _of_cluster(moves: Rows, connections: Rows, everywhere: Members) -> Rows:
    """STEPS of the cluster's tokens."""
    numbers, spans = everywhere
    moved_there = moves.each(partial(moves_of_cluster, numbers), MOVES).each(partial(moved, spans, [CLUSTER]), STEPS)
    opened_there = connections.each(partial(as_members, numbers), CONNECTIONS)
    return moved_there.and_(opened_there.each(partial(opened, spans, [CLUSTER]), STEPS))


def _check(name: str, rows: list[TableRow], unread: Counter[int], left_out: Mapping[int, int]) -> Check:
    if not rows and unread:
        why = "moves of tokens can't be read, or were written by a shard that is not the pool's home"
        return Check(name, UNKNOWN, why, [], unread)
    if not rows and left_out:
        which = ", ".join(map(broker_text, sorted(left_out)[:5])) + (", ..." if len(left_out) > 5 else "")
        why = f"events of {which} are missing, or its number of shards is not known"
        return Check(name, NOT_JUDGED, why, [], left_out)
    if not rows:
        return Check(name, HELD, SENTENCE[name], [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("count")
    ordered = sorted(rows, key=lambda row: (row["at_ns"], row["broker"], row["pool"], row["shard"]))
    shown = [{key: value for key, value in row.items() if key != "check"} for row in ordered[: open_counts.SHOWN]]
    first = shown[0]
    whose = broker_text(first["broker"])
    pool = whose if first["pool"] == CLUSTER else f"{first['pool']} of {whose}"
    where = f"{counts.total()} times beyond; first {pool}"
    shard = "member" if first["pool"] == CLUSTER else "shard"
    said = (
        f"its home {first['shard']} had {first['tokens']} granted to others and {first['open']} open, "
        f"{first['allowed']} allowed"
        if name == GRANTED
        else f"{shard} {first['shard']} had {first['open']} open and {first['tokens']} tokens"
    )
    return Check(name, EXCEEDED, f"{where}: {said}, at mono_ns {first['at_ns']}", shown, counts)


def beyond(timeline: Timeline, table: pyarrow.Table) -> pyarrow.Table:
    """BEYOND: the first of each broker's STEPS that an invariant does not allow; and BAD of brokers whose moves can't be judged."""
    found = books(table)
    columns, booked, opened = found.columns, found.booked, found.open
    bad = {
        int(each) for each in numpy.unique(columns["broker"][(columns["what"] == WHAT[BAD]) & ~columns["is_carried"]])
    }
    is_own, what = columns["is_own"], columns["what"]
    is_grant = is_own & (what == WHAT[GRANT]) & ~columns["is_carried"]
    is_use = ~is_own & ((columns["change"] > 0) | (what == WHAT[RETURN])) & (opened > booked) & ~columns["is_carried"]
    allowed = numpy.where(is_grant, _allowed(timeline, found, is_grant), booked)
    over = (is_grant & (booked + opened > allowed)) | is_use
    over &= ~numpy.isin(columns["broker"], list(bad))
    pool, pools, admission = found.pool, found.pools, found.admission
    rows = []
    for place in numpy.flatnonzero(over):
        of = {
            "broker": int(columns["broker"][place]),
            "pool": pools[pool[place]],
            "shard": int(columns["shard"][place]),
        }
        under, sure_ns = (int(columns[name][_at(admission, int(place))]) for name in ("version", "at_ns"))
        if of["pool"] == CLUSTER and what[place] == WHAT[RETURN]:
            under = max(under, timeline.newest(int(columns["at_ns"][place])))
        if is_use[place] and not _is_settled(timeline, of, under, sure_ns, int(booked[place])):
            continue
        version = int(columns["version"][place]) if is_grant[place] else under
        rows.append({**of, "check": GRANTED if is_grant[place] else USED, "at_ns": int(columns["at_ns"][place]),
                     "open": int(opened[place]), "tokens": int(booked[place]), "allowed": int(allowed[place]),
                     "version": version})  # fmt: skip
    return _first(rows, bad)


def _allowed(timeline: Timeline, found: Books, wanted: arrays.Array) -> arrays.Array:
    """The cap at each wanted row; limits are asked once per broker, version and pool."""
    allowed = numpy.zeros(len(wanted), dtype="i8")
    places = numpy.flatnonzero(wanted)
    pool = found.pool[places]
    broker, version = found.columns["broker"][places], found.columns["version"][places]
    order, starts = arrays.grouped(broker, version, pool)
    caps = []
    for row in order[starts]:
        kind, _, key = str(found.pools[pool[row]]).partition(":")
        caps.append(timeline.limits(int(version[row]), int(broker[row])).cap(kind, key))
    allowed[places[order]] = numpy.array(caps, dtype="i8")[arrays.group_of(starts, len(order))] if caps else 0
    return allowed


def _at(admission: arrays.Array, place: int) -> int:
    """The place of the last admission, or of the step itself where there was none."""
    return int(admission[place]) if admission[place] >= 0 else place


def _is_settled(timeline: Timeline, of: Mapping[str, Any], version: int, at_ns: int, tokens: int) -> bool:
    """True if no report of what is in use can be on its way: a cap in each version since the last that all had."""
    if tokens < 0:
        return True
    kind, _, key = of["pool"].partition(":")
    versions = timeline.unsettled(at_ns, version)
    caps = (timeline.limits(each, of["broker"]).cap(kind, key) for each in versions)
    return bool(versions) and all(cap < UNLIMITED for cap in caps)


def _first(rows: Sequence[TableRow], bad: Collection[int]) -> pyarrow.Table:
    found = pyarrow.Table.from_pylist([{**row, "count": 0} for row in rows], BEYOND)
    is_use = numpy.array([row["check"] == USED for row in rows], dtype="i8")
    key = 2 * arrays.numbers(found, "broker").astype("i8") + is_use
    places, counts = arrays.first_of_each(
        numpy.arange(len(rows)), key, arrays.numbers(found, "at_ns"), open_counts.SHOWN
    )
    found = found.take(pyarrow.array(places)).set_column(
        BEYOND.get_field_index("count"), "count", pyarrow.array(counts)
    )
    return pyarrow.concat_tables(
        [found, pyarrow.Table.from_pylist([{"check": BAD, "broker": each} for each in bad], BEYOND)]
    )
