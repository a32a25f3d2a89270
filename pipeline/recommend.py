"""The smallest per-IP cap that refuses at most a share of connections, with and without overrides for the few that need
more. Exact, from every address's histogram of levels: under a cap of C those of a level above C are refused.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

MAX_OVERRIDES = 20
LEAST_PEAK = 10
STANDS_OUT = 8
"""An address stands out when it has this many times as many connections open at most as the median address does."""


class Recommendation(NamedTuple):
    """A cap for every address, other ones for some (ip -> cap), and the share of connections refused by both."""

    per_ip_cap: int
    overrides: dict[str, int]
    refused_share: float


class Talker(NamedTuple):
    """An address that has far more open at once than most."""

    ip: str
    peak: int
    connections: int
    share: float
    kind: str
    typical_open_s: float | None


def recommend(
    histogram: DataFrame, total: int, *, at_most: float, most_overrides: int = MAX_OVERRIDES
) -> list[Recommendation]:
    """[without overrides, with them] from rows (ip, level, n) of `total` connections; `at_most` in [0, 1]."""
    allowed = int(at_most * total)
    by_level = histogram.groupBy("level").agg(F.sum("n").alias("n")).orderBy("level").collect()
    counts = {row["level"]: row["n"] for row in by_level}
    alone = _smallest(counts, allowed)
    plain = Recommendation(alone, {}, _above(counts, alone) / total if total else 0.0)
    peaks = histogram.groupBy("ip").agg(F.max("level").alias("peak"))
    greedy = [row["ip"] for row in peaks.orderBy(F.desc("peak"), "ip").limit(most_overrides).collect()]
    rows = histogram.where(F.col("ip").isin(greedy)).collect()
    by_ip: dict[str, dict[int, int]] = {}
    for row in rows:
        by_ip.setdefault(row["ip"], {})[row["level"]] = row["n"]
    return [plain, _with_overrides(counts, by_ip, greedy, allowed, total, plain)]


def _with_overrides(
    counts: dict[int, int],
    by_ip: dict[str, dict[int, int]],
    greedy: Sequence[str],
    allowed: int,
    total: int,
    plain: Recommendation,
) -> Recommendation:
    """Overrides for the greediest addresses, as long as they pay: the cap for all others at least halves in the end, and
    each further lot of overrides lowers it by a tenth."""
    best = plain
    rest = dict(counts)
    for used, ip in enumerate(greedy, 1):
        for level, count in by_ip[ip].items():
            rest[level] -= count
        cap = _smallest(rest, allowed)
        excepted = {each: max(by_ip[each]) for each in greedy[:used] if max(by_ip[each]) > cap}
        if 2 * cap <= plain.per_ip_cap and cap <= 0.9 * best.per_ip_cap:
            best = Recommendation(cap, excepted, _above(rest, cap) / total)
    return best


def _smallest(counts: dict[int, int], allowed: int) -> int:
    """The smallest cap, at least 1, above which there are at most `allowed` connections."""
    above = 0
    for level in sorted(counts, reverse=True):
        above += counts[level]
        if above > allowed:
            return max(1, level)
    return 1


def _above(counts: dict[int, int], cap: int) -> int:
    return sum(count for level, count in counts.items() if level > cap)


def talkers(connections: DataFrame, histogram: DataFrame, total: int, *, most: int = MAX_OVERRIDES) -> list[Talker]:
    """Addresses whose peak stands out, and what they look like.

    `nat`: many connections that last as long as everybody's, so many clients behind one address. `leak`: its connections
    stay open far longer than others', and pile up. `burst`: most of its connections come in one hour.
    """
    peaks = histogram.groupBy("ip").agg(F.max("level").alias("peak"), F.sum("n").alias("connections"))
    median = peaks.agg(F.percentile_approx("peak", F.lit(0.5))).first()[0]
    threshold = max(LEAST_PEAK, STANDS_OUT * median)
    greedy = peaks.where(F.col("peak") >= threshold).orderBy(F.desc("peak"), "ip").limit(most).collect()
    if not greedy:
        return []
    lasted = (F.unix_micros("closed_at") - F.unix_micros("opened_at")) / 1e6
    typical = connections.agg(F.percentile_approx(lasted, F.lit(0.5))).first()[0]
    mine = connections.where(F.col("ip").isin([row["ip"] for row in greedy]))
    of_hour = Window.partitionBy("ip")
    hourly = mine.groupBy("ip", F.window("opened_at", "1 hour").alias("hour")).agg(F.count("*").alias("n"))
    hottest = hourly.withColumn("most", F.max("n").over(of_hour)).groupBy("ip").agg(F.max("most").alias("most"))
    facts = mine.groupBy("ip").agg(
        F.percentile_approx(lasted, F.lit(0.5)).alias("typical"), F.count_if(F.col("closed_at").isNull()).alias("never")
    )
    known = {row["ip"]: row for row in facts.join(hottest, "ip", how="inner").collect()}
    return [
        Talker(
            row["ip"], row["peak"], row["connections"], row["connections"] / total,
            _kind(known[row["ip"]], row["connections"], typical), known[row["ip"]]["typical"],
        )
        for row in greedy
    ]  # fmt: skip


def _kind(facts: Any, connections: int, typical_s: float | None) -> str:
    if facts["never"] > connections / 2:
        return "leak"
    if typical_s and facts["typical"] is not None and facts["typical"] > 10 * typical_s:
        return "leak"
    return "burst" if facts["most"] > 0.8 * connections else "nat"
