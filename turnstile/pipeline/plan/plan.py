"""The plan of limits: a real connection log replayed against candidate limits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import pyarrow

from shards.limits.connection_limits import IPV6_PREFIX
from turnstile.pipeline.inputs.contents import ANOTHER_LAYOUT, Contents, usable
from turnstile.pipeline.inputs.entities import EntityType, Ips
from turnstile.pipeline.inputs.small_log import SmallLog
from turnstile.pipeline.plan.candidates import Candidate, CandidateOutcome, settings_of
from turnstile.pipeline.plan.cluster_cap import ClusterCap
from turnstile.pipeline.plan.cluster_facts import Asked
from turnstile.pipeline.plan.cluster_limits import cluster_limits, tells_of_cluster
from turnstile.pipeline.plan.cluster_rate import ClusterRate, check_rates
from turnstile.pipeline.plan.log_sums import LogSums
from turnstile.pipeline.plan.recommend import LogLevels, recommend
from turnstile.pipeline.plan.replays import tells_here
from turnstile.pipeline.plan.talkers import LEAK, Talker, talkers
from turnstile.pipeline.plan.task_sums import MINUTE_US, Incident
from turnstile.pipeline.plan.variants import Variant, variants
from turnstile.quantities import plural

if TYPE_CHECKING:
    from turnstile.pipeline.inputs.connection_logs import Input

ROWS_PER_TASK = 1_000_000
HOT_SHARE = 0.25
HEADROOM = Fraction(1, 2)
LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class LogPeriod(NamedTuple):
    """An incident to set beside the rest of the log; both ends in UTC."""

    start: datetime
    end: datetime

    def of(self, log: Contents) -> Incident:
        """The incident as tasks take it."""
        low, high = (int(each.timestamp() * 1_000_000) for each in (self.start, self.end))
        return Incident(low, high, (log.last_us - log.first_us) / 1e6)


class LeftOut(NamedTuple):
    """Entities that look like leaks, which the recommendation is not made for, and how many connections of the log are theirs."""

    entities: list[str]
    connections: int


class LimitPlan(NamedTuple):
    """A plan's answer, of entities of the type `by`. `first`, `last`: when the log's first and last connection was opened.
    `peaks`: the most that an entity had open at once -> how many entities. `overrides`: those that every candidate had.
    `recommended`: one or two variants with `headroom` (0.5: half as many more) above what the log shows; `cluster`,
    `cluster_rate`: the cap and the rate of the whole cluster; None of a log that does not tell of all its brokers."""

    by: EntityType
    connections: int
    entities: int
    peaks: dict[int, int]
    bad_rows: int
    bad_reasons: dict[str, int]
    first: datetime
    last: datetime
    candidates: list[CandidateOutcome]
    overrides: str
    headroom: float
    recommended: list[Variant]
    cluster: ClusterCap | None
    cluster_rate: ClusterRate | None
    left_out: LeftOut | None
    talkers: list[Talker]
    notes: list[str]

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        one, of = self.by.name, f"{self.by.name}s"
        return {
            "by": one,
            "connections": self.connections,
            of: self.entities,
            "bad_rows": self.bad_rows,
            "bad_reasons": self.bad_reasons,
            "from": self.first.isoformat(),
            "to": self.last.isoformat(),
            "peaks": [{"open": peak, plural(self.by.noun, 2): count} for peak, count in sorted(self.peaks.items())],
            "candidates": [self._candidate(each) for each in self.candidates],
            "headroom": self.headroom,
            "recommended": {each.name: each.as_json() for each in self.recommended},
            "cluster": self.cluster and self.cluster.as_json(),
            "cluster_rate": self.cluster_rate and self.cluster_rate.as_json(),
            "left_out": self.left_out and {of: self.left_out.entities, "connections": self.left_out.connections},
            "talkers": [_renamed(talker._asdict(), "name", one) for talker in self.talkers],
            "notes": self.notes,
        }

    def _candidate(self, outcome: CandidateOutcome) -> dict[str, object]:
        plain = _renamed(dict(outcome), "entities_affected", f"{self.by.name}s_affected")
        if not self.by.has_networks:
            del plain["networks_affected"]
        return plain


def _renamed(plain: dict[str, object], key: str, other: str) -> dict[str, object]:
    """The fields, in the same order, with another name for a key."""
    return {other if name == key else name: value for name, value in plain.items()}


def plan(
    source: "Input | SmallLog",
    candidates: Sequence[Candidate],
    *,
    at_most_refused: float = 0.001,
    headroom: Fraction = HEADROOM,
    incident: LogPeriod | None = None,
    with_leaks: bool = False,
    whole_cluster: bool = False,
    cluster_rates: Sequence[int] = (),
) -> LimitPlan:
    """Replay a log against every candidate, or against a ladder of caps for each entity when there is none. The log's entities
    are what it was read by, and the candidates limit these.

    Spark reads the log once, once more before that for an incident, which is compared with the log's whole span, and once for
    the rate of a whole cluster. `with_leaks`: the recommendation is made for clients that leak connections, too. `whole_cluster`:
    the log has the connections to all brokers, as a journal has; `cluster_rates`: rates of the whole cluster to try. Raises
    PipelineError when nothing in the log can be used, and for a rate that can't be.
    """
    by = source.by
    check_rates(cluster_rates)
    with_peak = tells_of_cluster(source.format, by, whole_cluster=whole_cluster)
    chosen = list(candidates) or [Candidate(cap=cap, by=by) for cap in LADDER]
    sums = LogSums(_tells(source, chosen, incident, with_peak=with_peak), by)
    reasons = sums.by_name["unusable"]
    if ANOTHER_LAYOUT in reasons and not isinstance(source, SmallLog) and source.again is not None:
        return plan(
            source.again(), candidates, at_most_refused=at_most_refused, headroom=headroom, incident=incident,
            with_leaks=with_leaks, whole_cluster=whole_cluster, cluster_rates=cluster_rates,
        )  # fmt: skip
    total = sum(sums.by_number["level"].values())
    usable(total, reasons, source.paths, source.format, by)
    peaks = sums.by_number["peak"]
    first_us, last_us = min(sums.by_number["first"]), max(sums.by_number["last"])
    hours = (last_us - first_us) / 3.6e9
    standing_out = talkers(sums.greedy(), peaks, sums.by_number["lasted"], total, hours=hours, noun=by.noun)
    leaks = [each.name for each in standing_out if each.kind == LEAK]
    levels = sums.levels()
    others = levels.without(() if with_leaks else leaks)
    if not others.connections:
        others = levels
    recommended = variants(others, levels, recommend(others, at_most=at_most_refused), headroom)
    numbered = list(enumerate(chosen))
    if not candidates:
        numbered = [(number, each) for number, each in numbered if (each.cap or 0) <= 2 * max(peaks)]
    peak = max(sums.by_number["broker_peak"]) if with_peak else None
    cluster = cluster_limits(source, peak, Asked(at_most_refused, headroom, tuple(cluster_rates)))
    return LimitPlan(
        by=by,
        connections=total,
        entities=sum(peaks.values()),
        peaks=peaks,
        bad_rows=sum(reasons.values()),
        bad_reasons=reasons,
        first=_at(first_us),
        last=_at(last_us),
        candidates=[_judged(sums, number, candidate, total, incident) for number, candidate in numbered],
        overrides=chosen[0].overrides,
        headroom=float(headroom),
        recommended=recommended,
        cluster=cluster.cap,
        cluster_rate=cluster.rate,
        left_out=_left_out(levels, others, leaks),
        talkers=standing_out,
        notes=[*_notes(sums.by_name["busiest"], chosen, total, by), *_leaks(leaks, recommended), *cluster.notes],
    )


def _tells(
    source: "Input | SmallLog", candidates: Sequence[Candidate], incident: LogPeriod | None, *, with_peak: bool
) -> pyarrow.Table:
    """TELLS of a log."""
    if isinstance(source, SmallLog):
        compared = incident.of(source.contents) if incident else None
        return tells_here(source.table, candidates, compared, source.by, with_peak=with_peak)
    from turnstile.pipeline.inputs.connection_logs import contents, explained
    from turnstile.pipeline.plan.outcomes import outcomes
    from turnstile.pipeline.spark_table import fetch

    compared = incident.of(contents(source)) if incident else None
    tasks = max(source.arrived.sparkSession.sparkContext.defaultParallelism, -(-source.rows_about // ROWS_PER_TASK))
    with explained(source.paths, source.format):
        return fetch(outcomes(source.arrived, candidates, tasks, compared, source.by, with_peak=with_peak))


def _left_out(levels: LogLevels, others: LogLevels, leaks: Sequence[str]) -> LeftOut | None:
    connections = levels.connections - others.connections
    return LeftOut(list(leaks), connections) if connections else None


def _judged(
    sums: LogSums, number: int, candidate: Candidate, total: int, incident: LogPeriod | None
) -> CandidateOutcome:
    """The effect of a candidate."""
    of_candidate = sums.of_candidate
    refused = of_candidate["refused", number]
    worst = max(sums.minutes[number].items(), key=lambda each: (each[1], -each[0]), default=None)
    judged: CandidateOutcome = {
        "limits": candidate.limits,
        "refused": refused,
        "delayed": of_candidate["delayed", number],
        "entities_affected": of_candidate["entities", number],
        "networks_affected": of_candidate["network", number],
        "refused_share": refused / total,
        "worst_minute": {"at": _at(worst[0] * MINUTE_US).isoformat(), "refused": worst[1]} if worst else None,
        "headroom": _headroom(sums, candidate),
    }
    if incident:
        judged["compare"] = {
            "incident_refused": of_candidate["incident", number],
            "quiet_refused": refused - of_candidate["incident", number],
            "others_refused": of_candidate["others", number],
        }
    return judged


def _headroom(sums: LogSums, candidate: Candidate) -> float | None:
    """The room of a cap, of each entity or of the broker, above the highest peak that it doesn't touch, as a share of that
    peak, as `--headroom` counts it; None without such a cap, and where it touches every peak."""
    cap = candidate.cap or candidate.broker_cap
    if not cap:
        return None
    if candidate.cap:
        peak = max((each for each in sums.by_number["peak"] if each <= cap), default=0)
    else:
        peak = max(sums.by_number["broker_peak"], default=0)
    return max(0.0, cap / peak - 1) if peak else None


def _notes(busiest: dict[str, int], candidates: Sequence[Candidate], total: int, by: EntityType) -> list[str]:
    """Notes on how the answer was found, for its reader. `busiest`: the busiest entities of each task."""
    notes = []
    name, most = min(busiest.items(), key=lambda each: (-each[1], by.rank(each[0])))
    if most > HOT_SHARE * total and total > 1_000_000:
        notes.append(f"{name} has {most / total:.0%} of all connections; its replay is sequential and was one task.")
    if any(not candidate.is_per_entity for candidate in candidates) and total > 1_000_000:
        notes.append(
            "Broker-wide limits make every connection depend on all earlier ones; they were replayed sequentially."
        )
    if isinstance(by, Ips) and not by.brokers_limit_it:
        notes.append(
            f"IPv6 networks of {by.ipv6_prefix} bits count as one address, which Turnstile alone can: "
            f"turnstile up --set {IPV6_PREFIX}={by.ipv6_prefix}"
        )
    others = {name for candidate in candidates for name in candidate.limits} - {settings_of(by).cap}
    if others:
        notes.append(
            f"The recommendation is a cap for {plural(by.noun, 2)} alone, and not made with {', '.join(sorted(others))}."
        )
    return notes


def _leaks(leaks: Sequence[str], recommended: Sequence[Variant]) -> list[str]:
    """An override for a client that leaks connections only hides the leak."""
    spared = [name for name in leaks if any(name in each.overrides for each in recommended)]
    if not spared:
        return []
    return [f"{', '.join(spared)}: looks like a leak; better mended than given an override."]


def _at(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)
