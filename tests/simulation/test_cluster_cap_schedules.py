"""Schedules of a cluster with a cap over all its brokers, and that they can fail: each guard is broken on purpose, and a schedule
sees it."""

from __future__ import annotations

import pytest
from simulation.cluster_cap_schedule import MUTANTS, OBSERVED_MUTANTS, ClusterCapSchedule, first_that_sees
from simulation.mutants import Mutant


@pytest.mark.parametrize("start", range(0, 150, 50))
def test_every_invariant_holds(start: int) -> None:
    for seed in range(start, start + 50):
        try:
            ClusterCapSchedule(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("seed", [345, 5476, 5628])
def test_none_is_refused_by_what_was_full_before_a_wider_cap_reached_another_shard(seed: int) -> None:
    """full_pools.py, opening_is_a_return"""
    ClusterCapSchedule(seed).run()


def test_connections_are_let_in_refused_by_either_cap_and_left_without_an_answer() -> None:
    ends: set[str | None] = set()
    for seed in range(20):
        schedule = ClusterCapSchedule(seed)
        schedule.run()
        ends |= {client.refused and client.refused[0] for client in schedule.world.clients}
    assert ends == {None, "cluster_cap", "broker_cap", "shard_unavailable"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it(mutant: Mutant) -> None:
    assert first_that_sees(mutant, range(10)) is not None


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_every_invariant_holds_of_what_is_observed(start: int) -> None:
    for seed in range(start, start + 50):
        try:
            ClusterCapSchedule(seed, observes=True).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


def test_connections_are_in_the_observed_world_or_would_be_refused_by_either_cap() -> None:
    ends: set[tuple[bool, str | None]] = set()
    for seed in range(20):
        schedule = ClusterCapSchedule(seed, observes=True)
        schedule.run()
        told = [client.inside for client in schedule.world.clients if client.inside.asked]
        ends |= {(each.came_in, each.refused and each.refused[0]) for each in told}
    assert ends >= {(True, None), (False, None), (False, "cluster_cap"), (False, "broker_cap")}


@pytest.mark.parametrize("mutant", OBSERVED_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it_where_caps_are_observed(mutant: Mutant) -> None:
    assert first_that_sees(mutant, range(20), observes=True) is not None
