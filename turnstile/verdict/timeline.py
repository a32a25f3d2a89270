"""The acts of a broker towards a client, and the client's answers: plain facts, in nanoseconds of one clock. Pure.

The checks are functions of a Timeline alone, so a test can make one by hand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypedDict

from turnstile.verdict.machine import Machine

SECOND = 1_000_000_000
MS = 1_000_000
AT_ONCE_NS = SECOND // 2
_LASTING_NS = SECOND // 4
TELEMETRY = ("GetTelemetrySubscriptions", "PushTelemetry")
SETUP = ("ApiVersions", "Metadata", "SaslHandshake", "SaslAuthenticate", "DescribeCluster", *TELEMETRY)
"""Requests with which a client finds its way: none of the work that it is there for."""


class Event(NamedTuple):
    """A row of the journal. `conn`: (broker, shard, epoch, number) of the connection; other columns as there."""

    kind: str
    at_ns: int
    conn: tuple[int, int, int, int]
    ip: str = ""
    port: int = 0
    client_id: str = ""
    api: str = ""
    reason: str = ""
    limit: str = ""
    size: int = 0
    throttle_ms: int = 0
    took_ms: float = 0.0
    value: float = 0.0


class CpuShare(NamedTuple):
    """Seconds a second for which threads ran, and for which they waited for a CPU."""

    ran: float
    waited: float


class StepDetail(TypedDict, total=False):
    """The details of a step beside its times. Instants are in nanoseconds of the monotonic clock.

    Of a refusal, rate or kill: `lifted_ns`, `recovered_ns` or None, `has_ended`; of a kill also `place`, the incarnation; of
    throttling and overlap: `exit_code`, or None while the program runs; of a herd: `copies`, `cut_ns`, `lifted_ns`; of a shutdown:
    `signalled_ns`, `ended_ns` or None; of telemetry, and of a baseline with a subscription: `interval_ms`.
    """

    lifted_ns: int
    recovered_ns: int | None
    has_ended: bool
    place: tuple[int, int, int]
    exit_code: int | None
    copies: int
    cut_ns: int
    signalled_ns: int
    ended_ns: int | None
    interval_ms: int


class Step(NamedTuple):
    """A part of the course. `kind`: baseline, telemetry, throttle, overlap, mutation, refuse, rate, kill, herd, settle or
    shutdown."""

    kind: str
    name: str
    began_ns: int
    ended_ns: int
    detail: StepDetail = StepDetail()

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.began_ns) / SECOND


class Record(NamedTuple):
    """A record that the client produced, as the log has it. `at_ms`: its own timestamp."""

    topic: str
    partition: int
    at_ms: int
    key: bytes | None
    value: bytes | None


class Busy(NamedTuple):
    """Seconds up to an instant for which all threads of the client have run, and were ready to run and waited for a CPU."""

    at_ns: int
    ran_s: float
    waited_s: float


@dataclass
class Timeline:
    """`events` by time. `busy`: how long the client's threads have run, and waited for a CPU. `wall_offset_ns`: Unix time less
    this clock.

    `records`: what was produced while the course went on; None: not read. `skipped`: why a kind of step was left out.
    `is_attached`: the client was not started here, so others may have ended it.
    """

    steps: Sequence[Step]
    events: Sequence[Event]
    busy: Sequence[Busy] = ()
    records: Sequence[Record] | None = None
    wall_offset_ns: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    is_attached: bool = False
    machine: Machine = field(default_factory=Machine)

    def of_kind(self, *kinds: str) -> list[Step]:
        return [step for step in self.steps if step.kind in kinds]

    def within(self, step: Step, *kinds: str) -> list[Event]:
        """Events of these kinds in a step."""
        began, ended = (bisect_left(self._instants, at_ns) for at_ns in (step.began_ns, step.ended_ns))
        return [event for event in self.events[began:ended] if event.kind in kinds]

    @cached_property
    def _instants(self) -> list[int]:
        return [event.at_ns for event in self.events]

    def in_steps(self, steps: Iterable[Step], *kinds: str) -> list[Event]:
        return [event for step in steps for event in self.within(step, *kinds)]

    def attempts(self, step: Step) -> list[int]:
        """The times of all connections that were begun in a step, let in or not."""
        return [event.at_ns for event in self.within(step, "admitted", "refused")]

    def is_the_end(self, at_ns: int) -> bool:
        """True if a client that others may have ended did nothing from an instant on but lose connections."""
        own = ("admitted", "refused", "request", "early")
        return self.is_attached and not any(
            e.kind in own for e in self.events[bisect_left(self._instants, at_ns + 1) :]
        )

    # The baseline

    @cached_property
    def baseline(self) -> Step:
        return self.of_kind("baseline")[0]

    @cached_property
    def usual_connections(self) -> int:
        """The most connections that were open at once in the baseline."""
        return max((count for at_ns, count in self.open_counts if at_ns <= self.baseline.ended_ns), default=0)

    @cached_property
    def usual_apis(self) -> Counter[str]:
        return Counter(event.api for event in self.within(self.baseline, "request"))

    @cached_property
    def pipelines(self) -> bool:
        """True if the client sends a request before it has the answer to the one before."""
        return any(event.value > 0 for event in self.within(self.baseline, "request"))

    # Connections, and how busy it is

    @cached_property
    def open_counts(self) -> list[tuple[int, int]]:
        """(when, how many connections are open from then on), but for those that ended at once: a client that had given up a
        connection while the broker held it is not there any more when it is let in."""
        changes = []
        for opened_ns, closed_ns in self._lives():
            if closed_ns is None or closed_ns - opened_ns >= AT_ONCE_NS:
                changes += [(opened_ns, 1)] if closed_ns is None else [(opened_ns, 1), (closed_ns, -1)]
        changes.sort()
        return list(zip((at_ns for at_ns, _ in changes), accumulate(change for _, change in changes), strict=True))

    def _lives(self) -> Iterator[tuple[int, int | None]]:
        """The times at which each connection was let in and ended. A shard that is killed takes its connections with it."""
        deaths = {tuple(step.detail["place"]): step.began_ns for step in self.of_kind("kill")}
        opened: dict[tuple[int, int, int, int], int] = {}
        for event in self.events:
            if event.kind == "admitted":
                opened[event.conn] = event.at_ns
            elif event.kind == "closed" and event.conn in opened:
                yield opened.pop(event.conn), event.at_ns
        for conn, at_ns in opened.items():
            died_ns = deaths.get(conn[:3])
            yield at_ns, None if died_ns is None else max(at_ns, died_ns)

    @cached_property
    def has_faltered(self) -> bool:
        """True if a shard was replaced that the course had not killed, as one is that gets no CPU for seconds."""
        killed = {tuple(step.detail["place"]) for step in self.of_kind("kill")}
        places = {event.conn[:3] for event in self.events}
        newest: dict[tuple[int, int], int] = {}
        for broker, shard, epoch in places:
            newest[broker, shard] = max(epoch, newest.get((broker, shard), epoch))
        return any(place[2] < newest[place[:2]] and place not in killed for place in places)

    def most_open(self, within: Callable[[int], bool]) -> int:
        """The most that were open for a quarter of a second: shards notice ends and beginnings a little apart."""
        counts, most = self.open_counts, 0
        for place, (at_ns, count) in enumerate(counts):
            if count > most and within(at_ns):
                until = bisect_left(counts, (at_ns + _LASTING_NS, 0), lo=place)
                most = max(most, min(count for _, count in counts[place:until]))
        return most

    def starved_share(self, began_ns: int, ended_ns: int) -> float:
        """The share of a time in which the machine did not serve: it stalled, or the client's threads waited for a CPU."""
        waited = (self.busy_share(began_ns, ended_ns) or CpuShare(0.0, 0.0)).waited
        return max(self.machine.stalled_ms(began_ns, ended_ns) * MS / max(ended_ns - began_ns, 1), waited)

    def busy_share(self, began_ns: int, ended_ns: int) -> CpuShare | None:
        """Seconds a second for which its threads ran, and for which they waited for a CPU; None if it was not measured."""
        measured = [each for each in self.busy if began_ns <= each.at_ns <= ended_ns]
        if len(measured) < 2 or measured[-1].at_ns - measured[0].at_ns < SECOND // 2:
            return None
        first, last = measured[0], measured[-1]
        seconds = (last.at_ns - first.at_ns) / SECOND
        return CpuShare((last.ran_s - first.ran_s) / seconds, (last.waited_s - first.waited_s) / seconds)


def is_work(event: Event) -> bool:
    """True if a request is a part of what the client is there for."""
    return event.kind == "request" and event.api not in SETUP
