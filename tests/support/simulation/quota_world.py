"""The client quotas of a whole broker under virtual time: the classes that run, over links with delays, in processes that stop,
die, start again and lose their links. No oracle here: quota_oracle.py judges what happened.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from simulation.quota_oracle import Process, QuotaOracle

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import key_of_entity
from shards.loop.deferred import Deferred
from shards.quotas.charge_notes import ChargeNotes
from shards.quotas.meters import Decision
from shards.quotas.sharded_quotas import RecordedCharge, ShardedQuotas

CALL_MS = 5000
TICK_MS = 250
MOST_DELAY_MS = 3
WINDOW = (("quota.window.num", "3"), ("controller.quota.window.num", "3"))
KINDS = (PRODUCE, FETCH, REQUEST, MUTATION)
CHECK_CURVES_EVERY = 10
"""Passes: a look at every point of every curve takes longer than a pass, and what is out of order stays so for seconds."""


class Pending(NamedTuple):
    """A call that waits for its answer."""

    peer: Process
    answer: Deferred[Any]


class SimulatedShard:
    """One shard: its process, which may be stopped or dead, and what waits for it meanwhile."""

    def __init__(self, world: QuotaWorld, number: int, epoch: int) -> None:
        self.world = world
        self.process = Process(number, epoch)
        self.running = self.alive = True
        self.due: deque[Callable[[], None]] = deque()  # what happened while it was stopped
        self.calls: dict[int, Pending] = {}
        self.linked: dict[int, Process] = {}
        self.served: dict[str, Callable[..., Any]] = {}
        self.image = ClusterImage(0)
        self.image.apply(world.version, world.state, whole=True)
        self.meters = ShardedQuotas(
            number,
            world.count,
            self.image,
            call=self.call,
            now_ms=lambda: world.now_ms,
            touch=lambda: world.touch(self),
            after=lambda ms, function: world.at(world.now_ms + ms, self.do, function),
            mistaken=world.mistaken,
            notes=world.notes_of(self),
        )
        self._decide, self.meters.decide = self.meters.decide, self.decide  # type: ignore[method-assign]
        self.meters.serve_on(self.served.__setitem__)
        self.meters.read_quotas()
        self.meters.await_peers()
        world.at(world.now_ms + TICK_MS, self.tick)

    def decide(self, kind: str, user: str, client_id: str, amount: float, *, strict: bool, now_ms: int) -> Decision:
        """As it is decided, and the oracle is told."""
        decision = self._decide(kind, user, client_id, amount, strict=strict, now_ms=now_ms)
        _, limit, place = self.meters._metered(kind, user, client_id)
        self.world.oracle.decided(
            self.process, place, sum(decision.recorded), limit, passed=decision.accepted and not decision.throttle_ms
        )
        return decision

    def do(self, function: Callable[[], None]) -> None:
        """Something happens to this process: at once, when it goes on, or never."""
        if not self.alive:
            return
        if not self.running:
            self.due.append(function)
            return
        function()
        self.world.touch(self)

    def tick(self) -> None:
        if self.alive:
            self.do(self.meters.expire)
            self.world.at(self.world.now_ms + TICK_MS, self.tick)

    def call(self, peer: int, method: str, *args: Any) -> Deferred[Any]:
        """mesh.call."""
        answer: Deferred[Any] = Deferred()
        if peer not in self.linked:
            answer.fail(PeerLost(f"{peer} is down"))
            return answer
        world, other = self.world, self.world.shards[peer]
        number = next(world.numbers)
        self.calls[number] = Pending(other.process, answer)
        world.send(self, other, partial(other.answer, self, number, method, args))
        world.at(world.now_ms + CALL_MS, self.do, partial(self.fail, number, DeadlineExceeded("late")))
        return answer

    def answer(self, asker: SimulatedShard, number: int, method: str, args: tuple[Any, ...]) -> None:
        value = self.served[method](asker.process.shard, *_over_the_wire(args))
        self.world.send(self, asker, partial(asker.answered, number, _over_the_wire(value)))

    def answered(self, number: int, value: Any) -> None:
        pending = self.calls.pop(number, None)
        if pending is not None:
            pending.answer.resolve(value)

    def fail(self, number: int, error: Exception) -> None:
        pending = self.calls.pop(number, None)
        if pending is not None:
            pending.answer.fail(error)

    def lose(self, peer: Process) -> None:
        """The links to a process broke: its calls fail, and then that is told."""
        if self.linked.get(peer.shard) != peer:
            return
        del self.linked[peer.shard]
        for number in [number for number, pending in self.calls.items() if pending.peer == peer]:
            self.fail(number, PeerLost("went down"))
        self.meters.peer_lost(peer.shard)


class QuotaWorld:
    """All shards of a broker, their links, the clients' charges, and what happens next. `quotas`: {client id: {kind: quota}}."""

    def __init__(self, seed: int, shards: int, quotas: dict[str, dict[str, float]]) -> None:
        self.random = random.Random(seed)
        self.count = shards
        self.now_ms = 1000
        self.version = 1
        self.state: list[Any] = [("setting", f"/{name}", value) for name, value in WINDOW]
        self.state += [_quota(client_id, values) for client_id, values in quotas.items()]
        self.events: list[Any] = []
        self.numbers = itertools.count()
        self.touched: dict[SimulatedShard, None] = {}
        self.passes = 0
        self.busy_until: dict[tuple[Process, Process], int] = {}
        self.generation: dict[tuple[int, int], int] = {}
        self.mistakes: list[Exception] = []
        self.oracle = QuotaOracle(self)
        self.shards: list[SimulatedShard] = []
        for number in range(shards):
            self.shards.append(SimulatedShard(self, number, 0))
            self.oracle.started(self.shards[-1].process)
        for one, other in itertools.combinations(range(shards), 2):
            self._link(one, other)

    def meters_of(self, process: Process) -> ShardedQuotas:
        """Of a living process."""
        return self.shards[process.shard].meters

    def notes_of(self, shard: SimulatedShard) -> ChargeNotes | None:
        """What a shard's meters note; here nothing."""
        return None

    def mistaken(self, error: Exception) -> None:
        self.mistakes.append(error)

    # Time

    def at(self, when_ms: float, function: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self.events, (int(when_ms), next(self.numbers), function, args))

    def touch(self, shard: SimulatedShard) -> None:
        self.touched[shard] = None

    def run(self, until_ms: int) -> None:
        while self.events and self.events[0][0] <= until_ms:
            self.now_ms, _, function, args = heapq.heappop(self.events)
            function(*args)
            self.end_passes()
            if self.oracle.violation is not None:
                raise self.oracle.violation
        self.now_ms = until_ms
        for shard in self.shards:
            shard.meters._history.check()
        assert not self.mistakes, self.mistakes

    def end_passes(self) -> None:
        while self.touched:
            shard = self.touched.popitem()[0]
            if shard.alive and shard.running:
                shard.meters.flush()
                shard.meters._homes.check()
                self.passes += 1
                if self.passes % CHECK_CURVES_EVERY == 0:
                    shard.meters._history.check()

    # Links

    def send(self, sender: SimulatedShard, receiver: SimulatedShard, deliver: Callable[[], None]) -> None:
        """First in, first out, unless the link breaks before it is read."""
        pair = sender.process, receiver.process
        generation = self.generation.get(_ends(*pair), 0)
        when = max(self.now_ms + self.random.randint(0, MOST_DELAY_MS), self.busy_until.get(pair, 0))
        self.busy_until[pair] = when

        def arrive() -> None:
            if self.generation.get(_ends(*pair), 0) == generation and receiver.linked.get(pair[0].shard) == pair[0]:
                deliver()

        self.at(when, receiver.do, arrive)

    def _link(self, one: int, other: int) -> None:
        """Both hear of it when both run."""
        first, second = self.shards[one], self.shards[other]
        if not (first.alive and second.alive) or first.linked.get(other) == second.process == second.linked.get(one):
            return
        if not (first.running and second.running) or other in first.linked or one in second.linked:
            self.at(self.now_ms + 10, self._link, one, other)
            return
        first.linked[other] = second.process
        second.linked[one] = first.process
        self.oracle.linked(first.process, second.process)
        for shard, peer in ((first, other), (second, one)):
            shard.do(partial(shard.meters.replication.send_everything, peer))

    def cut(self, one: int, other: int) -> None:
        """The links between two shards break, and come up again."""
        first, second = self.shards[one], self.shards[other]
        if first.linked.get(other) != second.process or second.linked.get(one) != first.process:
            return
        self.oracle.parted(first.process, second.process)
        ends = _ends(first.process, second.process)
        self.generation[ends] = self.generation.get(ends, 0) + 1
        first.do(partial(first.lose, second.process))
        second.do(partial(second.lose, first.process))
        self.at(self.now_ms + self.random.randint(6, 200), self._link, one, other)

    # Processes

    def stop(self, number: int) -> None:
        shard = self.shards[number]
        if shard.alive and shard.running:
            shard.running = False
            self.oracle.paused(shard.process)

    def go_on(self, number: int) -> None:
        shard = self.shards[number]
        if not shard.alive or shard.running:
            return
        shard.running = True
        self.oracle.resumed(shard.process)
        due, shard.due = shard.due, deque()
        for function in due:
            shard.do(function)

    def kill(self, number: int) -> None:
        shard = self.shards[number]
        if not shard.alive:
            return
        shard.alive = False
        self.oracle.died(shard.process)
        for other in self.shards:
            if other is not shard and number in other.linked:
                self.at(self.now_ms + self.random.randint(0, 2), other.do, partial(other.lose, shard.process))
        self.at(self.now_ms + self.random.choice([5, 50, 300, 2000]), self.start, number)

    def start(self, number: int) -> None:
        self.shards[number] = SimulatedShard(self, number, self.shards[number].process.epoch + 1)
        self.oracle.started(self.shards[number].process)
        for other in range(self.count):
            if other != number:
                self.at(self.now_ms + self.random.randint(3, 30), self._link, *sorted((number, other)))

    # Quotas and charges

    def change(self, client_id: str, values: dict[str, float | None]) -> None:
        """A new version reaches each shard a little later; one that starts begins with it."""
        self.version += 1
        record = _quota(client_id, {kind: value for kind, value in values.items() if value is not None} or None)
        self.state = [each for each in self.state if each[:2] != record[:2]] + ([record] if record[2] else [])
        self.oracle.changed(client_id, values)
        for shard in self.shards:
            self.at(
                self.now_ms + self.random.randint(0, 5), shard.do, partial(self._apply, shard, self.version, record)
            )

    def _apply(self, shard: SimulatedShard, version: int, record: Any) -> None:
        if shard.image.version < version:
            shard.image.apply(version, [record])
            shard.meters.read_quotas()

    def charge(
        self, shard: SimulatedShard, kind: str, client_id: str, amount: float, strict: bool,
        then: Callable[[RecordedCharge], None],
    ) -> None:  # fmt: skip
        """A request on a connection of this shard; `then` is called with the answer, if its process lives to give it."""
        asked = self.oracle.asked(shard.process, is_metered=shard.meters.in_use(kind))
        charged = shard.meters.charge(kind, "", client_id, amount, strict=strict)

        def came(answer: Deferred[RecordedCharge]) -> None:
            self.oracle.answered(asked, answer.result(), shard.meters.limit(kind, "", client_id))
            then(answer.result())

        if isinstance(charged, Deferred):
            charged.add_callback(came)
        else:
            self.oracle.answered(asked, charged, shard.meters.limit(kind, "", client_id))
            then(charged)


def _ends(one: Process, other: Process) -> tuple[int, int]:
    return min(one.shard, other.shard), max(one.shard, other.shard)


def _quota(client_id: str, values: dict[str, float] | None) -> Any:
    return "quota", key_of_entity((("client-id", client_id),)), values


def _over_the_wire(value: Any) -> Any:
    """As msgpack brings it: tuples are lists."""
    return [_over_the_wire(each) for each in value] if isinstance(value, (list, tuple)) else value
