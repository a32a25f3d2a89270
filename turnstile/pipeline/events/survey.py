"""What little the driver has to know of a journal before anything is judged: two passes over a few of its columns."""

import json
from collections import Counter
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from turnstile.pipeline.events.journal_events import INCARNATION
from turnstile.pipeline.events.timeline import ConfigEvent, Timeline

Incarnation = tuple[int, int, int]


class Process(NamedTuple):
    """An incarnation that wrote events: its least and greatest `seq`, how many `events` there are, when the first and last were."""

    broker: int
    shard: int
    epoch: int
    low: int
    high: int
    events: int
    first_ns: int
    last_ns: int


class Survey(NamedTuple):
    """What was seen of a journal.

    lost        (broker, shard, epoch) that the coordinator says died -> the mono_ns at which it says so
    first_seen  version -> the first mono_ns of any event that carries it
    listeners   names that were seen
    grants      how many events of that kind there are
    refusals    reason -> how many refusals name it
    """

    processes: list[Process]
    configs: list[ConfigEvent]
    lost: dict[Incarnation, int]
    first_seen: dict[int, int]
    listeners: list[str]
    grants: int
    refusals: Counter[str]

    def timeline(self) -> Timeline:
        """The configuration over time."""
        return Timeline(self.configs, self.first_seen, self.listeners)

    def ends(self, *, of_all: bool = False) -> list[tuple[int, int, int, int]]:
        """(broker, shard, epoch, its last event's mono_ns) of every process known to be gone: succeeded, or reported lost.

        `of_all`: also of those that may be alive.
        """
        newest: dict[tuple[int, int], int] = {}
        for each in self.processes:
            newest[each[:2]] = max(newest.get(each[:2], each.epoch), each.epoch)
        return [
            (*each[:3], each.last_ns)
            for each in self.processes
            if of_all or each.epoch < newest[each[:2]] or each[:3] in self.lost
        ]


def survey(events: DataFrame) -> Survey:
    """Looks through a journal. What is collected is a row per process, version and listener, and the config events."""
    refused_for = F.when(F.col("kind") == "refused", F.col("reason")).alias("refused_for")
    summed = events.groupBy(*INCARNATION, "version", "listener", refused_for).agg(
        F.min("seq").alias("low"),
        F.max("seq").alias("high"),
        F.count("*").alias("count"),
        F.min("mono_ns").alias("first_ns"),
        F.max("mono_ns").alias("last_ns"),
        F.count_if(F.col("kind") == "grant").alias("grants"),
    )
    processes: dict[tuple[int, int, int], Process] = {}
    first_seen: dict[int, int] = {}
    listeners: set[str] = set()
    grants, refusals = 0, Counter[str]()
    for row in summed.collect():
        each = Process(*row[:3], *row[6:11])
        grants += row["grants"]
        if row["refused_for"] is not None:
            refusals[row["refused_for"]] += each.events
        before = processes.get(each[:3], each)
        count = each.events if before is each else before.events + each.events
        processes[each[:3]] = Process(
            *each[:3],
            min(before.low, each.low),
            max(before.high, each.high),
            count,
            min(before.first_ns, each.first_ns),
            max(before.last_ns, each.last_ns),
        )
        if row["version"]:
            first_seen[row["version"]] = min(first_seen.get(row["version"], each.first_ns), each.first_ns)
        if row["listener"] is not None:
            listeners.add(row["listener"])
    configs, lost = _told(events)
    return Survey(list(processes.values()), configs, lost, first_seen, sorted(listeners), grants, refusals)


def _told(events: DataFrame) -> tuple[list[ConfigEvent], dict[Incarnation, int]]:
    """The configuration's events, and the processes that are reported lost."""
    is_lost = F.col("kind") == "shard_lost"
    rows = events.where(
        F.col("detail").isNotNull() & (is_lost | ((F.col("kind") == "config") & (F.col("version") > 0)))
    )
    told = {
        "acknowledged": F.get_json_object("detail", "$.acknowledged"),
        "full": F.get_json_object("detail", "$.full"),
        "is_coordinator": F.col("broker") < 0,
        "lost": F.when(is_lost, F.col("detail")),
    }
    # Every shard writes the same change; the earliest of each version and kind is enough.
    first = (
        rows.withColumns(told)
        .groupBy("version", *told)
        .agg(F.min_by(F.struct("mono_ns", "broker", "detail"), "mono_ns").alias("event"))
    )
    configs: list[ConfigEvent] = []
    lost: dict[Incarnation, int] = {}
    for row in first.collect():
        if row["lost"] is None:
            configs.append(ConfigEvent(row["version"], *row["event"]))
        else:
            place = json.loads(row["lost"])
            lost[place["broker"], place["shard"], place["epoch"]] = row["event"]["mono_ns"]
    return configs, lost
