"""The limits of a whole cluster that a plan recommends, and what its log can't tell of them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from turnstile.pipeline.events.set_clock import clock_set_s
from turnstile.pipeline.inputs.arrivals_at_cluster import of_journal, of_log
from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.inputs.small_log import SmallLog
from turnstile.pipeline.paths_and_uris import local_path
from turnstile.pipeline.plan.cluster_cap import ClusterCap, cluster_cap
from turnstile.pipeline.plan.cluster_facts import DDL, Asked, ClusterFacts, facts_in_task, facts_of, of_text
from turnstile.pipeline.plan.cluster_rate import ClusterRate, cluster_rate
from turnstile.quantities import duration, plural

if TYPE_CHECKING:
    from turnstile.pipeline.inputs.connection_logs import Input

_UNTOLD = (
    "This log does not say whether it has the connections to all brokers of a cluster. If it has, --whole-cluster recommends a cap "
    "and a rate of the whole cluster."
)
_NOT_TOLD = (
    "The journal does not say how many brokers its cluster had: limits of the whole cluster are made from those in it."
)
_STARTED_AGAIN = (
    "The machine was started again while this journal was written: limits of the whole cluster are made from times of the wall "
    "clock."
)


class ClusterLimits(NamedTuple):
    """The limits that a plan recommends for a cluster. None where the log has too little; `notes` say why, and what is not
    certain."""

    cap: ClusterCap | None
    rate: ClusterRate | None
    notes: list[str]


class _FactsOfLog(NamedTuple):
    """The facts of a log, and sentences about what of it can't be read."""

    facts: ClusterFacts
    unreadable: list[str]


def tells_of_cluster(log_format: str, by: EntityType, *, whole_cluster: bool) -> bool:
    """True if a log, read by these entities, has all connections to all brokers: a journal, or one of which that is said; none that
    is read by logins."""
    return by.name == IP.name and (whole_cluster or log_format == "journal")


def cluster_limits(source: "Input | SmallLog", peak: int | None, asked: Asked) -> ClusterLimits:
    """`peak`: the most that were open at one time; None of a log that tells_of_cluster says False of."""
    if peak is None:
        return ClusterLimits(None, None, [_UNTOLD] if source.by.name == IP.name else [])
    facts, unreadable = _found(source, asked)
    notes = [*unreadable, *_notes(facts)] if source.format == "journal" else []
    missing = [broker for broker in range(facts.size) if broker not in facts.brokers]
    if missing:
        return ClusterLimits(None, None, [*notes, _missing(facts, missing)])
    return ClusterLimits(cluster_cap(peak, asked.headroom), cluster_rate(facts), notes)


def _found(source: "Input | SmallLog", asked: Asked) -> _FactsOfLog:
    if isinstance(source, SmallLog):
        if source.format != "journal":
            return _FactsOfLog(facts_of(of_log(source.table, source.by), asked), [])
        arrived, unreadable = of_journal([local_path(path) for path in source.paths])
        return _FactsOfLog(facts_of(arrived, asked), [each.sentence for each in unreadable])
    from turnstile.pipeline.inputs.connection_logs import arrived_at_cluster, explained
    from turnstile.pipeline.spark_table import fetch

    with explained(source.paths, source.format):
        rows, sentences = arrived_at_cluster(source)
        facts = fetch(rows.repartition(1).mapInArrow(partial(facts_in_task, asked), DDL))
    return _FactsOfLog(of_text(facts["facts"][0].as_py()), sentences)


def _notes(facts: ClusterFacts) -> list[str]:
    notes = []
    if not facts.size:
        notes.append(_NOT_TOLD)
    if facts.is_by_wall:
        notes.append(_STARTED_AGAIN)
    if set_s := clock_set_s(facts.set_ns):
        notes.append(
            f"The wall clock was set while this journal was written, by {duration(set_s * 1000)} in all, or the machine slept: "
            "caps are made from times of the wall clock, and are not certain. The rate of the whole cluster is not made from them."
        )
    brokers = len(facts.brokers)
    if brokers > 1:
        notes.append(
            f"Limits of an address and of a broker are replayed on the connections to all {brokers} brokers as if these were one; "
            "a cluster has them on each broker by itself."
        )
    return notes


def _missing(facts: ClusterFacts, missing: Sequence[int]) -> str:
    those = plural("broker", len(missing))
    return (
        f"Of {facts.size} brokers the journal has no event of {those} {', '.join(map(str, missing))}: what came there is not "
        "known, so no cap and no rate of the whole cluster is recommended."
    )
