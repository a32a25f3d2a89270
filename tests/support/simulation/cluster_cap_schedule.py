"""A schedule of a ClusterCapWorld: clients, configurations and faults in an order and at times drawn from a seed; and what is
broken on purpose for such schedules to see."""

from __future__ import annotations

import random
from collections.abc import Callable

from simulation.accept_world import Records
from simulation.cluster_cap_world import BROKER_CAP, CLUSTER_CAP, ClusterCapWorld
from simulation.mutants import Mutant, broken, with_line
from simulation.oracle import require
from simulation.world import DEADLINE_S, TTL_S

from broker.accept.admission import Admission
from broker.accept.observed_tokens import ObservedTokens
from broker.accept.observed_world import ObservedWorld
from broker.accept.step_actions import StepActions
from shards.ownership import BrokerShard
from shards.tokens.cluster_pool import ClusterPool


class ClusterCapSchedule:
    """One seeded run. `observes`: caps are observed, too."""

    def __init__(self, seed: int, *, observes: bool = False) -> None:
        self.kinds = ("setting", "observed") if observes else ("setting",)
        self.draw = draw = random.Random(f"cluster cap {seed}")
        self.is_calm = draw.random() < 0.4
        self.faults = 0.0 if self.is_calm else draw.choice([0.02, 0.05])
        self.caps = draw.choice([[1, 2, 3], [2, 4, 8]])
        self.changes, self.closes = draw.choice([0.01, 0.05, 0.1]), draw.choice([0.05, 0.2, 0.4])
        self.haste = draw.choice([1, 3, 20])
        self.step_s = 0.0 if self.is_calm else draw.choice([0.001, 0.01, 0.03])
        self.world = ClusterCapWorld(draw.choice([1, 2, 2, 3]), draw.choice([1, 2, 2]), is_calm=self.is_calm)
        self.starting: list[BrokerShard] = []

    def run(self) -> None:
        """Runs to the end and to rest; raises Violation, or whatever else goes wrong."""
        world, draw = self.world, self.draw
        world.configure(self._state())
        for _ in range(4):
            self._round()
        for _ in range(draw.randrange(80, 200)):
            world.now_s += self.step_s
            if draw.random() < self.changes:
                world.configure(self._state())
            if draw.random() < self.faults:
                self._fault()
            if self.starting and draw.random() < 0.3:
                world.start(self.starting.pop())
            if world.alive:
                self._pass(draw.choice(sorted(world.alive)))
        self._come_to_rest()
        for shard in world.alive.values():
            shard.shard_listeners.close()

    def _state(self) -> Records:
        draw = self.draw
        state: Records = {}
        for kind in self.kinds:
            for name, likely in ((CLUSTER_CAP, 0.8), (BROKER_CAP, 0.6)):
                if draw.random() < likely - 0.3 * (len(self.kinds) > 1 and kind == "setting"):
                    state[kind, f"/{name}"] = str(draw.choice(self.caps))
        return state

    def _fault(self) -> None:
        world, draw = self.world, self.draw
        if len(world.alive) > 1 and draw.random() < 0.5:
            place = draw.choice(sorted(world.alive))
            world.crash(place)
            self.starting.append(place)
        elif len(world.alive) > 1:
            world.cut(*draw.sample(sorted(world.alive), 2))
        if draw.random() < 0.5:
            world.relink()

    def _pass(self, place: BrokerShard) -> None:
        world, draw = self.world, self.draw
        self._begin_pass(place)
        steps: list[Callable[[BrokerShard], None]] = [
            self._read,
            self._configure,
            self._accept,
            self._close,
            self._tick,
        ]
        draw.shuffle(steps)
        for step in steps:
            step(place)
        world.end_pass(place)

    def _begin_pass(self, place: BrokerShard) -> None:
        shard = self.world.alive[place]
        shard.poller.look(self.world.now_s)
        shard.timers.call_due()
        shard.begin()

    def _read(self, place: BrokerShard) -> None:
        world = self.world
        for _ in range(self.draw.randrange(self.haste + 1)):
            sources = [at for at in world.places if world.queues.get((at, place))]
            if sources:
                world.deliver(self.draw.choice(sources), place)

    def _configure(self, place: BrokerShard) -> None:
        shard = self.world.alive[place]
        if shard.pushed and self.draw.random() < 0.5:
            shard.apply()

    def _accept(self, place: BrokerShard) -> None:
        shard = self.world.alive[place]
        listener = shard.poller.watched.get(0)
        if listener is not None:
            shard.backlog.waiting = self.draw.choice([0, 0, 1, 3])
            listener.ready(1)

    def _close(self, place: BrokerShard) -> None:
        shard = self.world.alive[place]
        for number in list(shard.open):
            if self.draw.random() < self.closes:
                shard.close(number)

    def _tick(self, place: BrokerShard) -> None:
        if self.draw.random() < 0.2:
            self.world.tick(place)

    def _round(self) -> None:
        """Every shard does all that there is to do, but accept."""
        world = self.world
        for place in sorted(world.alive):
            self._begin_pass(place)
            for source in world.places:
                while world.queues.get((source, place)):
                    world.deliver(source, place)
            shard = world.alive[place]
            while shard.pushed:
                shard.apply()
            world.tick(place)
            world.end_pass(place)

    def _come_to_rest(self) -> None:
        """everything_comes_home"""
        world, draw = self.world, self.draw
        while self.starting:
            world.start(self.starting.pop())
        world.relink()
        if draw.random() < 0.5:
            world.alive[draw.choice(world.places)].end()
        for _ in range(40):
            world.now_s += DEADLINE_S / 20
            self._round()
        for shard in world.alive.values():
            for number in list(shard.open):
                shard.close(number)
        for _ in range(10):
            world.now_s += TTL_S / 2
            self._round()
            self._round()
        waiting = [client.place for client in world.clients if client.ended is None]
        require(not waiting, "3", "connections are not decided on", waiting)
        for place, shard in world.alive.items():
            require(shard.done == len(world.states) - 1, "5", f"{place} never got done: {shard.done}")
            for tokens in (shard.tokens, shard.cluster.tokens):
                tokens.check()
                require(tokens.totals() == (0, 0, 0), "8", f"{place} still has", tokens.describe())
        world.look_back()


MUTANTS = [
    with_line(ClusterPool, "_count", "self.tokens.force(pool, connections)", "pass", "4"),
    with_line(ClusterPool, "_count", "self.tokens.release((pool,) * connections)", "pass", "4"),
    with_line(ClusterPool, "_when_done", "self._has_caps and self._done < version", "False", "1/5"),
    with_line(StepActions, "_cluster_answered", "self._cluster.release()", "pass", "4"),
    with_line(StepActions, "_cluster_answered", "not (is_admitted and self._cluster.is_on)", "not is_admitted", "4"),
    with_line(StepActions, "_cluster_answered", "self._tokens.cancel(pending)", "pass", "4"),
    with_line(StepActions, "cluster_tokens", "pending.suspended = True", "pending.suspended = False", "4"),
    with_line(
        StepActions,
        "end_step",
        "self._cluster if pending.step is Step.CLUSTER_TOKENS else self._tokens",
        "self._tokens",
        "3",
    ),
    with_line(Admission, "follow", "self._capped if self._cluster.is_on else self._uncapped", "self._uncapped", "4"),
]
"""Each with a number of docs/internals/tokens.md, of the invariant that it is expected to break."""
OBSERVED_MUTANTS = [
    with_line(ClusterPool, "apply_both", "self._has_caps or self._had_caps", "self.is_on", "3"),
    with_line(ClusterPool, "flush", "self.is_on or self.is_observed", "self.is_on", "3"),
    with_line(ObservedWorld, "follow", "self._cluster.follow_observed(self._members)", "pass", "1/5"),
    with_line(ObservedWorld, "_end", "self._observed_tokens.cancel(attempt)", "self._tokens.cancel(attempt)", "4"),
    with_line(ObservedTokens, "answered", "self._cluster.release_observed()", "pass", "4"),
    with_line(
        ObservedTokens, "answered", "others is ADMITTED and self._cluster.is_observed", "others is ADMITTED", "4"
    ),
    with_line(ObservedTokens, "answered", "self._tokens.cancel(waiter)", "pass", "4"),
    with_line(ObservedTokens, "_take_of_cluster", "self._tokens.release(pools)", "pass", "4"),
    with_line(ObservedTokens, "_take_of_cluster", "self._tokens.suspend(pools, waiter)", "pass", "4"),
]
"""The same of what is observed."""


def first_that_sees(mutant: Mutant, seeds: range, *, observes: bool = False) -> int | None:
    """The first schedule that fails with the mutant in place."""
    for seed in seeds:
        with broken(mutant):
            try:
                ClusterCapSchedule(seed, observes=observes).run()
            except Exception:
                return seed
    return None
