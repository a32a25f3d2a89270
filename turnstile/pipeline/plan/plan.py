"""The plan of limits: a real connection log replayed against candidate limits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import pyarrow

from shards.limits.connection_limits import CORE_IP_CAP
from turnstile.pipeline.inputs.addresses import parse
from turnstile.pipeline.inputs.contents import ANOTHER_LAYOUT, Contents, usable
from turnstile.pipeline.inputs.small_log import SmallLog
from turnstile.pipeline.plan.candidates import Candidate, CandidateOutcome
from turnstile.pipeline.plan.log_sums import LogSums
from turnstile.pipeline.plan.recommend import LogLevels, recommend
from turnstile.pipeline.plan.replays import tells_here
from turnstile.pipeline.plan.talkers import LEAK, Talker, talkers
from turnstile.pipeline.plan.task_sums import MINUTE_US, Incident
from turnstile.pipeline.plan.variants import Variant, variants

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
        """The same as tasks want it."""
        low, high = (int(each.timestamp() * 1_000_000) for each in (self.start, self.end))
        return Incident(low, high, (log.last_us - log.first_us) / 1e6)


class LeftOut(NamedTuple):
    """Addresses that look like leaks, which the recommendation is not made for, and how many connections of the log are theirs."""

    ips: list[str]
    connections: int


class LimitPlan(NamedTuple):
    """A plan's answer. `first`, `last`: when the log's first and last connection was opened. `peaks`: the most that an address
    had open at once -> how many addresses. `overrides`: those that every candidate had. `recommended`: one or two variants with
    `headroom` (0.5: half as many more) above what the log shows."""

    connections: int
    ips: int
    peaks: dict[int, int]
    bad_rows: int
    bad_reasons: dict[str, int]
    first: datetime
    last: datetime
    candidates: list[CandidateOutcome]
    overrides: str
    headroom: float
    recommended: list[Variant]
    left_out: LeftOut | None
    talkers: list[Talker]
    notes: list[str]

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "connections": self.connections,
            "ips": self.ips,
            "bad_rows": self.bad_rows,
            "bad_reasons": self.bad_reasons,
            "from": self.first.isoformat(),
            "to": self.last.isoformat(),
            "peaks": [{"open": peak, "addresses": count} for peak, count in sorted(self.peaks.items())],
            "candidates": self.candidates,
            "headroom": self.headroom,
            "recommended": {each.name: each.as_json() for each in self.recommended},
            "left_out": self.left_out._asdict() if self.left_out else None,
            "talkers": [talker._asdict() for talker in self.talkers],
            "notes": self.notes,
        }


def plan(
    source: "Input | SmallLog",
    candidates: Sequence[Candidate],
    *,
    at_most_refused: float = 0.001,
    headroom: Fraction = HEADROOM,
    incident: LogPeriod | None = None,
    with_leaks: bool = False,
) -> LimitPlan:
    """Replay a log against every candidate, or against a ladder of per-IP caps when there is none.

    Spark reads the log once, and once more before that for an incident, which is compared with the log's whole span.
    `with_leaks`: the recommendation is made for clients that leak connections, too. Raises PipelineError when nothing in the
    log can be used.
    """
    chosen = list(candidates) or [Candidate(per_ip_cap=cap) for cap in LADDER]
    sums = LogSums(_tells(source, chosen, incident))
    reasons = sums.by_name["unusable"]
    if ANOTHER_LAYOUT in reasons and not isinstance(source, SmallLog) and source.again is not None:
        return plan(
            source.again(), candidates, at_most_refused=at_most_refused, headroom=headroom, incident=incident,
            with_leaks=with_leaks,
        )  # fmt: skip
    total = sum(sums.by_number["level"].values())
    usable(total, reasons, source.paths, source.format)
    peaks = sums.by_number["peak"]
    first_us, last_us = min(sums.by_number["first"]), max(sums.by_number["last"])
    hours = (last_us - first_us) / 3.6e9
    standing_out = talkers(sums.greedy(), peaks, sums.by_number["lasted"], total, hours=hours)
    leaks = [each.ip for each in standing_out if each.kind == LEAK]
    levels = sums.levels()
    others = levels.without(() if with_leaks else leaks)
    if not others.connections:
        others = levels
    recommended = variants(others, levels, recommend(others, at_most=at_most_refused), headroom)
    numbered = list(enumerate(chosen))
    if not candidates:
        numbered = [(number, each) for number, each in numbered if (each.per_ip_cap or 0) <= 2 * max(peaks)]
    return LimitPlan(
        connections=total,
        ips=sum(peaks.values()),
        peaks=peaks,
        bad_rows=sum(reasons.values()),
        bad_reasons=reasons,
        first=_at(first_us),
        last=_at(last_us),
        candidates=[_judged(sums, number, candidate, total, incident) for number, candidate in numbered],
        overrides=chosen[0].overrides,
        headroom=float(headroom),
        recommended=recommended,
        left_out=_left_out(levels, others, leaks),
        talkers=standing_out,
        notes=[*_notes(sums.by_name["busiest"], chosen, total), *_leaks(leaks, recommended)],
    )


def _tells(source: "Input | SmallLog", candidates: Sequence[Candidate], incident: LogPeriod | None) -> pyarrow.Table:
    """TELLS of a log."""
    if isinstance(source, SmallLog):
        return tells_here(source.table, candidates, incident.of(source.contents) if incident else None)
    from turnstile.pipeline.fetch import fetch
    from turnstile.pipeline.inputs.connection_logs import contents, explained
    from turnstile.pipeline.plan.outcomes import outcomes

    compared = incident.of(contents(source)) if incident else None
    tasks = max(source.arrived.sparkSession.sparkContext.defaultParallelism, -(-source.rows_about // ROWS_PER_TASK))
    with explained(source.paths, source.format):
        return fetch(outcomes(source.arrived, candidates, tasks, compared))


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
        "ips_affected": of_candidate["ips", number],
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
    """The room of a per-IP or broker cap above the highest peak that it doesn't touch, as a share of that peak, as `--headroom`
    counts it; None without such a cap, and where it touches every peak."""
    cap = candidate.per_ip_cap or candidate.broker_cap
    if not cap:
        return None
    if candidate.per_ip_cap:
        peak = max((each for each in sums.by_number["peak"] if each <= cap), default=0)
    else:
        peak = max(sums.by_number["broker_peak"], default=0)
    return max(0.0, cap / peak - 1) if peak else None


def _notes(busiest: dict[str, int], candidates: Sequence[Candidate], total: int) -> list[str]:
    """Notes on how the answer was found, for its reader. `busiest`: the busiest addresses of each task."""
    notes = []
    ip, most = min(busiest.items(), key=lambda each: (-each[1], parse(each[0]) or (0, 0)))
    if most > HOT_SHARE * total and total > 1_000_000:
        notes.append(f"{ip} has {most / total:.0%} of all connections; its replay is sequential and was one task.")
    if any(not candidate.is_per_ip for candidate in candidates) and total > 1_000_000:
        notes.append(
            "Broker-wide limits make every connection depend on all earlier ones; they were replayed sequentially."
        )
    others = {name for candidate in candidates for name in candidate.limits} - {CORE_IP_CAP}
    if others:
        notes.append(f"The recommendation is a cap for addresses alone, and not made with {', '.join(sorted(others))}.")
    return notes


def _leaks(leaks: Sequence[str], recommended: Sequence[Variant]) -> list[str]:
    """An override for a client that leaks connections only hides the leak."""
    spared = [ip for ip in leaks if any(ip in each.overrides for each in recommended)]
    if not spared:
        return []
    return [f"{', '.join(spared)}: looks like a leak; better mended than given an override."]


def _at(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)
