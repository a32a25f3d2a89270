"""A process that works makes progress; one that is stopped, or only ticks, does not."""

import os

import pytest

from shards.supervisor import progress
from shards.supervisor.progress import BUSY, CpuWaits, Progress, is_alive


@pytest.fixture
def used(monkeypatch):
    """CPU seconds by pid, which the test sets."""
    used = {}
    monkeypatch.setattr(progress, "cpu_s", lambda pid: used.get(pid, 0.0))
    return used


def test_only_more_than_a_tick_is_progress(used):
    watched = Progress()
    assert watched.is_made([1], now_s=0.0), "the first look at a process"
    used[1] = BUSY * 0.9
    assert not watched.is_made([1], now_s=1.0)
    used[1] += BUSY * 1.1
    assert watched.is_made([1], now_s=2.0)
    assert not watched.is_made([1], now_s=3.0)


def test_one_busy_process_among_several_is_enough_and_none_is_not(used):
    watched = Progress()
    watched.is_made([1, 2], now_s=0.0)
    used[2] = 0.5
    assert watched.is_made([1, 2], now_s=1.0)
    assert watched.is_made([1, 2, 3], now_s=2.0), "a new process"
    assert not watched.is_made([], now_s=3.0)


def test_the_kernel_tells_what_a_process_has_used():
    before = progress.cpu_s(os.getpid())
    while progress.cpu_s(os.getpid()) == before:
        pass
    assert progress.cpu_s(2**22 + 1) == 0.0


def test_waiting_for_a_cpu_is_told_from_look_to_look(monkeypatch):
    waited = {1: 5.0, 2: 100.0}
    monkeypatch.setattr("shards.supervisor.progress._schedstat_s", lambda pid, place: waited[pid] if place else 0.0)
    waits = CpuWaits()
    assert waits.since_last_s(1) == 0
    waited[1] += 2
    assert (waits.since_last_s(1), waits.since_last_s(1)) == (2, 0)
    assert waits.since_last_s(2) == 0, "another process"


def test_a_process_that_has_ended_is_not_alive_whether_it_was_waited_for_or_not():
    assert is_alive(os.getpid())
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(pid)
    os.waitpid(pid, 0)
    assert not is_alive(pid)
