"""Were the decisions of observed caps (docs/rehearsal.md) those that enforced ones would have made?

within_each_observed_cap  Never were more connections in the observed world of a pool than its cap, at an admission to it.
told_by_a_cap_that_was_reached  A connection that would have been refused, or would have waited, was told so by a cap that was
    observed, with its value, and at least as many observed tokens could be in use then as that cap is (as
    tokens_were_in_use_at_a_refusal).

In the observed world is an admitted connection from its admission, or from its `observed` event without a reason, to its end; one
with a reason is not. When an observation begins every open connection is in it, whatever was said of it before:
within_each_observed_cap leaves out such a connection, told_by_a_cap_that_was_reached counts it. What was under way in a process
when that died is not known: within_each_observed_cap leaves out what it had admitted within UNDER_WAY_NS before. Moves of
observed tokens are not judged, nor is `broker` where connections of an inter-broker listener are forced into it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import pyarrow

from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.connections import CONNECTIONS, READ, Ends, pair
from turnstile.pipeline.audit.refusal_checks import DECISIONS, unjustified, without_full_pool
from turnstile.pipeline.audit.refusal_checks import READ as REFUSAL
from turnstile.pipeline.audit.refusal_names import FOUND, INCARNATION
from turnstile.pipeline.audit.ssl_connections import over_tls
from turnstile.pipeline.audit.unseen import unseen_in
from turnstile.pipeline.events import arrays, sweep
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.observed_timeline import ObservedTimeline, ObservedVersionLimits
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

CAPS, CAUSED = "observed_caps", "observed_with_cause"
UNDER_WAY_NS = 3_000_000_000
REASONS = {"broker_cap": "broker_cap", "broker_wait": "broker_cap", "ssl_cap": "ssl_cap", "ip_cap": "ip_cap"}
"""Of an observed decision -> of the refusal that it is judged as."""
_KEY = (*INCARNATION, "conn")
_INSIDE, _OUTSIDE = -1, -2


def checks(events: Rows, enforced: Timeline, seen: Survey, ends: Ends, incomplete: Collection[int]) -> list[Check]:
    """Both checks; none where nothing was observed. `incomplete`: brokers of which events are missing."""
    timeline = ObservedTimeline(enforced)
    if not timeline.observes:
        return []
    journaled = events.of_kinds(("admitted", "closed", "observed"), (*READ, "reason"))
    members = journaled.by(_KEY, partial(inside, ends), CONNECTIONS)
    users = journaled.by(_KEY, partial(using, ends, timeline.begins), CONNECTIONS).kept()
    decided = events.of_kinds(("observed",), REFUSAL)
    found = [*decided.each(partial(misnamed, timeline), FOUND).table().to_pylist()]
    for reason in dict.fromkeys(REASONS.values()):
        asked = decided.each(partial(_as_refusals, reason), DECISIONS)
        found += without_full_pool(asked, users, timeline, seen, unseen_in(seen), reason).to_pylist()
    users.forget()
    return [_caps(members, timeline), _caused(found, seen.kinds["observed"], incomplete)]


# ---- within_each_observed_cap


def inside(ends: Ends, table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS of the observed world, each from when it was certainly in it."""
    found, told = _with_decisions(ends, table, {})
    place = [arrays.numbers(found, name) for name in INCARNATION]
    gone_ns = arrays.looked_up(place, lambda key: ends.last_ns.get((key[0], key[1], key[2]), sweep.NEVER))
    admitted_ns = arrays.numbers(found, "admitted_ns", null=sweep.NEVER)
    unknown = (told == _INSIDE) & ~arrays.present(found, "closed_ns") & (admitted_ns > gone_ns - UNDER_WAY_NS)
    kept = numpy.flatnonzero((told != _OUTSIDE) & ~unknown)
    since_ns = numpy.where(told >= 0, told, admitted_ns)[kept]
    at = CONNECTIONS.get_field_index("admitted_ns")
    since = pyarrow.array(since_ns, mask=since_ns == sweep.NEVER)
    return found.take(pyarrow.array(kept)).set_column(at, CONNECTIONS.field(at), since)


def _caps(members: Rows, timeline: ObservedTimeline) -> Check:
    kinds = [kind for kind in sweep.KINDS if timeline.any_limit(kind) and not (kind == "broker" and timeline.protected)]
    steps = members.each(sweep.steps, sweep.STEPS)
    judge = partial(sweep.beyond, timeline)
    rows: list[TableRow] = steps.swept(kinds, judge, sweep.EXCESS, closes_first=True).to_pylist()
    if timeline.any_limit("ssl"):
        steps = members.each(partial(over_tls, timeline), CONNECTIONS).each(sweep.steps, sweep.STEPS)
        rows += steps.swept(["ssl"], judge, sweep.EXCESS, closes_first=True).to_pylist()
    if not rows:
        return Check(CAPS, HELD, "never more in the observed world than its caps", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("excess")
    rows.sort(key=lambda row: row["at_ns"])
    first = rows[0]
    pool = f"{first['kind']} {first['pool']}".rstrip()
    detail = (
        f"{counts.total()} admissions to the observed world beyond its cap; first {pool} of broker {first['broker']}: "
        f"{first['open']} in it, {first['allowed']} allowed, at mono_ns {first['at_ns']}"
    )
    return Check(CAPS, EXCEEDED, detail, rows[: sweep.SHOWN], counts)


# ---- told_by_a_cap_that_was_reached


def using(ends: Ends, begins: Sequence[int], table: pyarrow.Table) -> pyarrow.Table:
    """CONNECTIONS that may have held observed tokens: all but those that would have been refused, which are counted apart. One
    whose decision was given up counts until then; if an observation has begun since, to its end."""
    until: dict[tuple[int, ...], int] = {}
    found, told = _with_decisions(ends, table, until, begins)
    place = [arrays.numbers(found, name) for name in _KEY]
    end_ns = arrays.looked_up(place, lambda key: until.get(key, sweep.NEVER))
    is_cut = end_ns < sweep.NEVER
    closed_ns = numpy.where(is_cut, end_ns, arrays.numbers(found, "closed_ns"))
    missing = ~is_cut & ~arrays.present(found, "closed_ns")
    at = CONNECTIONS.get_field_index("closed_ns")
    whole = found.set_column(at, CONNECTIONS.field(at), pyarrow.array(closed_ns, mask=missing))
    return whole.take(pyarrow.array(numpy.flatnonzero((told != _OUTSIDE) | is_cut)))


class _Decided(NamedTuple):
    """`told`, of each connection: _INSIDE if nothing was decided later, _OUTSIDE, or when it came in."""

    connections: pyarrow.Table
    told: arrays.Array


def _with_decisions(
    ends: Ends, table: pyarrow.Table, until: dict[tuple[int, ...], int], begins: Sequence[int] = ()
) -> _Decided:
    """The connections, and what was decided of them later.

    `until`: filled with when those were given up that are outside by no cap. One that came in by a later of `begins` is inside.
    """
    is_decision = arrays.is_one_of(table, "kind", ("observed",))
    connections = pair(ends, table.filter(pyarrow.array(~is_decision)).select(READ))
    told: dict[tuple[int, ...], int] = {}
    last = max(begins, default=0)
    for row in table.filter(pyarrow.array(is_decision)).to_pylist():
        key = tuple(row[name] for name in _KEY)
        if row["reason"] is None:
            told[key] = row["mono_ns"]
        elif last <= (row["version"] or 0):
            told[key] = _OUTSIDE
            if row["reason"] in ("closed", "ended"):
                until[key] = row["mono_ns"]
    place = [arrays.numbers(connections, name) for name in _KEY]
    return _Decided(connections, arrays.looked_up(place, lambda key: told.get(key, _INSIDE)))


def _as_refusals(reason: str, table: pyarrow.Table) -> pyarrow.Table:
    """Observed decisions with the reasons of refusals; those that no such refusal has are left out."""
    reasons = table["reason"].to_pylist()
    kept = [place for place, each in enumerate(reasons) if each in REASONS]
    told = pyarrow.array([REASONS[reasons[place]] for place in kept], pyarrow.string())
    at = table.column_names.index("reason")
    return table.take(pyarrow.array(kept, pyarrow.int64())).set_column(at, "reason", told).cast(DECISIONS)


def misnamed(timeline: ObservedTimeline, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: decisions that name a cap, or a value, that their version does not observe; the first of each that are alike."""
    alike: dict[tuple[Any, ...], TableRow] = {}
    columns = (
        "broker",
        "shard",
        "epoch",
        "conn",
        "ip",
        "listener",
        "reason",
        "limit",
        "limit_value",
        "version",
        "mono_ns",
    )
    for row in table.select(columns).to_pylist():
        if row["reason"] in _POOLS:
            said = tuple(
                row[name] for name in ("broker", "ip", "listener", "reason", "limit", "limit_value", "version")
            )
            alike.setdefault(said, {**row, "refusals": 0})["refusals"] += 1
    found = []
    for row in alike.values():
        why = _why_misnamed(timeline, row)
        if why:
            row.update(why=why, at_ns=row.pop("mono_ns"))
            found.append({name: row[name] for name in FOUND.names})
    return pyarrow.Table.from_pylist(found, FOUND)


_POOLS: Mapping[str, Sequence[str]] = {
    "broker_cap": ("broker", "broker:all"),
    "broker_wait": ("broker",),
    "listener_wait": ("listener:{listener}",),
    "ssl_cap": ("ssl",),
    "ip_cap": ("ip:{ip}",),
}


def _why_misnamed(timeline: ObservedTimeline, row: Mapping[str, Any]) -> str:
    version = row["version"]
    if not version:
        return "it names no version"
    limits = timeline.limits(version, row["broker"]) if version in timeline.versions else None
    if not isinstance(limits, ObservedVersionLimits):
        return ""
    rules = [limits.observed.rule_of(pool.format(**row)) for pool in _POOLS[row["reason"]]]
    if (row["limit"], row["limit_value"]) in [(rule.name, rule.cap) for rule in rules]:
        return ""
    told = ", ".join(f"{rule.name}={rule.cap}" for rule in rules if rule.cap is not None)
    return f"that version observes {told or 'no such cap'}"


def _caused(rows: list[TableRow], total: int, incomplete: Collection[int]) -> Check:
    if not rows:
        return Check(CAUSED, HELD, f"{total} observed decisions, each by a cap that was reached", [])
    counts, shown, is_sure = unjustified(rows, incomplete)
    first = shown[0]
    detail = (
        f"{counts.total()} observed decisions; first {first['ip']} by {first['limit']} of version {first['version']} on broker "
        f"{first['broker']}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    verdict = NOT_JUSTIFIED if is_sure else UNKNOWN
    return Check(CAUSED, verdict, detail, shown, counts)
