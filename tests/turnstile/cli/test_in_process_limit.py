"""Where a journal is judged, by the memory and the cores of the machine."""

from pathlib import Path

import pytest

from turnstile.cli import in_process_limit
from turnstile.cli.in_process_limit import EVENT_BYTES, FEW_CORES, FEW_EVENTS, events_here

GIB = 1 << 30


@pytest.mark.parametrize("cores", [1, FEW_CORES])
def test_few_cores_judge_in_one_process_what_half_of_the_memory_holds(cores: int) -> None:
    assert events_here(64 * GIB, cores) == 32 * GIB // EVENT_BYTES > FEW_EVENTS


def test_many_cores_leave_a_larger_journal_to_spark_however_much_memory_there_is() -> None:
    assert events_here(64 * GIB, FEW_CORES + 1) == FEW_EVENTS


@pytest.mark.parametrize("cores", [1, 64])
def test_little_memory_does_not_lower_the_border(cores: int) -> None:
    assert events_here(0, cores) == FEW_EVENTS


def test_without_proc_the_border_is_that_of_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(in_process_limit, "_MEMINFO", tmp_path / "meminfo")
    assert in_process_limit.events_on_this_machine() == FEW_EVENTS


def test_this_machine_says_what_it_has() -> None:
    assert in_process_limit.events_on_this_machine() >= FEW_EVENTS
