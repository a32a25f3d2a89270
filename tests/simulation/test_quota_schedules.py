"""Client quotas whose homes stop, die and lose their links, under virtual time: what must hold, and that a mistake is seen."""

import pytest
from simulation.quota_mutants import MUTANTS, SEEN, Mutant, seed_that_sees
from simulation.quota_schedule import QuotaSchedule
from simulation.seeds import QUOTAS, failures


@pytest.mark.parametrize("seed", range(12))
def test_a_quota_holds_whatever_happens_to_its_home(seed: int) -> None:
    schedule = QuotaSchedule(seed)
    schedule.run()
    assert schedule.answers


def test_a_shard_that_starts_decides_nothing_by_an_empty_meter() -> None:
    """In each of these a charge was made before the link to its home was up."""
    assert failures([17, 198, 559, 646, 765, 774, 881], kind=QUOTAS) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_oracle_sees_it(mutant: Mutant) -> None:
    """In the schedule in which it was seen first: `run.py --of quotas --mutants` looks for them anew."""
    seed = SEEN[mutant.name]
    assert seed_that_sees(mutant, range(seed, seed + 1)) is not None, (
        f"invariant {mutant.invariant} held at seed {seed}"
    )
