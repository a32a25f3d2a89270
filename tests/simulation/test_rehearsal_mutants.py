"""The simulation of rehearsals can fail: each of its guards is broken on purpose, and a schedule of accepting sees it."""

from __future__ import annotations

import pytest
from simulation.mutants import Mutant
from simulation.rehearsal_mutants import REHEARSAL_MUTANTS, SEEN, breaks


@pytest.mark.parametrize("mutant", REHEARSAL_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_schedule_sees_it(mutant: Mutant) -> None:
    assert breaks(mutant, SEEN[mutant.name])
