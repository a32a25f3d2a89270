"""The simulation can fail: each guard of the protocol is broken on purpose, and the oracle sees it."""

import pytest
from simulation.mutants import MUTANTS, SEEN, Mutant, seed_that_sees


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_oracle_sees_it(mutant: Mutant) -> None:
    """In the schedule in which it was seen. Drawn schedules differ when their drawing does: then `run.py --mutants` looks
    for them anew, and SEEN is to be what it prints."""
    seed = SEEN.get(mutant.name, 0)
    assert seed_that_sees(mutant, range(seed, seed + 1)) is not None, (
        f"invariant {mutant.invariant} held at seed {seed}"
    )
