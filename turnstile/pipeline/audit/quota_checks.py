"""The checks of client quotas over a journal: quota_meters.py judges meters, quota_throttles.py what clients were told."""

from collections.abc import Collection, Mapping
from functools import partial

from turnstile.pipeline.audit import quota_meters, quota_throttles
from turnstile.pipeline.audit.audit_result import NOT_JUDGED, Check
from turnstile.pipeline.audit.quota_findings import FOUND, check_of
from turnstile.pipeline.audit.quota_rows import ENFORCED, OBSERVED, Noted, noted, resets
from turnstile.pipeline.audit.quota_tables import QuotaTables, resets_of
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.observed_timeline import ObservedTimeline
from turnstile.pipeline.events.rows import Rows
from turnstile.pipeline.events.sequence import first_gaps
from turnstile.pipeline.events.survey import Survey
from turnstile.pipeline.events.timeline import Timeline

HELD_TEXT = {
    quota_meters.CHARGES: "{charges} charges, each throttled as Kafka's arithmetic says, to the millisecond",
    quota_meters.IN_FORCE: "{charges} charges, each by the quota in force for its client",
    quota_meters.ONE_METER: "no client had two meters; {stand_ins} charges by stand-ins of a home that was away",
    quota_meters.CARRIED_ON: "{meters} meters went on from what had been recorded; {begun} from another shard's, "
    "{lacking} of them without all that it is to tell",
    quota_throttles.THROTTLES: "{throttles} throttles, each decided by a meter and told to its client",
}

_NOT_JUDGED = Check(
    "redpanda_client_quotas",
    NOT_JUDGED,
    "client quotas by Redpanda's semantics: what counted for them is not in the journal",
    [],
)

_OF_CALLBACK = _NOT_JUDGED._replace(
    name="callback_client_quotas",
    detail="client quotas by client.quota.callback.class: what the class decided is not in the journal",
)


def checks(events: Rows, timeline: Timeline, seen: Survey, unsure: Collection[int]) -> list[Check]:
    """The checks, if any version sets a client quota or anything was charged. `unsure`: brokers of which events are missing."""
    meters = _meters(events, timeline, seen, unsure, ENFORCED)
    unjudged = [_NOT_JUDGED] * timeline.has_redpandas_quotas + [_OF_CALLBACK] * timeline.has_quota_callback
    if meters is None:
        return unjudged
    lives: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in seen.processes:
        lives.setdefault(each[:2], []).append((each.first_ns, each.last_ns))
    context = quota_throttles.Context(lives, sorted(timeline.stored.values()), frozenset(unsure))
    throttles = quota_throttles.throttling(events).by(
        ("broker", "user", "client_id"), partial(quota_throttles.told, context), FOUND
    )
    return [*_made([*meters, *throttles.table().to_pylist()], HELD_TEXT), *unjudged]


def observed_checks(events: Rows, timeline: Timeline, seen: Survey, unsure: Collection[int]) -> list[Check]:
    """The checks of the meters of observed quotas (docs/rehearsal.md), which throttle no client; their names begin with
    `observed_`."""
    found = _meters(events, ObservedTimeline(timeline), seen, unsure, OBSERVED)
    if found is None:
        return []
    of_meters = {name: if_held for name, if_held in HELD_TEXT.items() if name != quota_throttles.THROTTLES}
    return [check._replace(name=f"observed_{check.name}") for check in _made(found, of_meters)]


def _meters(
    events: Rows, timeline: Timeline, seen: Survey, unsure: Collection[int], kinds: Noted
) -> list[TableRow] | None:
    """FOUND of what some meters noted; None where there is nothing to judge."""
    tables = QuotaTables(seen, timeline, resets_of(resets(events, kinds)) if seen.kinds[kinds.meter] else {})
    if not tables.any and not any(seen.kinds[kind] for kind in kinds):
        return None
    until = {place: gap.first for place, gap in first_gaps(seen.gaps).items()}
    began_ms = {each[:3]: each.first_ns // 1_000_000 for each in seen.processes}
    known = quota_meters.Known(tables, until, timeline.floor, timeline.stored, began_ms, frozenset(unsure))
    judged = noted(events, tables, kinds).by(
        ("broker", "quota", "meter_user", "meter_client"), partial(quota_meters.beyond, known), FOUND
    )
    return list(judged.table().to_pylist())


def _made(found: list[TableRow], held_texts: Mapping[str, str]) -> list[Check]:
    made = [check_of(name, found, if_held) for name, if_held in held_texts.items()]
    shared = sum(row["count"] for row in found if row["why"] == "shared")
    if shared and not made[0].brokers:
        made[0] = made[0]._replace(
            detail=f"{made[0].detail}; {shared:,} by meters that clients shared, which are not judged"
        )
    return made
