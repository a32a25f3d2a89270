"""Checks that every refusal was right: the limit that it names was in force, and was reached.

refused_by_what_was_in_force  What a refusal names was in force (refusal_names.py).
tokens_were_in_use_at_a_refusal  At a refusal by a cap, at least as many tokens of its pool could be in use as the cap is, at
    one instant of the SLACK_NS before. In use are connections that were open, that came to be open, or that another limit
    refused in that time.

Refusals by rates are judged in rate_refusals.py. Caps and rates are judged by what must have been so. Both allow for everything
that the journal may not show (unseen.py): refusals of a broker are not judged from the last event of a shard that died until
its death is known, nor are those of the journal's last SLACK_NS. A refusal without a cause in a broker of which events are
missing is `unknown`.
`shard_unavailable`, `fd_limit` and `proxy_header` are no configured limits and not judged; the last explains no other refusal.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy
import pyarrow

from broker.journal.schema import BEFORE_ARRIVAL, BY_CAPS, REASONS
from shards.limits.caps import CLUSTER
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.connections import CONNECTIONS
from turnstile.pipeline.audit.rate_refusals import without_used_up_second, without_violated_rate
from turnstile.pipeline.audit.refusal_names import (
    ASKED,
    BY_LIMITS,
    CAPS,
    CLUSTER_RATE,
    FOUND,
    INCARNATION,
    held_ns,
    misnamed,
)
from turnstile.pipeline.audit.ssl_connections import over_tls
from turnstile.pipeline.audit.unseen import SLACK_NS, Unseen, deaths, unseen_in
from turnstile.pipeline.audit.whole_cluster import broker_text, of_cluster
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.journal import EVENTS
from turnstile.pipeline.events.open_counts import PoolCounts
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

NAMED, CAUSED = "refused_as_configured", "refused_with_cause"
PARKED = 64  # connections of a listener that may wait for its slot while they hold a token of the broker's pool
_OTHERS = {
    "ip": ("broker_cap", "cluster_cap", "shard_unavailable"),
    CLUSTER: (*(each for each in BY_CAPS if each != "cluster_cap"), "shard_unavailable"),
}
"""Reasons of refusals of connections that may have held a token of the pool until then. The token of an address is asked for after
all others of its broker but `broker:all`, and that of the cluster last, unless a change takes the others away meanwhile."""
_SHOWN = ("broker", "shard", "epoch", "conn", "ip", "at_ns", "reason", "limit", "limit_value", "version")
READ = (
    *INCARNATION,
    "conn",
    "ip",
    "listener",
    "reason",
    "limit",
    "limit_value",
    "version",
    "held_ms",
    "mono_ns",
    "kind",
)
DECISIONS = pyarrow.schema([EVENTS.field(name) for name in READ])
STEPS = pyarrow.schema(
    [
        *open_counts.STEPS,
        *(ASKED.field(name) for name in ("shard", "epoch", "reason", "limit", "limit_value")),
    ]
)
"""open_counts.STEPS with refusals among them, whose `change` is 0."""


def checks(
    events: Rows, connections: Rows, moves: Rows, timeline: Timeline, found: Survey, incomplete: Collection[int]
) -> list[Check]:
    """Both checks. `connections`: connections.CONNECTIONS, `moves`: moves.MOVES; `incomplete`: brokers of which events are
    missing."""
    reasons = [reason for reason in BY_LIMITS if found.refusals[reason]]
    total = sum(found.refusals[reason] for reason in reasons)
    if not total:
        return [Check(name, HELD, "no connection was refused by a limit", []) for name in (NAMED, CAUSED)]
    refused = events.of_kinds(("refused",), READ)
    named = refused.each(partial(misnamed, timeline), FOUND).table().to_pylist()
    unseen = unseen_in(found)
    by_caps = (reason for reason in reasons if reason in CAPS)
    uncaused = [without_full_pool(refused, connections, timeline, found, unseen, reason) for reason in by_caps]
    if "ip_rate" in reasons:
        uncaused.append(without_violated_rate(refused, moves, unseen, "ip_rate"))
    if CLUSTER_RATE in reasons:
        uncaused.append(without_violated_rate(refused, moves, unseen, CLUSTER_RATE))
    if "core_rate" in reasons:
        # A bucket keeps its tokens when its rate changes, so at first it may have fewer than the new rate says.
        changed_ns = [period.start_ns for period in timeline.periods]
        uncaused.append(without_used_up_second(events.of_kinds(("admitted", "refused"), READ), unseen, changed_ns))
    return [
        _check(NAMED, named, total, "each by a limit that was in force, with its value", ()),
        _check(
            CAUSED,
            pyarrow.concat_tables([FOUND.empty_table(), *uncaused]).to_pylist(),
            total,
            "each by a limit that was reached",
            [*incomplete, EVERY_BROKER] if incomplete else (),
        ),
    ]


class Unjustified(NamedTuple):
    """Rows of FOUND that nothing explains. `counts`: by broker; `shown`: the first rows; `is_sure`: these are of brokers without a
    missing event, of which alone rows are shown where there are any."""

    counts: Counter[int]
    shown: list[arrays.TableRow]
    is_sure: bool


def unjustified(rows: list[arrays.TableRow], incomplete: Collection[int]) -> Unjustified:
    """The verdict on unjustified refusals, of which there is at least one row; takes `refusals` out of each. `incomplete`:
    brokers of which events are missing."""
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("refusals")
    sure = [row for row in rows if row["broker"] not in incomplete]
    shown = sorted(sure or rows, key=lambda row: (row["at_ns"], row["broker"]))[: open_counts.SHOWN]
    return Unjustified(counts, shown, bool(sure))


def _check(name: str, rows: list[arrays.TableRow], total: int, if_held: str, incomplete: Collection[int]) -> Check:
    if not rows:
        return Check(name, HELD, f"{total} connections refused, {if_held}", [])
    counts, shown, is_sure = unjustified(rows, incomplete)
    first = shown[0]
    number = sum(count for broker, count in counts.items() if not is_sure or broker not in incomplete)
    address = f"{first['ip']} " if first["ip"] else ""  # the rate of the cluster limits no single address
    detail = (
        f"{number} refusals; first {address}by {first['limit']}={_number(first['limit_value'])} of version {first['version']} "
        f"on {broker_text(first['broker'])}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    if is_sure:
        return Check(name, NOT_JUSTIFIED, detail, shown, counts)
    return Check(name, UNKNOWN, f"{detail}; but events of {broker_text(first['broker'])} are missing", shown, counts)


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:g}"


# ---- tokens_were_in_use_at_a_refusal


def without_full_pool(
    refused: Rows, connections: Rows, timeline: Timeline, found: Survey, unseen: Unseen, reason: str
) -> pyarrow.Table:
    """FOUND: refusals by a cap while fewer connections than that could hold a token."""
    kind = CAPS[reason]
    died_ns: dict[tuple[int, ...], int] = {each[:3]: each.known_ns for each in deaths(found)}
    if kind == "ssl":
        refused = refused.each(partial(over_tls, timeline), DECISIONS)
        connections = connections.each(partial(over_tls, timeline), CONNECTIONS)
    others = _OTHERS.get(kind, tuple(each for each in REASONS if each not in (reason, BEFORE_ARRIVAL)))
    steps = connections.each(partial(_used, died_ns), STEPS).and_(refused.each(partial(_tried, reason, others), STEPS))
    if kind == CLUSTER:
        steps = steps.each(of_cluster, STEPS)
    acceptors = max(1, len({each[:2] for each in found.processes}) * max(1, len(found.listeners)))
    judge = partial(_not_full, timeline, unseen, acceptors)
    return steps.swept([kind], judge, FOUND, closes_first=False)


def _used(died_ns: Mapping[tuple[int, ...], int], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of connections.CONNECTIONS: when each may have held a token, SLACK_NS longer on both sides."""
    mine = table.filter(pyarrow.array(arrays.present(table, "admitted_ns")))
    dead = arrays.looked_up(
        [arrays.numbers(mine, name) for name in INCARNATION], lambda key: died_ns.get(key, open_counts.NEVER)
    )
    end_ns = numpy.where(arrays.present(mine, "closed_ns"), arrays.numbers(mine, "closed_ns"), dead)
    return _steps(mine, arrays.numbers(mine, "admitted_ns"), end_ns)


def _tried(reason: str, others: Sequence[str], table: pyarrow.Table) -> pyarrow.Table:
    """STEPS of refusals: those for `reason`, and when those for others may have held a token."""
    mine = table.filter(pyarrow.array(arrays.is_one_of(table, "reason", (reason,))))
    asked = arrays.table_of(
        STEPS,
        listener=pyarrow.nulls(mine.num_rows, pyarrow.string()),
        at_ns=mine["mono_ns"],
        change=numpy.zeros(mine.num_rows, dtype="i4"),
        **{
            name: mine[name]
            for name in ("broker", "ip", "version", "conn", "shard", "epoch", "reason", "limit", "limit_value")
        },
    )
    rest = table.filter(pyarrow.array(arrays.is_one_of(table, "reason", others)))
    at_ns = arrays.numbers(rest, "mono_ns")
    return pyarrow.concat_tables([asked, _steps(rest, at_ns - held_ns(rest), at_ns)])


def _steps(table: pyarrow.Table, start_ns: arrays.Array, end_ns: arrays.Array) -> pyarrow.Table:
    opens, closes = numpy.arange(table.num_rows), numpy.flatnonzero(end_ns < open_counts.NEVER)
    places = pyarrow.array(numpy.concatenate([opens, closes]))
    blank = {
        field.name: pyarrow.nulls(len(places), field.type)
        for field in STEPS
        if field.name not in ("broker", "ip", "at_ns", "change")
    }
    return arrays.table_of(
        STEPS,
        **{name: table[name].take(places) for name in ("broker", "ip")},
        at_ns=numpy.concatenate([start_ns - SLACK_NS, end_ns[closes] + SLACK_NS]),
        change=numpy.concatenate([numpy.ones(len(opens), "i4"), numpy.full(len(closes), -1, "i4")]),
        **blank,
    )


def _not_full(timeline: Timeline, unseen: Unseen, acceptors: int, counted: PoolCounts) -> pyarrow.Table:
    """The refusals of one kind of pool in one slice at which it can't have been full."""
    steps, open_now = counted.steps, counted.open
    caps = steps["limit_value"].to_numpy()[counted.order]
    likely = numpy.flatnonzero((counted.change == 0) & (open_now < caps))
    if not len(likely):
        return FOUND.empty_table()
    picked = steps.take(pyarrow.array(counted.order[likely])).select(_SHOWN).to_pylist()
    found = []
    for row, count in zip(picked, open_now[likely].tolist(), strict=True):
        parked = _parked(timeline, row["version"], row["broker"]) * acceptors if counted.kind == "broker" else 0
        if count + parked >= row["limit_value"] or unseen.contains(row["broker"], row["at_ns"]):
            continue
        found.append({**row, "why": f"at most {count} could be in use", "refusals": 1})
    return pyarrow.Table.from_pylist(found, FOUND)


def _parked(timeline: Timeline, version: int | None, broker: int) -> int:
    """The number of connections of a listener on a shard that may hold a token of the broker's pool and wait for the listener's."""
    limits = timeline.limits(version or 0, broker).limits
    if all(rule.cap is None for rule in (limits.waiting, *limits.listeners.values())):
        return 0
    # The pool that refuses is asked last: nothing waits there.
    return 0 if limits.rule_of("broker").wait else PARKED
