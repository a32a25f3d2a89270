"""A schedule of a ClusterRateWorld: connections, versions and faults in an order and at times drawn from a seed; and what is
broken on purpose for such schedules to see."""

from __future__ import annotations

import random
from collections.abc import Iterable

from simulation.cluster_rate_world import ClusterRateWorld
from simulation.mutants import Mutant, broken, with_line

from shards.ownership import BrokerShard
from shards.rates.cluster_rate import ClusterRate
from shards.rates.observed_rates import ClusterAnswers
from shards.rates.rate_home import RateHome
from shards.rates.rate_recovery import WAIT_FOR_USE_MS, RateRecovery
from shards.rates.rates import Rates


class ClusterRateSchedule:
    """One seeded run of twenty seconds. `observes`: a rate is observed, too, or alone."""

    def __init__(self, seed: int, *, observes: bool = False) -> None:
        self.draw_observed = observed = random.Random(f"observed {seed}")
        self.draw = draw = random.Random(f"cluster rate {seed}")
        self.faults = draw.choice([0.0, 0.0, 0.002, 0.005, 0.01])
        self.changes = draw.choice([0.0, 0.0, 0.001, 0.005])
        self.rates: list[int | None] = draw.choice([[2], [2, 5], [10, 30], [2, 5, None], [30, None], [None]])
        self.haste = draw.choice([0.02, 0.3])
        self.step_ms = draw.choice([3, 7, 13])
        self.arrivals = draw.choice([0.02, 0.1, 0.5])
        shape = draw.choice([(1, 1), (1, 3), (2, 2), (2, 2), (3, 1), (3, 2)])
        self.observed: list[int | None] = [None]  # none is one of `rates`, which would not be asked for
        if observes:
            self.rates = observed.choice([self.rates, [None]])
            self.observed = observed.choice([[1], [3, 7], [7, 20], [13, None]])
        first = draw.choice(self.rates), observed.choice(self.observed)
        self.world = ClusterRateWorld(draw, *shape, first, draw.choice([0, 3, 20]), self.haste)
        self.quiet_until_ms = 0  # after a death; 0: there was none
        self.starting: dict[BrokerShard, int] = {}  # when each starts again

    def run(self) -> None:
        world, draw = self.world, self.draw
        until_ms = world.now_ms + 20_000
        self._let_pass(100)
        while world.now_ms < until_ms:
            if draw.random() < self.changes and world.is_settled:
                world.configure(draw.choice(self.rates), self.draw_observed.choice(self.observed))
            if draw.random() < self.faults:
                self._fault()
            if draw.random() < self.arrivals and world.alive:
                world.alive[draw.choice(sorted(world.alive))].arrivals += draw.choice([1, 1, 2, 5, 20])
            self._pass()
        for place in list(self.starting):
            self.starting[place] = 0
        for shard in world.alive.values():
            shard.arrivals = 0
            shard.frozen_until_ms = 0
        world.relink()
        self._let_pass(5000)
        world.judge()

    def _let_pass(self, ms: int) -> None:
        until_ms = self.world.now_ms + ms
        while self.world.now_ms < until_ms:
            self._pass()

    def _pass(self) -> None:
        world = self.world
        for place in [place for place, at_ms in self.starting.items() if at_ms <= world.now_ms]:
            del self.starting[place]
            world.start(place)
        world.pass_time(self.step_ms)

    def _fault(self) -> None:
        world, draw = self.world, self.draw
        if len(world.alive) < 2 or world.now_ms < self.quiet_until_ms:
            return
        place = draw.choice(sorted(world.alive))
        kind = draw.choice(["shard", "broker", "freeze", "cut", "relink"])
        if kind == "shard":
            self._kill([place])
        elif kind == "broker" and world.brokers > 1:
            self._kill([each for each in sorted(world.alive) if each[0] == place[0]])
        elif kind == "freeze":
            world.freeze(place, draw.choice([200, 900, 1500]))
        elif kind == "cut":
            world.cut(*draw.sample(sorted(world.alive), 2))
        if draw.random() < 0.5:
            world.relink()

    def _kill(self, places: list[BrokerShard]) -> None:
        """Once in a run, and while all others can tell their use within WAIT_FOR_USE_MS: no more is promised."""
        world, draw = self.world, self.draw
        if self.quiet_until_ms or not world.is_whole:
            return
        self.quiet_until_ms = world.now_ms + 3 * WAIT_FOR_USE_MS + 1000
        is_seen = draw.random() < 0.8
        for place in places:
            world.crash(place, is_seen=is_seen)
            self.starting[place] = world.now_ms + draw.choice([0, 50, 300, 1000])


MUTANTS = [
    with_line(ClusterRate, "apply", "if self.is_on or self.is_observed:", "if False:", "a_unit_each"),
    with_line(ClusterRate, "receive", "self._speak()", "return", "all_are_answered"),
    with_line(ClusterRate, "peer_up", "self._epochs.get(member, epoch) != epoch", "False", "one_window"),
    with_line(ClusterRate, "_speak", "self._rates.peer_up(member)", "pass", "all_are_answered"),
    with_line(RateHome, "asked", "not self.complete", "False", "one_window"),
    with_line(RateHome, "record", "not self.complete", "False", "one_window"),
    with_line(
        RateRecovery,
        "_dies_with_me",
        "shard // self._together == self._me // self._together",
        "shard == self._me",
        "one_window",
    ),
    with_line(
        RateRecovery,
        "peer_dead",
        "self._backups_of_dead.append(self._backups_of_living.pop(peer))",
        "self._backups_of_living.pop(peer)",
        "one_window",
    ),
    with_line(RateRecovery, "send_use", "self._backups_of_dead", "[]", "one_window"),
    with_line(RateRecovery, "send_use", "if shard == peer or shard not in self._up", "", "told_once"),
    with_line(
        Rates, "_hand_out", "self._recovery.record_use(key, len(waiters), home, now_ms=now_ms)", "pass", "one_window"
    ),
]
"""Each with the invariant of cluster_rate_world.py that it is expected to break."""
OBSERVED_MUTANTS = [
    with_line(ClusterRate, "apply", "self.is_on or self.is_observed", "self.is_on", "all_are_answered"),
    with_line(ClusterRate, "observe", "record_some(_OBSERVED,", "record_some(CLUSTER,", "a_unit_each"),
    with_line(Rates, "_ask", "self._queues.ask(key, units)", "self._queues.ask(key)", "all_are_answered"),
    with_line(Rates, "_ask", '("ask", key, units, now_ms)', '("ask", key, 1, now_ms)', "all_are_answered"),
    with_line(RateRecovery, "peer_dead", "self._told.items()", "()", "one_window"),
    with_line(RateRecovery, "peer_dead", "if peer in telling:", "if True:", "told_once"),
    with_line(RateHome, "_journal_start", "entry[1].startswith(what)", "True", "told_once"),
    with_line(ClusterAnswers, "recorded", "self._beyond[self._heard]", "self._beyond[0]", "a_unit_each"),
    with_line(ClusterAnswers, "recorded", "self._heard == len(self._about)", "True", "all_are_answered"),
]
"""The same of an observed rate."""
SEEING = (0, 2, 3, 178, 257, 296)
"""The schedules of which one fails with each mutant."""
SEEING_OBSERVED = (2, 3, 10, 1285, 3343)
"""The same of schedules that observe a rate."""


def first_that_sees(mutant: Mutant, seeds: Iterable[int] = SEEING, *, observes: bool = False) -> int | None:
    """The first schedule that fails with the mutant in place."""
    for seed in seeds:
        with broken(mutant):
            try:
                ClusterRateSchedule(seed, observes=observes).run()
            except Exception:
                return seed
    return None
