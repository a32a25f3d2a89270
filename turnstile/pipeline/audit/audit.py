"""Was a limit ever exceeded? Proved or refuted from a journal alone.

A verdict of `held` needs every event: where `seq` has a gap, or a part can't be read, or what was configured isn't known,
nothing is proved and the verdict is `unknown`. A violation is only reported when no missing event could explain it:
connections count as open for no longer than the journal proves (until the last event of a process that died, or
before a gap, or, where the end of any process may be missing, until the last event there is of its own).
"""

from collections import Counter
from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from broker.journal.schema import COORDINATOR
from turnstile.pipeline.audit import cap_checks, rate_checks, rate_unit_checks, refusal_checks, token_checks
from turnstile.pipeline.audit.admission_checks import Admissions
from turnstile.pipeline.audit.verdict import HELD, UNKNOWN, AuditResult, Check
from turnstile.pipeline.events import sweep
from turnstile.pipeline.events.journal_events import INCARNATION, JournalEvents, Unreadable, pairs
from turnstile.pipeline.events.sequence import Gap, gaps
from turnstile.pipeline.events.survey import survey
from turnstile.pipeline.events.timeline import Timeline

PAIRED = (*INCARNATION, "conn", "ip", "listener", "version", "admitted_ns", "closed_ns", "admissions", "closes")


def audit(journal: JournalEvents) -> AuditResult:
    """Every check over a journal."""
    events = journal.events
    found = survey(events)
    seen = found.processes
    if not seen:
        return AuditResult([Check("sequence", UNKNOWN, "the journal has no events", [])], 0)
    missing = gaps(events, seen)
    brokers = sorted({each.broker for each in seen})
    timeline = found.timeline()
    paired = pairs(events).select(*PAIRED).persist(StorageLevel.MEMORY_AND_DISK)
    admissions = Admissions(paired, timeline, missing)
    incomplete = _incomplete(brokers, missing, journal.unreadable)
    held = intervals(paired, found.ends(of_all=bool(journal.unreadable)), missing)
    checks = [
        _sequence(missing, journal.unreadable),
        _configuration(timeline),
        *cap_checks.checks(held, timeline, admissions.connections),
        admissions.acknowledged(),
        *rate_checks.checks(events, timeline, seen),
        *rate_unit_checks.checks(events, timeline, missing),
        admissions.conserved(),
        *token_checks.checks(events, held, timeline, found, missing, journal.unreadable),
        *refusal_checks.checks(events, paired, timeline, found, incomplete),
    ]
    paired.unpersist()
    return AuditResult(checks, sum(each.events for each in seen))


def intervals(paired: DataFrame, ends: Sequence[tuple[int, int, int, int]], missing: Sequence[Gap]) -> DataFrame:
    """When each connection certainly held its tokens: broker, shard, epoch, listener, ip, start_ns, end_ns, version, conn.

    end_ns is null for one that is still open. The end of a connection whose close isn't in the journal is the last event of
    its process, if `ends` (Survey.ends) has it, or the last before the next gap.
    """
    spark = paired.sparkSession
    known = paired.where(F.col("admitted_ns").isNotNull()).withColumns(
        {name: F.lit(None).cast("long") for name in ("last_ns", "gap_ns")}
    )
    if ends:
        last = spark.createDataFrame(ends, "broker int, shard int, epoch long, last_ns long")
        known = known.drop("last_ns").join(F.broadcast(last), [*INCARNATION], how="left")
    if missing:
        gap = spark.createDataFrame(
            [(gap.broker, gap.shard, gap.epoch, gap.before_ns) for gap in missing],
            "broker int, shard int, epoch long, gap_ns long",
        )
        unclosed = (
            paired.where(F.col("closed_ns").isNull())
            .join(F.broadcast(gap), [*INCARNATION], how="inner")
            .where(F.col("gap_ns") >= F.col("admitted_ns"))
            .groupBy(*INCARNATION, "conn")
            .agg(F.min("gap_ns").alias("gap_ns"))
        )
        known = known.drop("gap_ns").join(unclosed, [*INCARNATION, "conn"], how="left")
    end_ns = F.coalesce("closed_ns", F.least("gap_ns", "last_ns"))
    return known.select(
        *INCARNATION,
        "listener",
        "ip",
        F.col("admitted_ns").alias("start_ns"),
        end_ns.alias("end_ns"),
        "version",
        "conn",
    )


def _incomplete(brokers: Sequence[int], missing: Sequence[Gap], unreadable: Sequence[Unreadable]) -> set[int]:
    """The brokers of which events are missing: all of them, where nothing says whose those are, or the coordinator's are."""
    unsure = {gap.broker for gap in missing} | {part.broker for part in unreadable}
    return (
        set(brokers) if None in unsure or COORDINATOR in unsure else {broker for broker in unsure if broker is not None}
    )


def _sequence(missing: Sequence[Gap], unreadable: Sequence[Unreadable]) -> Check:
    if not missing and not unreadable:
        return Check("sequence", HELD, "no event is missing", [])
    lost = sum(gap.last - gap.first + 1 for gap in missing)
    sentences = [*(part.sentence for part in unreadable[:3]), *(gap.sentence() for gap in missing[:3])]
    more = len(unreadable) + len(missing) - len(sentences)
    rest = f" (and {more} more)" if more > 0 else ""
    counts: Counter[int] = Counter()
    for gap in missing:
        counts[gap.broker] += gap.last - gap.first + 1
    for part in unreadable:
        if part.broker is not None:
            counts[part.broker] += not counts[part.broker]  # at least one
    shown = [gap._asdict() for gap in missing[: sweep.SHOWN]]
    said = f"{lost} events are missing" if lost else "events are missing"
    return Check("sequence", UNKNOWN, f"{said}: {'; '.join(sentences)}{rest}", shown, counts)


def _configuration(timeline: Timeline) -> Check:
    if timeline.unknown:
        return Check("configuration", UNKNOWN, "; ".join(dict.fromkeys(timeline.unknown)), [])
    versions = timeline.versions
    acknowledged = len({version for _, version in timeline.acknowledged})
    detail = f"versions {versions[0]} to {versions[-1]}, {acknowledged} acknowledged by every shard"
    return Check("configuration", HELD, detail, [])
