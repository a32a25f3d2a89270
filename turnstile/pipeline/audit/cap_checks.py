"""Open connections of a pool never beyond the cap in force, for every broker, listener and address.

With an inter-broker listener, KIP-402 lets `max.connections` be passed by its connections: for each, the one elsewhere that
is idle longest is closed (`max_connections`). That takes the shards a moment: a shard that has not heard of it yet may let in
a connection by a token that it had before. So a connection of the inter-broker listener counts in the broker's pool, for
connections of other listeners, only ROOM_NS after it got in. `kafka_connections_max` is exact.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from turnstile.pipeline.audit.verdict import EXCEEDED, HELD, Check
from turnstile.pipeline.events import sweep
from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.timeline import Timeline

INVOLVED = 20
ROOM_NS = 10_000_000_000
NAMES = {"broker": "broker_cap", "listener": "listener_cap", "ip": "ip_cap"}


class _Found(NamedTuple):
    """Excesses of one kind of pool: the first of each broker in order of time, and how many each broker has in all."""

    first: list[dict[str, Any]]
    counts: Counter[int]


def checks(held: DataFrame, timeline: Timeline, connections: int) -> list[Check]:
    """A check per kind of pool. `held`: as audit.intervals has them, `connections` of them."""
    kinds = [kind for kind in sweep.KINDS if timeline.any_limit(kind)]
    found = _over(held, timeline, kinds, connections) if kinds and connections else {}
    _name_involved(held, [each for kind in kinds if kind in found for each in found[kind].first])
    return [_check(kind, kind in kinds, found.get(kind), connections) for kind in sweep.KINDS]


def _check(kind: str, is_limited: bool, found: _Found | None, connections: int) -> Check:
    name = NAMES[kind]
    if not is_limited:
        return Check(name, HELD, "no cap was set", [])
    if found is None:
        return Check(name, HELD, f"{connections} connections, never more open than allowed", [])
    first = found.first[0]
    pool = f"broker {first['broker']}" if kind == "broker" else f"{kind} {first['pool']} of broker {first['broker']}"
    detail = (
        f"{found.counts.total()} admissions beyond the cap; first {pool}: {first['open']} open, "
        f"{first['allowed']} allowed, at mono_ns {first['at_ns']}"
    )
    return Check(name, EXCEEDED, detail, found.first, found.counts)


def _over(held: DataFrame, timeline: Timeline, kinds: Sequence[str], connections: int) -> dict[str, _Found]:
    """Kind of pool -> what is beyond, for kinds that have anything."""
    protected = timeline.protected
    if not protected:
        rows = _sweep(held, timeline, kinds, connections)
    else:
        rows = _sweep(held, timeline.without_slots(), kinds, connections)
        rows += _sweep(_with_room(held, protected), timeline.only_slots(), ["broker"], connections)
    found: dict[str, _Found] = {}
    for kind in {each["kind"] for each in rows}:
        mine = sorted((each for each in rows if each["kind"] == kind), key=lambda each: each["at_ns"])
        counts: Counter[int] = Counter()
        for each in mine:
            counts[each["broker"]] += each.pop("excess")
        found[kind] = _Found(mine[: sweep.SHOWN], counts)
    return found


def _with_room(held: DataFrame, protected: Sequence[str]) -> DataFrame:
    """Connections of these listeners count ROOM_NS later, those that close before it not at all."""
    is_protected = F.col("listener").isin(*protected)
    start_ns = F.col("start_ns") + F.when(is_protected, F.lit(ROOM_NS)).otherwise(F.lit(0))
    return held.withColumn("start_ns", start_ns)


def _sweep(held: DataFrame, timeline: Timeline, kinds: Sequence[str], connections: int) -> list[dict[str, Any]]:
    """Rows of sweep.EXCESS; `excess` is in the first of each broker in a slice, 0 in others."""
    steps, slices = sweep.sliced(sweep.changes(held), rows=2 * connections)
    rows = [row.asDict() for row in sweep.excesses(steps, slices, timeline, kinds).collect()]
    told: set[tuple[int, str, int]] = set()
    for each in rows:
        place = each.pop("slice"), each["kind"], each["broker"]
        if place in told:
            each["excess"] = 0
        told.add(place)
    return rows


def _name_involved(held: DataFrame, excesses: list[dict[str, Any]]) -> None:
    """Puts into each excess the `connections` open in its pool then, the latest INVOLVED, as broker/shard/epoch/number."""
    if not excesses:
        return
    keys = [(place, each["kind"], each["broker"], each["pool"], each["at_ns"]) for place, each in enumerate(excesses)]
    wanted = held.sparkSession.createDataFrame(keys, "place int, kind string, of int, pool string, at_ns long")
    is_mine = (
        (F.col("broker") == F.col("of"))
        & ((F.col("kind") != "listener") | F.col("listener").eqNullSafe(F.col("pool")))
        & ((F.col("kind") != "ip") | F.col("ip").eqNullSafe(F.col("pool")))
    )
    is_open = (F.col("start_ns") <= F.col("at_ns")) & (F.col("end_ns").isNull() | (F.col("end_ns") > F.col("at_ns")))
    name = F.concat_ws("/", *(F.col(column) for column in (*INCARNATION, "conn"))).alias("name")
    latest = Window.partitionBy("place").orderBy(F.desc("start_ns"))
    ranked = (
        held.join(F.broadcast(wanted), is_mine & is_open, how="inner")
        .withColumn("rank", F.row_number().over(latest))
        .where(F.col("rank") <= INVOLVED)
        .select("place", "rank", name)
    )
    for each in excesses:
        each["connections"] = []
    for row in sorted(ranked.collect()):
        excesses[row["place"]]["connections"].append(row["name"])
