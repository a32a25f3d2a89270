"""The survey of a journal before anything is judged, from one look at each event.

Any part of the rows is summed up by `digest` (digest.py). `survey` puts these together, so that each missing number and each
that is there twice is known exactly.

each_number_is_accounted_for  every number of a process is in exactly one run, or in a gap, or in `twice`
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow

from turnstile.pipeline.events.arrays import EventDetail, TableRow
from turnstile.pipeline.events.config_states import ConfigEvent
from turnstile.pipeline.events.sequence import Gap, Incarnation
from turnstile.pipeline.events.timeline import Timeline


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


class Told(NamedTuple):
    """An event of TOLD."""

    place: Incarnation
    seq: int
    at_ns: int
    kind: str
    version: int
    detail: Any
    """The value of the JSON; None when there is none, or it can't be read."""


class WallSpan(NamedTuple):
    """The span from the first event to the last, by the wall clock; epoch nanoseconds."""

    first_ns: int
    last_ns: int


class Span(NamedTuple):
    """A time in which a broker had so many `shards`: it is started with another number only when all of them have ended."""

    number: int
    shards: int
    """0: no process tells."""


class Survey(NamedTuple):
    """The facts that a survey has of a journal.

    processes   in order of broker, shard and epoch
    gaps        what is missing between the events of each, and before its first
    twice       (incarnation, first seq, last seq): numbers that several events have
    back        incarnation -> the first seq whose mono_ns is before that of the event before it
    bad         why events were set aside (only_whole_events_are_judged) -> how many
    told        every event of TOLD in order of time
    first_seen  version -> the first mono_ns of any event that carries it
    decided     version -> the first mono_ns of an admission under it
    listeners   names that were seen
    kinds       kind -> how many events
    serving     (incarnation, listener) where connections were admitted or refused
    refusals    reason -> how many refusals name it
    wall        when the events were; None where none says it
    set_ns      by how much the wall clock was set between events: what it is ahead of mono_ns, the most less the least
    """

    processes: list[Process]
    gaps: list[Gap]
    twice: list[tuple[Incarnation, int, int]]
    back: dict[Incarnation, int]
    bad: Counter[tuple[int | None, str]]
    told: list[Told]
    first_seen: dict[int, int]
    decided: dict[int, int]
    listeners: list[str]
    kinds: Counter[str]
    serving: set[tuple[Incarnation, str]]
    refusals: Counter[str]
    wall: WallSpan | None
    set_ns: int

    @property
    def events(self) -> int:
        """The number of events."""
        return sum(each.events for each in self.processes)

    @property
    def lost(self) -> dict[Incarnation, int]:
        """(broker, shard, epoch) that the coordinator says died -> the mono_ns at which it says so."""
        return {
            place: event.at_ns for event in self.told if event.kind == "shard_lost" and (place := named(event.detail))
        }

    @property
    def starts(self) -> dict[Incarnation, EventDetail]:
        """Incarnation -> the detail of the `shard_up` that it wrote itself."""
        return {
            event.place: event.detail
            for event in self.told
            if event.kind == "shard_up" and event.place[0] >= 0 and isinstance(event.detail, dict)
        }

    def spans(self) -> dict[Incarnation, Span]:
        """Incarnation of a shard -> the span it is in. Epochs rise, so those of a span follow each other."""
        found: dict[Incarnation, Span] = {}
        starts = self.starts
        last: dict[int, Span] = {}
        for place in sorted((each[:3] for each in self.processes if each.broker >= 0), key=lambda place: place[2]):
            count = starts.get(place, {}).get("shards")
            shards = count if isinstance(count, int) and count > 0 and place[1] < count else 0
            before = last.get(place[0], Span(-1, -1))
            found[place] = before if shards == before.shards else Span(before.number + 1, shards)
            last[place[0]] = found[place]
        return found

    def cluster_spans(self) -> dict[Incarnation, Span]:
        """As `spans`, of the cluster: `shards` are those of all brokers together."""
        found: dict[Incarnation, Span] = {}
        starts, number, last = self.starts, -1, (0, -1)
        for place in sorted((each[:3] for each in self.processes if each.broker >= 0), key=lambda place: place[2]):
            detail = starts.get(place, {})
            shards, brokers = (
                each if isinstance(each, int) else 0 for each in (detail.get("shards"), detail.get("brokers"))
            )
            size = (brokers, shards) if place[0] < brokers and place[1] < shards else (0, 0)
            number, last = number + (size != last), size
            found[place] = Span(number, brokers * shards if size != (0, 0) else 0)
        return found

    def timeline(self) -> Timeline:
        """The configuration over time."""
        configs = [
            ConfigEvent(event.version, event.at_ns, event.place[0], json.dumps(event.detail))
            for event in self.told
            if event.kind == "config" and event.version > 0 and event.detail is not None
        ]
        return Timeline(configs, self.first_seen, self.listeners)

    @property
    def ended(self) -> dict[Incarnation, int]:
        """Incarnation -> the `seq` of the first event with which it says that it ends."""
        return {event.place: event.seq for event in reversed(self.told) if event.kind == "ended"}

    def gone(self, *, live: bool) -> set[Incarnation]:
        """Processes of which no event follows: succeeded, reported lost, or of a cluster of which no process is alive.

        `live`: whether one that neither ended nor was lost may still be running.
        """
        spans, lost, ended = self.spans(), self.lost, self.ended
        newest: dict[tuple[int, int], int] = {}
        newest_span: dict[int, int] = {}
        for each in self.processes:
            newest[each[:2]] = max(newest.get(each[:2], each.epoch), each.epoch)
            if each.broker >= 0:
                newest_span[each.broker] = max(newest_span.get(each.broker, 0), spans[each[:3]].number)
        return {
            each[:3]
            for each in self.processes
            if each.epoch < newest[each[:2]]
            or each[:3] in lost
            or each[:3] in ended
            or not live
            or (each.broker >= 0 and spans[each[:3]].number < newest_span[each.broker])
        }

    def ends(self, *, live: bool) -> dict[Incarnation, int]:
        """The last instant of each process that is gone."""
        gone = self.gone(live=live)
        return {each[:3]: each.last_ns for each in self.processes if each[:3] in gone}


def named(detail: Any) -> Incarnation | None:
    """The incarnation that a `shard_up` or `shard_lost` is about; None when it names none."""
    if not isinstance(detail, dict):
        return None
    place = tuple(detail.get(name) for name in ("broker", "shard", "epoch"))
    return place if all(isinstance(each, int) for each in place) else None  # type: ignore[return-value]  # three of them


def survey(digests: pyarrow.Table) -> Survey:
    """The survey that the digests of all parts make together."""
    by: dict[str, list[TableRow]] = {}
    for row in digests.to_pylist():
        by.setdefault(row["what"], []).append(row)
    back = {_of(row): row["low"] for row in sorted(by.get("back", ()), key=lambda row: -row["low"])}
    processes, gaps, twice = _joined(by.get("run", ()), back)
    bad: Counter[tuple[int | None, str]] = Counter()
    for row in by.get("bad", ()):
        bad[row["broker"], row["name"]] += row["count"]
    told = [
        Told(_of(row), row["low"], row["first_ns"], row["name"], row["version"] or 0, parsed_detail(row["detail"]))
        for row in by.get("told", ())
    ]
    return Survey(
        processes, gaps, twice, back, bad, sorted(told, key=lambda each: (each.at_ns, each.place, each.seq)),
        _first(by.get("seen", ())), _first(by.get("decided", ())), sorted({row["name"] for row in by.get("listener", ())}),
        _sum(by.get("kind", ())), {(_of(row), row["name"]) for row in by.get("serving", ())}, _sum(by.get("refused", ())),
        _wall(by.get("wall", ())), _set_ns(_wall(by.get("ahead", ()))),
    )  # fmt: skip


class _JoinedRuns(NamedTuple):
    """Processes, gaps, and numbers that are there twice."""

    processes: list[Process]
    gaps: list[Gap]
    twice: list[tuple[Incarnation, int, int]]


def _joined(runs: Iterable[TableRow], back: dict[Incarnation, int]) -> _JoinedRuns:
    """Adds to `back` what only shows between two runs."""
    processes: list[Process] = []
    gaps: list[Gap] = []
    twice: list[tuple[Incarnation, int, int]] = []
    ordered = sorted(runs, key=lambda row: (_of(row), row["low"], row["high"]))
    for row in ordered:
        place, timed_ns = _of(row), row["timed_ns"]
        if not processes or processes[-1][:3] != place:
            processes.append(Process(*place, row["low"], row["low"] - 1, 0, row["first_ns"], row["first_ns"]))
            if row["low"] > 0:
                gaps.append(Gap(*place, 0, row["low"] - 1, 0))
        now = processes[-1]
        if row["low"] > now.high + 1:
            gaps.append(Gap(*place, now.high + 1, row["low"] - 1, now.last_ns))
        elif row["low"] <= now.high:
            twice.append((place, row["low"], min(row["high"], now.high)))
        elif timed_ns is not None and timed_ns < now.last_ns and place not in back:
            back[place] = row["low"]
        processes[-1] = Process(
            *place, now.low, max(now.high, row["high"]), now.events + row["count"],
            min(now.first_ns, row["first_ns"]), max(now.last_ns, row["last_ns"]),
        )  # fmt: skip
    return _JoinedRuns(processes, sorted(gaps), twice)


def _wall(rows: Sequence[TableRow]) -> WallSpan | None:
    if not rows:
        return None
    return WallSpan(min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows))


def _set_ns(ahead: WallSpan | None) -> int:
    return 0 if ahead is None else ahead.last_ns - ahead.first_ns


def _of(row: TableRow) -> Incarnation:
    return row["broker"], row["shard"], row["epoch"]


def _sum(rows: Iterable[TableRow]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row["name"]] += row["count"]
    return found


def _first(rows: Iterable[TableRow]) -> dict[int, int]:
    found: dict[int, int] = {}
    for row in rows:
        found[row["version"]] = min(found.get(row["version"], row["first_ns"]), row["first_ns"])
    return found


def parsed_detail(detail: str | None) -> Any:
    """The detail of an event, read from JSON; None for what is none."""
    try:
        return json.loads(detail or "null")
    except ValueError:
        return None
