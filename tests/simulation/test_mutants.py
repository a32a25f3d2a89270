"""The simulation can fail: each guard of the protocol is broken on purpose, and the oracle sees it."""

import pytest
from simulation.mutants import ENOUGH, MUTANTS, Mutant, seed_that_sees


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_oracle_sees_it(mutant: Mutant) -> None:
    assert seed_that_sees(mutant) is not None, f"{ENOUGH} schedules did not violate invariant {mutant.invariant}"
