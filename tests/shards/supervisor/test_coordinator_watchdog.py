"""When a process that beats no more is taken for hung: under a clock that the test moves."""

import pytest

from shards.supervisor import coordinator_watchdog as module
from shards.supervisor.coordinator_watchdog import LOOK_S, MOST_BUSY_S, CoordinatorWatchdog

TIMEOUT_S = 5.0


class Watched:
    """A watchdog asked as the supervisor asks it; `beats` and `busy` say what its process does meanwhile."""

    def __init__(self, monkeypatch):
        self.now_s, self.used_s = 100.0, 0.0
        self.beats, self.busy = True, False
        monkeypatch.setattr("shards.supervisor.progress.cpu_s", lambda pid: self.used_s)
        self.watchdog = CoordinatorWatchdog()
        self.watchdog.started(now_s=self.now_s)

    def hung_after(self, at_most_s):
        """Seconds until it is taken for hung; None: it is not, for so long."""
        began_s = self.now_s
        while self.now_s - began_s < at_most_s:
            self.now_s += LOOK_S
            self.used_s += LOOK_S * self.busy
            if self.beats:
                self.watchdog.beat(TIMEOUT_S, now_s=self.now_s)
            if self.watchdog.take_hung(1, now_s=self.now_s):
                return self.now_s - began_s
        return None


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_process_that_beats_is_left_alone(watched):
    assert watched.hung_after(1000) is None


def test_a_process_that_is_silent_is_hung_after_its_timeout_and_again_if_it_is_still_there(watched):
    watched.hung_after(10)
    watched.beats = False
    assert watched.hung_after(1000) == TIMEOUT_S
    assert watched.hung_after(1000) == TIMEOUT_S


def test_a_process_that_works_is_not_hung_but_one_that_spins_is(watched):
    watched.hung_after(10)
    watched.beats, watched.busy = False, True
    assert watched.hung_after(MOST_BUSY_S) is None
    assert watched.hung_after(1000) == pytest.approx(TIMEOUT_S, abs=LOOK_S)


def test_a_process_that_never_begins_to_beat_is_hung(watched):
    watched.beats = False
    assert watched.hung_after(1000) == pytest.approx(module._FIRST_TIMEOUT_S, abs=LOOK_S)


def test_a_successor_has_the_time_to_start(watched):
    watched.hung_after(10)
    watched.beats = False
    watched.hung_after(TIMEOUT_S - 1)
    watched.watchdog.started(now_s=watched.now_s)
    assert watched.hung_after(1000) == pytest.approx(module._FIRST_TIMEOUT_S, abs=LOOK_S)


def test_time_in_which_the_supervisor_did_not_run_does_not_count(watched):
    watched.hung_after(10)
    watched.now_s += 3600
    watched.beats = False
    assert watched.hung_after(1000) == pytest.approx(TIMEOUT_S, abs=LOOK_S)
