"""A first few hundred seeded schedules; `run.py` runs any number and prints the seeds that fail."""

import pytest
from simulation.schedule import Schedule, failures


@pytest.mark.parametrize("start", range(0, 500, 50))
def test_every_invariant_holds_after_every_pass(start: int) -> None:
    assert failures(range(start, start + 50)) == []


def test_a_seed_reproduces_its_run_step_by_step() -> None:
    logs: list[list[str]] = [[], []]
    for log in logs:
        Schedule(1, log=log.append).run()
    assert logs[0] == logs[1]
    assert len(logs[0]) > 100


def test_schedules_reach_what_they_are_meant_to_test() -> None:
    """Refusals, waits, crashes, changes and tokens that go home all happen, in the same few schedules every time."""
    steps: list[str] = []
    for seed in range(40):
        Schedule(seed, log=steps.append).run()
    text = "\n".join(steps)
    for happened in ("Refused", "ADMITTED", "unavailable=True", "crash", "stray", "cancel", "', True]"):
        assert happened in text, happened
    items = "borrow withdraw give report reclaimed probed grant refuse reclaim probe sync synced"
    for item in items.split():
        assert f"['{item}'" in text, item
