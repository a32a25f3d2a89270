"""What must hold of client quotas whatever happens to shards: the invariants of shards/quotas/sharded_quotas.py from outside.

never_unlimited  a charge under a quota is recorded
bounded_wait     a charge is answered within ANSWER_WITHIN_MS, or STARTING_MS after a start, and a few ms; stops of the shard
                 that was asked do not count
one_more_each    no process lets more than M pass without a throttle in a span
knows_the_others when a process lets a charge pass, all that it decided and could know of is at most M and the others'
                 untold shares. It can know of what was decided SETTLED_MS ago by a process that it was linked with since,
                 both running; of what that one knew when the link came up; and, when it starts, of what the processes that ran
                 then had decided
counted          a charge is decided once (unless its home died or its links broke), a meter has nothing twice, and in the end that
                 of a home has all that counts, but for what died untold

M is quota * (num + 1) * size, of mutations quota * 2 * num * size and one charge for each process.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from simulation.oracle import Violation

from shards.limits.client_quota_managers import MUTATION
from shards.limits.quota_entities import key_of_entity
from shards.ownership import home_of
from shards.quotas.away_homes import ANSWER_WITHIN_MS
from shards.quotas.charge_history import MeterKey
from shards.quotas.sharded_quotas import STARTING_MS, UNTOLD_SHARE, RecordedCharge

if TYPE_CHECKING:
    from simulation.quota_world import QuotaWorld

NUM, SIZE_S = 3, 1
SPAN_MS = NUM * SIZE_S * 1000
SETTLED_MS = 15
"""A tell waits for the answer to the one before: three times the longest delay, and some."""
_SLACK_MS = 80
"""Of a wait: a shard that was itself held up looks twice."""


class Process(NamedTuple):
    """One incarnation of a shard."""

    shard: int
    epoch: int


class Decided(NamedTuple):
    """An amount that a process recorded, in its meter's unit; `passed`: without a throttle."""

    at_ms: int
    process: Process
    amount: float
    passed: bool


class Asked:
    """A charge that waits; `paused_ms`: how long its shard was stopped meanwhile."""

    def __init__(self, process: Process, at_ms: int) -> None:
        self.process, self.at_ms, self.paused_ms = process, at_ms, 0


class QuotaOracle:
    """Told of all that happens in a world; `violation` is the first thing that did not hold."""

    def __init__(self, world: QuotaWorld) -> None:
        self._world = world
        self._decided: dict[MeterKey, list[Decided]] = defaultdict(list)
        self._known: dict[Process, dict[Process, float]] = defaultdict(dict)  # until when one knows of another
        self._together: dict[frozenset[Process], int] = {}  # linked and running, since
        self._links: set[frozenset[Process]] = set()
        self._stopped: dict[Process, int] = {}
        self._since: dict[Process, int] = {}
        self._ran_at_start: dict[Process, set[Process]] = {}
        self._waiting: set[Asked] = set()
        self._quotas: dict[tuple[str, str], list[tuple[int, float | None]]] = defaultdict(list)
        self.violation: Violation | None = None
        self._charges = self._decisions = 0
        self._parted = self._died = False  # ever
        for _, key, values in (each for each in world.state if each[0] == "quota"):
            for kind, value in values.items():
                self._quotas[kind, key].append((0, value))

    # What happens

    def started(self, process: Process) -> None:
        now_ms = self._world.now_ms
        running = {each.process for each in self._world.shards if each.alive and each.running}
        self._ran_at_start[process] = {each for each in running - {process} if now_ms - self._since[each] > STARTING_MS}
        self._since[process] = now_ms

    def linked(self, one: Process, other: Process) -> None:
        pair = frozenset((one, other))
        self._links.add(pair)
        told = [
            (each, third, self.known_until(peer, third))
            for each, peer in ((one, other), (other, one))
            for third in {*self._known[peer], *self._ran_at_start[peer]}
        ]
        self._world.at(self._world.now_ms + SETTLED_MS, self._greeted, pair, self._world.now_ms, told)
        self._meet(pair)

    def _greeted(self, pair: frozenset[Process], since_ms: int, told: list[tuple[Process, Process, float]]) -> None:
        """Each was told all that the other knew, if nothing came between."""
        if self._together.get(pair) == since_ms:
            for process, third, until_ms in told:
                self._learn(process, third, until_ms)

    def parted(self, one: Process, other: Process) -> None:
        self._parted = True
        self._part(frozenset((one, other)))
        self._links.discard(frozenset((one, other)))

    def paused(self, process: Process) -> None:
        self._stopped[process] = self._world.now_ms
        for pair in [pair for pair in self._together if process in pair]:
            self._part(pair)

    def resumed(self, process: Process) -> None:
        stopped_ms = self._world.now_ms - self._stopped.pop(process)
        for asked in self._waiting:
            if asked.process == process:
                asked.paused_ms += stopped_ms
        for pair in [pair for pair in self._links if process in pair]:
            self._meet(pair)

    def died(self, process: Process) -> None:
        self._died = True
        for pair in [pair for pair in self._links if process in pair]:
            self._part(pair)
            self._links.discard(pair)
        self._waiting = {asked for asked in self._waiting if asked.process != process}
        self._stopped.pop(process, None)

    def changed(self, client_id: str, values: dict[str, float | None]) -> None:
        for kind in {kind for kind, key in self._quotas if key == _key(client_id)} | values.keys():
            self._quotas[kind, _key(client_id)].append((self._world.now_ms, values.get(kind)))

    # Charges

    def asked(self, process: Process, *, is_metered: bool) -> Asked:
        """`is_metered`: whether any quota of the kind is set there; else nothing is decided."""
        asked = Asked(process, self._world.now_ms)
        self._waiting.add(asked)
        self._charges += is_metered
        return asked

    def answered(self, asked: Asked, answer: RecordedCharge, limit: float | None) -> None:
        self._waiting.discard(asked)
        self._judge_wait(asked)
        if limit is not None and not answer.at_ms:
            self._violated(f"never_unlimited: {asked.process} recorded nothing under a quota of {limit}")

    def check_waiting(self) -> None:
        for asked in self._waiting:
            if asked.process not in self._stopped:
                self._judge_wait(asked)

    def decided(self, process: Process, place: MeterKey, amount: float, limit: float | None, *, passed: bool) -> None:
        """A process decided a charge under its quota, or none."""
        self._decisions += 1
        if limit is None or not amount:
            return
        decided = self._decided[place]
        decided.append(Decided(self._world.now_ms, process, amount, passed))
        self._judge_once(process, place)
        if passed:
            self._judge_passed(process, place, limit)

    def known_until(self, process: Process, other: Process) -> float:
        """Until when a process can know of all that another decided, but for its untold share."""
        now_ms, known = self._world.now_ms, self._known[process].get(other, -1.0)
        since = self._together.get(frozenset((process, other)))
        if since is not None and now_ms - since >= SETTLED_MS:
            known = max(known, now_ms - SETTLED_MS)
        if other in self._ran_at_start[process] and now_ms - self._since[process] < STARTING_MS:
            known = max(known, self._since[process] - SETTLED_MS)
        return known

    # Judging

    def _judge_wait(self, asked: Asked) -> None:
        waited_ms = self._world.now_ms - asked.at_ms - asked.paused_ms
        if waited_ms > max(ANSWER_WITHIN_MS, self._since[asked.process] + STARTING_MS - asked.at_ms) + _SLACK_MS:
            self._violated(f"bounded_wait: a charge at {asked.process} waited {waited_ms} ms")

    def _judge_passed(self, process: Process, place: MeterKey, limit: float) -> None:
        now_ms = self._world.now_ms
        highest = self._highest(place)
        if highest is None:
            return
        recent = list(itertools.takewhile(lambda each: each.at_ms > now_ms - SPAN_MS, reversed(self._decided[place])))
        counted = highest if place.kind == MUTATION else limit
        most = counted * SIZE_S * (2 * NUM if place.kind == MUTATION else NUM + 1)
        if place.kind == MUTATION:
            most += max(each.amount for each in recent) * len({each.process for each in recent})
        own = sum(each.amount for each in recent if each.process == process and each.passed)
        if own > most * 1.000001:
            self._violated(f"one_more_each: {process} let {own} of {place} pass, of {most}")
        until = {each.process: self.known_until(process, each.process) for each in recent if each.process != process}
        known = sum(each.amount for each in recent if each.process == process or each.at_ms <= until[each.process])
        share = highest * SIZE_S * (NUM if place.kind == MUTATION else NUM - 1) / UNTOLD_SHARE
        if known > (most + share * len(until)) * 1.000001:
            self._violated(
                f"knows_the_others: {process} lets {place} pass at {known}, of {most} and {len(until)} x {share}"
            )

    def _judge_once(self, process: Process, place: MeterKey) -> None:
        """Amounts count a sample's length longer, and one more if they were told late."""
        sensor = self._world.meters_of(process)._managers[place.kind].sensors.get(place[1:])
        highest = self._highest(place)
        if self._parted or highest is None or sensor is None or place.kind == MUTATION:
            return
        since_ms = self._world.now_ms - SPAN_MS - 2100 * SIZE_S
        recent = list(itertools.takewhile(lambda each: each.at_ms > since_ms, reversed(self._decided[place])))
        others = len({each.process for each in recent})
        most = sum(each.amount for each in recent) + highest * SIZE_S * (NUM - 1) / UNTOLD_SHARE * others
        has = sensor.units(now_ms=self._world.now_ms)
        if has > most * 1.000001:
            self._violated(f"counted: the meter of {place} at {process} has {has}, and {most} were recorded")

    def check_counted(self) -> None:
        """In the end, all shards running and linked for a while: each home's meter has what counts."""
        if not (self._parted or self._died) and self._decisions != self._charges:
            self._violated(f"counted: {self._decisions} decisions of {self._charges} charges")
        now_ms = self._world.now_ms
        for place, decided in self._decided.items():
            home = self._world.shards[home_of("\0".join(place), self._world.count)]
            if place.kind == MUTATION or self._highest(place) is None:
                continue
            living = {shard.process for shard in self._world.shards}
            recent = [each for each in decided if each.at_ms > now_ms - SPAN_MS]
            surely = sum(each.amount for each in recent if each.process in living)
            sensor = home.meters._managers[place.kind].sensors.get(place[1:])
            has = 0.0 if sensor is None else sensor.units(now_ms=now_ms)
            share = (self._highest(place) or 0) * SIZE_S * (NUM - 1) / UNTOLD_SHARE
            others = len({each.process for each in recent} - {home.process})
            if has < surely * 0.999999 - share * others:
                self._violated(f"counted: the home of {place} has {has}, and {surely} count")

    def _highest(self, place: MeterKey) -> float | None:
        """The highest quota of the last spans; None where there was none at a time."""
        changes = self._quotas[place.kind, _key(place.client_id)]
        since_ms = self._world.now_ms - 2 * SPAN_MS
        before = [value for at_ms, value in changes if at_ms <= since_ms][-1:]
        values = [*before, *(value for at_ms, value in changes if at_ms > since_ms)]
        present = [value for value in values if value is not None]
        return max(present) if present and len(present) == len(values) else None

    def _violated(self, text: str) -> None:
        """The first is raised by the world: here, a part might take it for a mistake of its own."""
        self.violation = self.violation or Violation(text)

    def _learn(self, process: Process, other: Process, until_ms: float) -> None:
        if process != other:
            self._known[process][other] = max(self._known[process].get(other, -1.0), until_ms)

    def _meet(self, pair: frozenset[Process]) -> None:
        if not any(process in self._stopped for process in pair):
            self._together[pair] = self._world.now_ms

    def _part(self, pair: frozenset[Process]) -> None:
        one, other = pair
        self._learn(one, other, self.known_until(one, other))
        self._learn(other, one, self.known_until(other, one))
        self._together.pop(pair, None)


def _key(client_id: str) -> str:
    return key_of_entity((("client-id", client_id),))
