"""Schedules of a cluster with a rate of new connections over all its brokers, and that they can fail: each guard is broken on
purpose, and a schedule sees it."""

from __future__ import annotations

import pytest
from simulation.cluster_rate_schedule import (
    MUTANTS,
    OBSERVED_MUTANTS,
    SEEING,
    SEEING_OBSERVED,
    ClusterRateSchedule,
    first_that_sees,
)
from simulation.mutants import Mutant

from shards.limits.caps import CLUSTER, OBSERVED


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
    accounts = [world.accounts[CLUSTER] for world in worlds]
    assert any(each.went_on for each in accounts) and any(each.refused for each in accounts)
    assert any(each.unavailable for each in accounts)
    assert {world.brokers for world in worlds} >= {2, 3}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it(mutant: Mutant) -> None:
    assert first_that_sees(mutant) is not None


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_every_invariant_holds_of_a_rate_that_is_observed(start: int) -> None:
    for seed in range(start, start + 20):
        try:
            ClusterRateSchedule(seed, observes=True).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


def test_both_rates_refuse_at_once_and_an_observed_one_is_left_without_an_answer() -> None:
    worlds = []
    for seed in range(20):
        schedule = ClusterRateSchedule(seed, observes=True)
        schedule.run()
        worlds.append(schedule.world.accounts)
    assert any(world[CLUSTER].refused and world[OBSERVED + CLUSTER].refused for world in worlds)
    assert any(world[OBSERVED + CLUSTER].refused and not world[CLUSTER].went_on for world in worlds)
    assert any(world[OBSERVED + CLUSTER].unavailable for world in worlds)


@pytest.mark.parametrize("mutant", OBSERVED_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it_where_the_rate_is_observed(mutant: Mutant) -> None:
    assert first_that_sees(mutant, SEEING_OBSERVED, observes=True) is not None
