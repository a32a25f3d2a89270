"""No rate beyond its window: what any Kafka broker with that limit could have admitted bounds what was admitted.

A window of `quota.window.num` x `quota.window.size.seconds` seconds holds at most quota x (num + 1) x size: the
sampled rate divides by no more than that (limits/rate.py, R1 to R3). Windows are looked at whole second by whole second,
so the work is one count per key and second however many events a key has.

The broker's and a listener's rate delay a connection by at most one window and then let it in, so each acceptor (one per
shard and listener) may add one per window beyond that. Redpanda's bucket holds one second's worth and refills for the
rest; a waiting connection has its token set aside.
"""

from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.timeline import Timeline
from pipeline.verdict import EXCEEDED, HELD, Check

SECOND_NS = 1_000_000_000
SHOWN = 10


class Kind(NamedTuple):
    """A sort of rate limit: its check's name, and the columns that its window is shared over."""

    name: str
    kind: str
    key: str | None
    per_shard: bool = False


KINDS = (
    Kind("ip_rate", "ip", "ip"),
    Kind("listener_rate", "listener", "listener"),
    Kind("broker_rate", "broker", None),
    Kind("core_rate", "core", None, per_shard=True),
    Kind("core_rate_override", "core_ip", "ip", per_shard=True),
)


def checks(events: DataFrame, timeline: Timeline) -> list[Check]:
    """A check per kind of rate that was ever limited."""
    found = []
    for kind in KINDS:
        if not timeline.any_limit(kind.kind, "rate"):
            continue
        over = beyond(events, timeline, kind)
        if not over:
            found.append(Check(kind.name, HELD, "never more admitted in a window than its rate allows", []))
            continue
        first = over[0]
        detail = (
            f"{first['pool'] or 'the broker'}: {first['admitted']} admitted in {first['seconds']} s, "
            f"{first['allowed']} allowed, from mono_ns {first['at_ns']}"
        )
        found.append(Check(kind.name, EXCEEDED, detail, over))
    return found


def beyond(events: DataFrame, timeline: Timeline, kind: Kind) -> list[dict[str, Any]]:
    """The first windows with more admissions than any version in force allows; at most SHOWN."""
    samples, size_ms = timeline.window
    seconds = max(1, samples * size_ms // 1000)
    place = ["broker", *(["shard", "epoch"] if kind.per_shard else []), *([kind.key] if kind.key else [])]
    admitted = events.where(F.col("kind") == "admitted")
    per_second = admitted.groupBy(*place, F.expr(f"mono_ns div {SECOND_NS}").alias("second")).agg(
        F.count("*").alias("n")
    )
    trailing = Window.partitionBy(*place).orderBy("second").rangeBetween(-(seconds - 1), 0)
    windows = per_second.withColumn("admitted", F.sum("n").over(trailing))
    lowest = timeline.lowest_rate(kind.kind) * seconds
    likely = windows.where(F.col("admitted") > lowest)
    acceptors = admitted.select("broker", "shard", "listener").distinct().count()
    over = []
    # Beyond the lowest rate ever set, but maybe within the one in force then: decided row by row, in order of time.
    for row in likely.orderBy("second").toLocalIterator():
        key = row[kind.key] if kind.key else ""
        start_ns, end_ns = (row["second"] - seconds + 1) * SECOND_NS, (row["second"] + 1) * SECOND_NS
        rate = timeline.allowed_rate(start_ns - seconds * SECOND_NS, end_ns, row["broker"], kind.kind, key)
        allowed = _allowed(rate, kind, samples, size_ms / 1000, seconds, acceptors)
        if row["admitted"] > allowed:
            over.append({"kind": kind.kind, "broker": row["broker"], "pool": key, "at_ns": start_ns, "seconds": seconds,
                         "admitted": row["admitted"], "allowed": int(allowed)})  # fmt: skip
            if len(over) == SHOWN:
                break
    return over


def _allowed(rate: float, kind: Kind, samples: int, size_s: float, seconds: int, acceptors: int) -> float:
    """The most that may be admitted in a window."""
    if kind.per_shard:
        return rate * (seconds + 1) + 1
    bound = rate * (samples + 1) * size_s + 1
    return bound if kind.kind == "ip" else bound + acceptors * (samples + 1)
