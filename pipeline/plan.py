"""What limit should I set? A real connection log replayed against candidate limits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.candidates import Candidate, paste
from pipeline.inputs import Input
from pipeline.outcomes import BROKER_HISTOGRAM, HISTOGRAM, arrivals, outcomes
from pipeline.recommend import Recommendation, Talker, recommend, talkers

HOT_SHARE = 0.25
LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class Period(NamedTuple):
    """An incident to set beside the rest of the log; both ends in UTC."""

    start: datetime
    end: datetime

    def contains(self, opened_us: Column) -> Column:
        """Whether a connection was opened in it."""
        low, high = (int(each.timestamp() * 1_000_000) for each in (self.start, self.end))
        return (opened_us >= low) & (opened_us < high)


class Plan(NamedTuple):
    """A plan's answer; `as_json` is DESIGN section 8's shape and more."""

    connections: int
    ips: int
    bad_rows: int
    bad_reasons: dict[str, int]
    first: datetime
    last: datetime
    candidates: list[dict[str, Any]]
    recommended: Recommendation
    without_overrides: Recommendation
    talkers: list[Talker]
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        recommended, plain = self.recommended, self.without_overrides
        return {
            "connections": self.connections,
            "ips": self.ips,
            "bad_rows": self.bad_rows,
            "bad_reasons": self.bad_reasons,
            "from": self.first.isoformat(),
            "to": self.last.isoformat(),
            "candidates": self.candidates,
            "recommended": {
                "limits": {"kafka_connections_max_per_ip": recommended.per_ip_cap},
                "overrides": recommended.overrides,
                "refused_share": recommended.refused_share,
                "without_overrides": {"cap": plain.per_ip_cap, "refused_share": plain.refused_share},
                "settings": paste(recommended.per_ip_cap, recommended.overrides),
            },
            "talkers": [talker._asdict() for talker in self.talkers],
            "notes": self.notes,
        }


def plan(
    source: Input,
    candidates: Sequence[Candidate],
    *,
    at_most_refused: float = 0.001,
    incident: Period | None = None,
) -> Plan:
    """Replay a log against every candidate, or against a ladder of per-IP caps when there is none."""
    connections, total = source.connections, source.count
    arrived = arrivals(connections).persist(StorageLevel.MEMORY_AND_DISK)
    chosen = list(candidates) or [Candidate(per_ip_cap=cap) for cap in LADDER]
    result = outcomes(arrived, chosen, total).persist(StorageLevel.MEMORY_AND_DISK)
    histogram = result.where(F.col("candidate") == HISTOGRAM).select("ip", "level", "n")
    plain, best = recommend(histogram, total, at_most=at_most_refused)
    if not candidates:
        highest = histogram.agg(F.max("level")).first()[0]
        chosen = [each for each in chosen if (each.per_ip_cap or 0) <= 2 * highest]
    standing_out = talkers(connections, histogram, total)
    found = Plan(
        connections=total,
        ips=histogram.select("ip").distinct().count(),
        bad_rows=source.bad_rows,
        bad_reasons=source.reasons,
        first=_at(source.first_us),
        last=_at(source.last_us),
        candidates=_judged(result, chosen, source, incident, arrived),
        recommended=best,
        without_overrides=plain,
        talkers=standing_out,
        notes=_notes(histogram, chosen, total) + _leaks(standing_out, best),
    )
    result.unpersist()
    arrived.unpersist()
    return found


def _judged(
    result: DataFrame, candidates: Sequence[Candidate], source: Input, incident: Period | None, arrived: DataFrame
) -> list[dict[str, Any]]:
    """What each candidate does, in the order given."""
    inside = incident.contains(F.col("opened_us")) if incident else F.lit(False)
    minute = F.expr("opened_us div 60000000").alias("minute")
    # One row per candidate, address and minute: everything below is sums over these.
    hit = (
        result.where(F.col("candidate") >= 0)
        .groupBy("candidate", "ip", minute, inside.alias("in_incident"), "is_refused")
        .agg(F.count("*").alias("n"))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    refused = F.when(F.col("is_refused"), F.col("n"))
    delayed = F.when(~F.col("is_refused"), F.col("n"))
    sums = hit.groupBy("candidate").agg(
        F.sum(refused).alias("refused"),
        F.sum(delayed).alias("delayed"),
        F.countDistinct("ip").alias("ips"),
        F.countDistinct(_network(F.col("ip"))).alias("networks"),
        F.sum(F.when(F.col("in_incident"), refused)).alias("incident"),
    )
    by_number = {row["candidate"]: row for row in sums.collect()}
    per_minute = hit.where("is_refused").groupBy("candidate", "minute").agg(F.sum("n").alias("n"))
    worst = per_minute.groupBy("candidate").agg(
        F.max_by(F.struct("minute", "n"), F.struct("n", -F.col("minute"))).alias("worst")
    )
    worst_of = {row["candidate"]: row["worst"] for row in worst.collect()}
    rooms = _headroom(result, candidates)
    cost = _cost(hit, arrived, incident, (source.last_us - source.first_us) / 1e6) if incident else {}
    judged = []
    for number, candidate in enumerate(candidates):
        row, minutes = by_number.get(number), worst_of.get(number)
        count = (row["refused"] or 0) if row else 0
        one: dict[str, Any] = {
            "limits": candidate.limits,
            "refused": count,
            "delayed": (row["delayed"] or 0) if row else 0,
            "ips_affected": row["ips"] if row else 0,
            "networks_affected": row["networks"] if row else 0,
            "refused_share": count / source.count,
            "worst_minute": {"at": _at(minutes["minute"] * 60_000_000).isoformat(), "refused": minutes["n"]}
            if minutes
            else None,
            "headroom": rooms[number],
        }
        if incident:
            stopped = (row["incident"] or 0) if row else 0
            one["compare"] = {
                "incident_refused": stopped,
                "quiet_refused": count - stopped,
                **cost.get(number, {"others_refused": 0}),
            }
        judged.append(one)
    hit.unpersist()
    return judged


def _headroom(result: DataFrame, candidates: Sequence[Candidate]) -> list[float | None]:
    """The share of a per-IP or broker cap that is left at the highest peak it doesn't touch; None without such a cap."""
    histograms = result.where(F.col("candidate") < 0)
    peaks = histograms.groupBy("candidate", "ip").agg(F.max("level").alias("peak")).persist()
    per_ip = sorted({candidate.per_ip_cap for candidate in candidates if candidate.per_ip_cap})
    untouched = [F.max(F.when(F.col("peak") <= cap, F.col("peak"))).alias(str(cap)) for cap in per_ip]
    by_cap = peaks.where(F.col("candidate") == HISTOGRAM).agg(F.lit(0), *untouched).first()
    broker = peaks.where(F.col("candidate") == BROKER_HISTOGRAM).agg(F.max("peak")).first()[0]
    peaks.unpersist()
    rooms: list[float | None] = []
    for candidate in candidates:
        if candidate.per_ip_cap:
            rooms.append(1 - (by_cap[str(candidate.per_ip_cap)] or 0) / candidate.per_ip_cap)
        elif candidate.broker_cap and broker is not None:
            rooms.append(max(0.0, 1 - broker / candidate.broker_cap))
        else:
            rooms.append(None)
    return rooms


def _cost(hit: DataFrame, arrived: DataFrame, incident: Period, span_s: float) -> dict[int, dict[str, int]]:
    """Refused in the incident, of addresses that took no part in it.

    An address takes part when it connects at more than three times its own quiet rate, or was never seen before.
    """
    seconds = (incident.end - incident.start).total_seconds()
    inside = incident.contains(F.col("opened_us"))
    rates = arrived.groupBy("ip").agg(F.count_if(inside).alias("during"), F.count_if(~inside).alias("quiet"))
    usual = F.col("quiet") / max(1.0, span_s - seconds) * seconds
    others = rates.where(F.col("during") <= 3 * usual).select("ip")
    refused = hit.where(F.col("in_incident") & F.col("is_refused")).join(others, "ip", how="leftsemi")
    sums = refused.groupBy("candidate").agg(F.sum("n").alias("n")).collect()
    return {row["candidate"]: {"others_refused": row["n"]} for row in sums}


def _notes(histogram: DataFrame, candidates: Sequence[Candidate], total: int) -> list[str]:
    """What a reader should know about how the answer was come by."""
    notes = []
    busiest = histogram.groupBy("ip").agg(F.sum("n").alias("n")).orderBy(F.desc("n"), "ip").first()
    if busiest is not None and busiest["n"] > HOT_SHARE * total and total > 1_000_000:
        notes.append(
            f"{busiest['ip']} has {busiest['n'] / total:.0%} of all connections; its replay is sequential and was one task."
        )
    if any(not candidate.is_per_ip for candidate in candidates) and total > 1_000_000:
        notes.append(
            "Broker-wide limits make every connection depend on all earlier ones; they were replayed sequentially."
        )
    return notes


def _leaks(talkers: Sequence[Talker], recommended: Recommendation) -> list[str]:
    """An override for a client that leaks connections only hides the leak."""
    leaking = [each.ip for each in talkers if each.kind == "leak" and each.ip in recommended.overrides]
    if not leaking:
        return []
    return [f"{', '.join(leaking)}: looks like a leak; better mended than given an override."]


def _network(ip: Column) -> Column:
    """The /24 of an IPv4 address, the first four groups of an IPv6 one."""
    v6 = F.concat(F.substring_index(ip, ":", 4), F.lit("::/64"))
    return F.when(ip.contains(":"), v6).otherwise(F.concat(F.substring_index(ip, ".", 3), F.lit(".0/24")))


def _at(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)
