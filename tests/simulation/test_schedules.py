"""A first few hundred seeded schedules; `run.py` runs any number and prints the seeds that fail."""

import os
import subprocess
import sys

import pytest
from simulation.schedule import Schedule
from simulation.seeds import failures, schedule_of


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_every_invariant_holds_after_every_pass(start: int) -> None:
    assert failures(range(start, start + 50)) == []


def test_a_connection_refused_at_once_tells_nothing_of_those_that_a_rule_lets_wait() -> None:
    """ConnectionsInFlight.refuse, where a home has such a rule before another shard has it."""
    assert failures([21741]) == []


@pytest.mark.parametrize("seed", [1, 3])
def test_a_seed_reproduces_its_run_step_by_step(seed: int) -> None:
    logs: list[list[str]] = [[], []]
    for log in logs:
        schedule_of(seed, log.append).run()
    assert logs[0] == logs[1]
    assert len(logs[0]) > 100


def test_a_seed_runs_alike_whatever_strings_hash_to() -> None:
    """So that what `run.py` finds in one process is there in the next."""
    code = "from simulation.seeds import schedule_of; log = []; [schedule_of(s, log.append).run() for s in (104, 127)]; print(log)"
    path = os.pathsep.join(sys.path)
    logs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path, "TURNSTILE_COMPILED": "0"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert logs[0] == logs[1]


def test_a_connection_admitted_suspended_and_revoked_in_one_pass_has_used_its_tokens() -> None:
    assert failures([70_005_771]) == []


def test_a_token_granted_to_a_connection_that_left_goes_to_the_next_on_its_shard() -> None:
    """In one of them the one who left had asked at once, and was refused; both overtake one who waits elsewhere."""
    assert failures([72_025_805, 73_007_453]) == []


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


def test_schedules_of_accepting_reach_what_they_are_meant_to_test() -> None:
    """Both listeners admit and refuse; rates delay, hold and refuse; homes evict; shards and links break."""
    steps: list[str] = []
    for seed in (*range(3, 163, 4), 235):
        schedule_of(seed, steps.append).run()
    text = "\n".join(steps)
    for happened in (
        "listener:A",
        "listener:B",
        "ip_rate",
        "core_rate",
        "make_room",
        "crash",
        "cut",
        "unavailable=True",
    ):
        assert happened in text, happened
    for item in ("ask", "within", "go", "blocked", "count", "backup", "ask_use", "use", "unused"):
        assert f"('{item}'" in text, item
