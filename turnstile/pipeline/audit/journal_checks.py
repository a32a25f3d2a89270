"""Checks that the journal is whole and agrees with itself, by what the survey knows, before any limit is judged.

A journal that is not whole proves nothing: what is found here is `unknown`, never `exceeded`.

numbers_have_no_gap  every process has all its numbers, each once, and its clock never goes back (`sequence`)
events_say_what_their_kind_must  every event says what one of its kind must say (`events`)
processes_begin_and_end  every process that is named has events, begins with `shard_up`, and ends with `ended`, or was reported
    lost, or was killed together with the coordinator; nothing follows its end, and its predecessor was gone before it began
    (`processes`)
versions_are_told_alike  every version that something was decided under is told, by all processes alike, and acknowledged after
    it was stored (`configuration`)
nothing_before_its_version_is_stored  nothing was admitted under a version before the coordinator stored it
    (`stored_before_use`)
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from broker.journal.schema import COORDINATOR
from turnstile.pipeline.audit.audit_result import HELD, UNKNOWN, Check
from turnstile.pipeline.events.arrays import TableRow
from turnstile.pipeline.events.open_counts import SHOWN
from turnstile.pipeline.events.parts import Unreadable
from turnstile.pipeline.events.sequence import Incarnation
from turnstile.pipeline.events.survey import Process, Survey, Told, named
from turnstile.pipeline.events.timeline import Timeline


class Fault(NamedTuple):
    """A fault in the rows of a broker's processes; None: it is not known whose."""

    broker: int | None
    sentence: str
    events: int = 1


class JournalChecks(NamedTuple):
    """The checks, and the brokers of which events are missing or not to be trusted."""

    checks: list[Check]
    incomplete: set[int]


def checks(seen: Survey, timeline: Timeline, unreadable: Sequence[Unreadable], *, live: bool) -> JournalChecks:
    """`live`: processes may be running, so that those that have not ended are no fault."""
    sequence, processes = _sequence(seen, unreadable), _processes(seen, live=live)
    events = [
        Fault(broker, f"{count} of {reason}", count) for (broker, reason), count in sorted(seen.bad.items(), key=str)
    ]
    configuration = [Fault(None, each) for each in dict.fromkeys([*timeline.unknown, *_disagreements(seen, timeline)])]
    early = [
        Fault(None, f"version {version} was decided under before it was stored")
        for version, at_ns in sorted(seen.decided.items())
        if at_ns < timeline.stored.get(version, at_ns)
    ]
    made = [
        _check("sequence", sequence, "no event is missing or there twice"),
        _check("events", events, "every event says what one of its kind must say"),
        _check("processes", processes, f"{len(seen.processes)} processes, each from its first event to its last"),
        _check("configuration", configuration, _versions(timeline)),
        _check("stored_before_use", early, "nothing was decided under a version that was yet to be stored"),
    ]
    brokers = {each.broker for each in seen.processes}
    unsure = {fault.broker for fault in (*sequence, *events, *processes)}
    of_all = unsure & {None, COORDINATOR}
    return JournalChecks(made, brokers if of_all else {each for each in unsure if each is not None})


def _check(name: str, faults: Sequence[Fault], if_held: str) -> Check:
    if not faults:
        return Check(name, HELD, if_held, [])
    counts: Counter[int] = Counter()
    for fault in faults:
        if fault.broker is not None:
            counts[fault.broker] += fault.events
    said = "; ".join(dict.fromkeys(fault.sentence.rstrip(".") for fault in faults[:3]))
    more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
    return Check(name, UNKNOWN, said + more, [fault._asdict() for fault in faults[:SHOWN]], counts)


def _versions(timeline: Timeline) -> str:
    if not timeline.versions:
        return ""
    acknowledged = len({version for _, version in timeline.acknowledged})
    return f"versions {timeline.versions[0]} to {timeline.versions[-1]}, {acknowledged} acknowledged by every shard"


# ---- numbers_have_no_gap


def _sequence(seen: Survey, unreadable: Sequence[Unreadable]) -> list[Fault]:
    faults = [Fault(part.broker, part.sentence) for part in unreadable]
    faults += [
        Fault(gap.broker, f"{gap.last - gap.first + 1} events are missing: {gap.sentence()}", gap.last - gap.first + 1)
        for gap in seen.gaps
    ]
    faults += [
        Fault(place[0], f"{_name(place)}: seq {first} to {last} is there more than once", last - first + 1)
        for place, first, last in seen.twice
    ]
    return faults + [
        Fault(place[0], f"{_name(place)}: mono_ns goes back at seq {seq}") for place, seq in sorted(seen.back.items())
    ]


# ---- processes_begin_and_end


class _Known(NamedTuple):
    """The survey's facts about processes, by incarnation.

    up        the last coordinator that says that it was up
    starts    the event with seq 0
    serving   it admitted or refused
    newest    (broker, shard) -> its last epoch
    """

    up: dict[Incarnation, Incarnation]
    lost: dict[Incarnation, int]
    starts: dict[Incarnation, Told]
    ended: dict[Incarnation, int]
    serving: set[Incarnation]
    newest: dict[tuple[int, int], int]
    live: bool

    @classmethod
    def of(cls, seen: Survey, *, live: bool) -> "_Known":
        up = {
            place: event.place
            for event in seen.told
            if event.kind == "shard_up" and event.place[0] == COORDINATOR and (place := named(event.detail))
        }
        starts = {event.place: event for event in seen.told if event.seq == 0}
        newest = {each[:2]: each.epoch for each in seen.processes}  # in order of epoch
        return cls(up, seen.lost, starts, seen.ended, {place for place, _ in seen.serving}, newest, live)

    def may_have_no_end(self, process: Process) -> bool:
        """True if one that neither ended nor was lost may be running, or was killed together with its coordinator."""
        coordinator = self.newest.get((COORDINATOR, COORDINATOR), 0)
        if process.broker == COORDINATOR:
            return self.live or process.epoch < coordinator
        if self.live and process.epoch == self.newest[process[:2]]:
            return True
        its = self.up.get(process[:3])
        if its is None:  # ended while it started, before the coordinator heard of it
            return process[:3] not in self.serving
        return its not in self.ended and its[2] < coordinator


def _processes(seen: Survey, *, live: bool) -> list[Fault]:
    known = _Known.of(seen, live=live)
    there = {each[:3] for each in seen.processes}
    faults = [
        Fault(place[0], f"{_name(place)} has no events, but the coordinator tells of it")
        for place in sorted({*known.up, *known.lost} - there)
    ]
    if (COORDINATOR, COORDINATOR) not in known.newest:
        faults.append(Fault(COORDINATOR, "the coordinator has no events"))
    faults += _shards_without_events(seen)
    for process in seen.processes:
        faults += [Fault(process.broker, f"{_name(process)} {why}") for why in _wrong_with(process, known)]
    return faults + _overlaps(seen.processes)


def _shards_without_events(seen: Survey) -> list[Fault]:
    """The shards that wrote nothing, for each time in which a broker had a number of shards."""
    there: dict[tuple[int, int, int], set[int]] = {}
    for place, span in seen.spans().items():
        there.setdefault((place[0], span.number, span.shards), set()).add(place[1])
    return [
        Fault(broker, f"broker {broker} shard {shard}, of {shards}, has no events")
        for (broker, _, shards), wrote in sorted(there.items())
        for shard in sorted({*range(shards)} - wrote)
    ]


def _wrong_with(process: Process, known: _Known) -> Iterable[str]:
    """The faults of one process."""
    place = process[:3]
    if place[0] >= 0:
        first = known.starts.get(place)
        if process.low == 0 and (first is None or first.kind != "shard_up" or named(first.detail) != place):
            yield "does not begin with a shard_up that names it"
        if place in known.serving and place not in known.up:
            yield "served, and the coordinator never saw it up"
    ended = known.ended.get(place)
    if ended is not None and ended != process.high:
        yield f"has events after its end at seq {ended}"
    if ended is None and place not in known.lost and not known.may_have_no_end(process):
        yield f"has no end: what followed its seq {process.high} is not known"


def _overlaps(processes: Sequence[Process]) -> list[Fault]:
    """A process that began before its predecessor's last event."""
    faults = []
    for before, after in pairwise(processes):  # in order of epoch
        if before[:2] == after[:2] and after.first_ns < before.last_ns:
            faults.append(Fault(after.broker, f"{_name(after[:3])} began before {_name(before[:3])} was gone"))
    return faults


# ---- versions_are_told_alike


def _disagreements(seen: Survey, timeline: Timeline) -> list[str]:
    """Versions that processes tell in different ways, and those that are acknowledged without being stored before."""
    configs = [event for event in seen.told if event.kind == "config" and event.version > 0]
    unread = [each.version for each in configs if not _is_readable(each.detail)]
    if unread:
        return [f"what version {unread[0]} says can't be read"]
    stored, acknowledged = (
        {
            (each.place, each.version)
            for each in configs
            if each.place[0] == COORDINATOR and _acknowledges(each) == wanted
        }
        for wanted in (False, True)
    )
    first = {version: at_ns for at_ns, version in reversed(timeline.acknowledged)}
    return [
        *(f"version {version} is told in different ways" for version in _told_differently(configs)),
        *(f"version {version} was acknowledged, and nothing tells that it was stored"
          for _, version in sorted(acknowledged - stored)),
        *(f"version {version} was acknowledged before it was stored"
          for version, at_ns in sorted(first.items()) if at_ns < timeline.stored.get(version, at_ns)),
    ]  # fmt: skip


def _is_readable(detail: object) -> bool:
    changes = detail.get("changes") if isinstance(detail, dict) else None
    return isinstance(changes, list) and all(isinstance(each, list) and len(each) == 3 for each in changes)


def _acknowledges(event: Told) -> bool:
    return bool(event.detail.get("acknowledged"))


def _told_differently(configs: Sequence[Told]) -> list[int]:
    """Versions whose changes, or whose whole state, are not the same wherever they are told.

    What belongs to the start of a broker (`static`) is left out: it is of that broker alone.
    """
    changes: dict[int, list[TableRow]] = {}
    wholes: dict[int, list[TableRow]] = {}
    for event in configs:
        of = {f"{kind} {key}": value for kind, key, value in event.detail["changes"] if kind != "static"}
        (wholes if event.detail.get("full") else changes).setdefault(event.version, []).append(of)
    found, before = [], None
    for version in sorted({*changes, *wholes}):
        deltas, states = changes.get(version, []), wholes.get(version, [])
        if before is not None and before[0] == version - 1 and deltas:
            states = [*states, {key: value for key, value in {**before[1], **deltas[0]}.items() if value is not None}]
        if any(each != deltas[0] for each in deltas) or any(each != states[0] for each in states):
            found.append(version)
        before = (version, states[0]) if states else None
    return found


def _name(place: Sequence[int]) -> str:
    where = "the coordinator" if place[0] < 0 else f"broker {place[0]} shard {place[1]}"
    return f"{where}, epoch {place[2]}"
