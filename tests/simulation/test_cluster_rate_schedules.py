"""Schedules of a cluster with a rate of new connections over all its brokers, and that they can fail: each guard is broken on
purpose, and a schedule sees it."""

from __future__ import annotations

import pytest
from simulation.cluster_rate_schedule import MUTANTS, SEEING, ClusterRateSchedule, first_that_sees
from simulation.mutants import Mutant


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_every_invariant_holds(start: int) -> None:
    for seed in range(start, start + 25):
        try:
            ClusterRateSchedule(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("seed", SEEING)
def test_the_schedules_that_see_mutants_hold_without_them(seed: int) -> None:
    ClusterRateSchedule(seed).run()


def test_connections_go_on_are_refused_and_left_without_an_answer_in_clusters_that_lose_a_shard_or_a_broker() -> None:
    worlds = []
    for seed in SEEING:
        schedule = ClusterRateSchedule(seed)
        schedule.run()
        worlds.append(schedule.world)
    assert any(world.went_on for world in worlds) and any(world.refused for world in worlds)
    assert any(world.unavailable for world in worlds)
    assert {world.brokers for world in worlds} >= {2, 3}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it(mutant: Mutant) -> None:
    assert first_that_sees(mutant) is not None
