"""Checks that the observed rate of the whole cluster (docs/rehearsal.md) decided as the enforced rate would have.

told_by_a_violated_rate  A connection that would have been refused by it was told so by the rate that its version observes, with its
    value, and the home of that rate had found it violated since the connection was let in.

The units that the home recorded are judged one by one, as those of the enforced rate (rate_unit_checks.py).
"""

from collections.abc import Collection
from functools import partial

import pyarrow

from shards.limits.caps import CLUSTER, OBSERVED, RateRule
from shards.settings.broker_config import EVERY_BROKER
from turnstile.pipeline.audit.audit_result import HELD, NOT_JUSTIFIED, UNKNOWN, Check
from turnstile.pipeline.audit.rate_quotas import OBSERVED_CLUSTER
from turnstile.pipeline.audit.rate_refusals import without_violated_rate
from turnstile.pipeline.audit.refusal_checks import DECISIONS, READ, unjustified
from turnstile.pipeline.audit.refusal_names import CLUSTER_RATE, FOUND
from turnstile.pipeline.audit.unseen import unseen_in
from turnstile.pipeline.audit.whole_cluster import broker_text
from turnstile.pipeline.events import arrays
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

NAME = "observed_cluster_rate"


def checks(events: Rows, moves: Rows, enforced: Timeline, seen: Survey, incomplete: Collection[int]) -> list[Check]:
    """The check; none where no version observes that rate. `moves`: moves.MOVES; `incomplete`: brokers of which events are
    missing."""
    timeline = ObservedTimeline(enforced)
    if not timeline.any_limit(OBSERVED_CLUSTER, "rate"):
        return []
    decided = events.of_kinds(("observed",), READ).each(_as_refusals, DECISIONS)
    named = decided.each(partial(misnamed, timeline), FOUND).table().to_pylist()
    found = [row for row in named if row["why"]]
    total = sum(row["refusals"] for row in named if not row["why"])
    found += without_violated_rate(decided, moves, unseen_in(seen), CLUSTER_RATE, OBSERVED).to_pylist()
    return [_check(found, total, incomplete)]


def _as_refusals(table: pyarrow.Table) -> pyarrow.Table:
    """The decisions by that rate, as refusals."""
    chosen = table.filter(pyarrow.array(arrays.is_one_of(table, "reason", (CLUSTER_RATE,)))).select(DECISIONS.names)
    kinds = pyarrow.array(["refused"] * chosen.num_rows, pyarrow.string())
    return chosen.set_column(chosen.column_names.index("kind"), "kind", kinds).cast(DECISIONS)


def misnamed(timeline: ObservedTimeline, table: pyarrow.Table) -> pyarrow.Table:
    """FOUND: decisions that name a rate, or a value, that their version does not observe; the first of each that are alike. One
    row has how many others there are; its `why` is empty."""
    alike: dict[tuple[object, ...], TableRow] = {}
    for row in table.to_pylist():
        said = tuple(row[name] for name in ("broker", "limit", "limit_value", "version"))
        alike.setdefault(said, {**row, "at_ns": row["mono_ns"], "refusals": 0})["refusals"] += 1
    found: list[TableRow] = []
    right = 0
    for row in alike.values():
        why = _why_misnamed(timeline, row)
        if why:
            found.append({**{name: row.get(name) for name in FOUND.names}, "why": why})
        else:
            right += row["refusals"]
    return pyarrow.Table.from_pylist([*found, {"why": "", "refusals": right}], FOUND)


def _why_misnamed(timeline: ObservedTimeline, row: TableRow) -> str:
    if not row["version"]:
        return "it names no version"
    if row["version"] not in timeline.versions:
        return ""
    rule = timeline.observed_rate(row["version"], row["broker"], CLUSTER)
    if RateRule(row["limit_value"], row["limit"]) == rule:
        return ""
    return f"that version observes {'no such rate' if rule.rate is None else f'{rule.name}={rule.rate:g}'}"


def _check(rows: list[TableRow], total: int, incomplete: Collection[int]) -> Check:
    if not rows:
        held = (
            f"{total} connections would have been refused by the rate of the whole cluster, each when it was violated"
        )
        return Check(NAME, HELD, held, [])
    counts, shown, is_sure = unjustified(rows, [*incomplete, EVERY_BROKER] if incomplete else ())
    first = shown[0]
    detail = (
        f"{counts.total()} observed decisions; first by {first['limit']}={first['limit_value']:g} of version {first['version']} on "
        f"{broker_text(first['broker'])}, at mono_ns {first['at_ns']}: {first['why']}"
    )
    return Check(NAME, NOT_JUSTIFIED if is_sure else UNKNOWN, detail, shown, counts)
