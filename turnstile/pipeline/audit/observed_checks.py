"""Checks that observed caps (docs/rehearsal.md) decided as enforced ones would have.

within_each_observed_cap  Never were more connections in the observed world of a pool than its cap, at an admission to it.
told_by_a_cap_that_was_reached  A connection that would have been refused, or would have waited, was told so by a cap that was
    observed, with its value, and at least as many observed tokens could be in use then as that cap is (as
    tokens_were_in_use_at_a_refusal).

Which connections are in the observed world says observed_members.py: within_each_observed_cap counts those that certainly are,
told_by_a_cap_that_was_reached those that may be. Both judge the pools of users as those of addresses, by rows whose address is the
user. Moves of observed tokens are not judged, nor is `broker` where connections of an inter-broker listener are forced into it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow

from shards.limits.caps import CLUSTER
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import EXCEEDED, HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.connections import CONNECTIONS, Ends
from turnstile.pipeline.audit.observed_members import (
    COLUMNS,
    KEY,
    KINDS,
    inside,
    logged_in_inside,
    logged_in_using,
    using,
)
from turnstile.pipeline.audit.refusal_checks import DECISIONS, unjustified, without_full_pool
from turnstile.pipeline.audit.refusal_checks import READ as REFUSAL
from turnstile.pipeline.audit.refusal_names import FOUND
from turnstile.pipeline.audit.ssl_connections import over_tls
from turnstile.pipeline.audit.unseen import unseen_in
from turnstile.pipeline.audit.user_checks import CAP as USER
from turnstile.pipeline.audit.user_checks import user_over_the_cap
from turnstile.pipeline.audit.whole_cluster import broker_text, of_cluster
from turnstile.pipeline.events import arrays, open_counts
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.logins import by_user
from turnstile.pipeline.events.observed_timeline import ObservedTimeline, ObservedVersionLimits
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

CAPS, CAUSED = "observed_caps", "observed_with_cause"
REASONS = {
    "cluster_cap": "cluster_cap", "broker_cap": "broker_cap", "broker_wait": "broker_cap", "ssl_cap": "ssl_cap",
    "ip_cap": "ip_cap",
}  # fmt: skip
"""The reason of an observed decision -> the reason of the refusal that it is judged as."""


def checks(events: Rows, enforced: Timeline, seen: Survey, ends: Ends, incomplete: Collection[int]) -> list[Check]:
    """Both checks; none where nothing was observed. `incomplete`: brokers of which events are missing."""
    timeline = ObservedTimeline(enforced)
    if not timeline.observes:
        return []
    journaled = events.of_kinds(KINDS, COLUMNS)
    members, logged_in = (journaled.by(KEY, partial(each, ends), CONNECTIONS) for each in (inside, logged_in_inside))
    of_arrivals, of_logins = (
        journaled.by(KEY, partial(each, ends, timeline.begins), CONNECTIONS).kept() for each in (using, logged_in_using)
    )
    decided = events.of_kinds(("observed",), (*REFUSAL, "user"))
    named = decided.each(partial(misnamed, timeline), FOUND).table().to_pylist()
    found = [row for row in named if row["why"]]
    total = sum(row["refusals"] for row in named if not row["why"])
    for reason in dict.fromkeys(REASONS.values()):
        asked = decided.each(partial(_as_refusals, reason), DECISIONS)
        found += without_full_pool(asked, of_arrivals, timeline, seen, unseen_in(seen), reason).to_pylist()
    logins = decided.each(_logins_as_refusals, DECISIONS)
    found += without_full_pool(logins, of_logins, timeline, seen, unseen_in(seen), "ip_cap").to_pylist()
    for each in (of_arrivals, of_logins):
        each.forget()
    return [_caps(members, logged_in, timeline), _caused(found, total, incomplete)]


# ---- within_each_observed_cap


def _caps(members: Rows, logged_in: Rows, timeline: ObservedTimeline) -> Check:
    kinds = [
        kind for kind in open_counts.KINDS if timeline.any_limit(kind) and not (kind == "broker" and timeline.protected)
    ]
    steps = members.each(open_counts.steps, open_counts.STEPS)
    judge = partial(open_counts.over_the_cap, timeline)
    rows: list[TableRow] = steps.swept(kinds, judge, open_counts.EXCESS, closes_first=True).to_pylist()
    if timeline.any_limit(CLUSTER):
        rows += (
            steps.each(of_cluster, open_counts.STEPS)
            .swept([CLUSTER], judge, open_counts.EXCESS, closes_first=True)
            .to_pylist()
        )
    if timeline.any_limit("ssl"):
        steps = members.each(partial(over_tls, timeline), CONNECTIONS).each(open_counts.steps, open_counts.STEPS)
        rows += steps.swept(["ssl"], judge, open_counts.EXCESS, closes_first=True).to_pylist()
    if timeline.any_limit("user"):
        steps = logged_in.each(open_counts.steps, open_counts.STEPS)
        of_users = steps.swept(["ip"], partial(user_over_the_cap, timeline), open_counts.EXCESS, closes_first=True)
        rows += [{**row, "kind": "user"} for row in of_users.to_pylist()]
    if not rows:
        return Check(CAPS, HELD, "never more in the observed world than its caps", [])
    counts: Counter[int] = Counter()
    for row in rows:
        counts[row["broker"]] += row.pop("excess")
    rows.sort(key=lambda row: row["at_ns"])
    first = rows[0]
    of = broker_text(first["broker"])
    pool = of if first["kind"] == CLUSTER else f"{first['kind']} {first['pool']}".rstrip() + f" of {of}"
    detail = (
        f"{counts.total()} admissions to the observed world beyond its cap; first {pool}: {first['open']} in it, "
        f"{first['allowed']} allowed, at mono_ns {first['at_ns']}"
    )
    return Check(CAPS, EXCEEDED, detail, rows[: open_counts.SHOWN], counts)


# ---- told_by_a_cap_that_was_reached


def _as_refusals(reason: str, table: pyarrow.Table) -> pyarrow.Table:
    """Observed decisions with the reasons of refusals; those that no such refusal has are left out."""
    reasons = table["reason"].to_pylist()
    kept = [place for place, each in enumerate(reasons) if each in REASONS]
    judged_as = pyarrow.array([REASONS[reasons[place]] for place in kept], pyarrow.string())
    at = table.column_names.index("reason")
    chosen = table.take(pyarrow.array(kept, pyarrow.int64())).set_column(at, "reason", judged_as)
    return chosen.select(DECISIONS.names).cast(DECISIONS)


def _logins_as_refusals(table: pyarrow.Table) -> pyarrow.Table:
    """Logins that an observed cap would have refused, as refusals by an address's cap whose address is the user."""
    logins = by_user(table.filter(pyarrow.array(arrays.is_one_of(table, "reason", (USER,)))))
    judged_as = pyarrow.array(["ip_cap"] * logins.num_rows, pyarrow.string())
    at = logins.column_names.index("reason")
    return logins.set_column(at, "reason", judged_as).select(DECISIONS.names).cast(DECISIONS)


def misnamed(timeline: ObservedTimeline, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: decisions that name a cap, or a value, that their version does not observe; the first of each that are alike. One row
    has how many others are by caps; its `why` is empty."""
    alike: dict[tuple[Any, ...], TableRow] = {}
    columns = (
        "broker",
        "shard",
        "epoch",
        "conn",
        "ip",
        "listener",
        "user",
        "reason",
        "limit",
        "limit_value",
        "version",
        "mono_ns",
    )
    for row in table.select(columns).to_pylist():
        if row["reason"] in _POOLS:
            said = tuple(
                row[name] for name in ("broker", "ip", "listener", "user", "reason", "limit", "limit_value", "version")
            )
            alike.setdefault(said, {**row, "refusals": 0})["refusals"] += 1
    found: list[TableRow] = []
    right = 0
    for row in alike.values():
        why = _why_misnamed(timeline, row)
        if why:
            row.update(why=why, at_ns=row.pop("mono_ns"))
            found.append({name: row[name] for name in FOUND.names})
        else:
            right += row["refusals"]
    return pyarrow.Table.from_pylist([*found, {"why": "", "refusals": right}], FOUND)


_POOLS: Mapping[str, Sequence[str]] = {
    "cluster_cap": (CLUSTER,),
    "broker_cap": ("broker", "broker:all"),
    "broker_wait": ("broker",),
    "listener_wait": ("listener:{listener}",),
    "ssl_cap": ("ssl",),
    "ip_cap": ("ip:{ip}",),
    USER: ("user:{user}",),
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
    caps = ", ".join(f"{rule.name}={rule.cap}" for rule in rules if rule.cap is not None)
    return f"that version observes {caps or 'no such cap'}"


def _caused(rows: list[TableRow], total: int, incomplete: Collection[int]) -> Check:
    if not rows:
        return Check(CAUSED, HELD, f"{total} observed decisions, each by a cap that was reached", [])
    counts, shown, is_sure = unjustified(rows, [*incomplete, EVERY_BROKER] if incomplete else ())
    first = shown[0]
    detail = (
        f"{counts.total()} observed decisions; first {first['ip']} by {first['limit']} of version {first['version']} on "
        f"{broker_text(first['broker'])}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    verdict = NOT_JUSTIFIED if is_sure else UNKNOWN
    return Check(CAUSED, verdict, detail, shown, counts)
