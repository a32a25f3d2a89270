"""A schedule of client quotas drawn from a seed: clients on all shards, quotas that change, and what happens to the shards."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from simulation.quota_world import KINDS, QuotaWorld, SimulatedShard

from shards.limits.client_quota_managers import MUTATION
from shards.quotas.sharded_quotas import RecordedCharge

BEGIN_MS, END_MS = 1600, 14_000
QUIET_MS = 4000
"""After the last fault: shards come up, and calls to those that were stopped end."""
STILL_MS = 400
NAMES = ("a", "b", "c")


class Client:
    """A client on one connection: charges, waits as long as it is told, charges again; connects again when its shard dies."""

    def __init__(self, schedule: QuotaSchedule, client_id: str, kind: str) -> None:
        self._schedule, self._client_id, self._kind = schedule, client_id, kind
        self._random = random.Random(schedule.random.random())
        self._trip_ms = self._random.choice([1, 5, 40])
        self._shard = self._pick()

    def _pick(self) -> SimulatedShard:
        return self._random.choice(self._schedule.world.shards)

    def ask(self) -> None:
        world = self._schedule.world
        if world.now_ms >= self._schedule.end_ms:
            return
        if not self._shard.alive or self._random.random() < 0.01:
            self._shard = self._pick()
        if not self._shard.alive:
            world.at(world.now_ms + 20, self.ask)
            return
        quota = self._schedule.quotas[self._client_id].get(self._kind) or 100.0
        amount = max(1, round(quota * self._random.choice([0.004, 0.03, 0.3, 1.5])))
        strict = self._kind == MUTATION and self._random.random() < 0.5
        shard = self._shard
        charged = partial(world.charge, shard, self._kind, self._client_id, amount, strict, partial(self._next, shard))
        shard.do(charged)
        self._waits_for = shard

    def _next(self, shard: SimulatedShard, answer: RecordedCharge) -> None:
        world = self._schedule.world
        self._schedule.answers += 1
        self._schedule.stand_ins += answer.stand_in
        world.at(world.now_ms + max(answer.throttle_ms, self._trip_ms), self.ask)

    def died(self, shard: SimulatedShard) -> None:
        """A shard died: a client of it begins again elsewhere."""
        if self._shard is shard:
            self._shard = self._pick()
            world = self._schedule.world
            world.at(world.now_ms + self._random.randint(1, 50), self.ask)


class QuotaSchedule:
    """All of one seed. `log` is told each fault; `make` makes the world."""

    def __init__(
        self, seed: int, log: Callable[[str], None] | None = None, make: Callable[..., QuotaWorld] = QuotaWorld
    ) -> None:
        self.random = random.Random(seed)
        self._log = log or (lambda text: None)
        chance = self.random
        self.quotas: dict[str, dict[str, float | None]] = {
            name: {kind: chance.choice([5.0, 100.0, 1000.0, 100_000.0]) for kind in KINDS} for name in NAMES
        }
        self.world = make(seed, chance.choice([1, 2, 2, 3, 3, 4, 5]), self.quotas)  # type: ignore[arg-type]
        self.answers = self.stand_ins = 0
        self.end_ms = END_MS + QUIET_MS
        self._faults = chance.choice(
            [("stop",), ("stop", "change"), ("kill", "change"), ("stop", "kill", "cut", "change")]
        )
        self._clients = [
            Client(self, chance.choice(NAMES), chance.choice(KINDS)) for _ in range(chance.choice([4, 10, 30]))
        ]

    def run(self) -> None:
        """Raises Violation when something does not hold."""
        world = self.world
        for client in self._clients:
            world.at(BEGIN_MS + self.random.randint(0, 3000), client.ask)
        for _ in range(self.random.choice([0, 3, 8, 20])):
            world.at(self.random.randint(BEGIN_MS, END_MS), self._fault)
        for at_ms in range(BEGIN_MS, self.end_ms, 50):
            world.at(at_ms, world.oracle.check_waiting)
        world.run(END_MS)
        for shard in world.shards:
            world.go_on(shard.process.shard)
        world.end_passes()
        world.run(self.end_ms + STILL_MS)
        for shard in world.shards:
            assert shard.alive and not shard.meters._homes.away, "no shard is away any more"
        world.oracle.check_counted()
        if world.oracle.violation is not None:
            raise world.oracle.violation

    def _fault(self) -> None:
        chance, world = self.random, self.world
        shard = chance.randrange(world.count)
        what = chance.choice(self._faults)
        self._log(f"{world.now_ms} ms: {what} {shard}")
        if what == "stop":
            world.stop(shard)
            world.at(world.now_ms + chance.choice([20, 180, 240, 400, 1500, 6000]), world.go_on, shard)
        elif what == "kill":
            dead = world.shards[shard]
            world.kill(shard)
            for client in self._clients:
                client.died(dead)
        elif what == "cut" and world.count > 1:
            world.cut(shard, (shard + chance.randrange(1, world.count)) % world.count)
        elif what == "change":
            name = chance.choice(NAMES)
            self.quotas[name] = {kind: chance.choice([None, 5.0, 100.0, 1000.0, 100_000.0]) for kind in KINDS}
            world.change(name, self.quotas[name])
