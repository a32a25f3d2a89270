"""Who is unresponsive, and who is ended: under a clock that the test moves."""

import pytest

from broker.process.shard_watchdog import EVERY_S, LATE_S, MOST_BUSY_S, ShardWatchdog

ONE, OTHER = (0, 0), (0, 1)
TIMEOUT_S = 5.0


class Watched:
    """A ShardWatchdog asked as the coordinator asks it: `answering` answer at once, `busy` are applying something."""

    timeout_s = TIMEOUT_S

    def __init__(self):
        self.now_s = 100.0
        self.shard_watchdog = ShardWatchdog([ONE, OTHER], now_s=self.now_s)
        self.answering = {ONE, OTHER}
        self.busy = set()
        self.ended = []

    def run(self, seconds):
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += EVERY_S
            self.look()

    def look(self):
        for member in (ONE, OTHER):
            self.shard_watchdog.begin_ping(member, now_s=self.now_s)
            if member in self.busy:
                self.shard_watchdog.progressed(member, now_s=self.now_s)
        self.ended += self.shard_watchdog.take_overdue(self.timeout_s, now_s=self.now_s)
        for member in self.answering:  # it takes a moment
            self.shard_watchdog.answered(member, now_s=self.now_s + 0.001)

    @property
    def unresponsive(self):
        return self.shard_watchdog.unresponsive(now_s=self.now_s)


@pytest.fixture
def watched():
    return Watched()


def test_shards_that_answer_are_left_alone(watched):
    watched.run(1000)
    assert (watched.unresponsive, watched.ended) == (set(), [])


def test_a_timeout_shorter_than_the_time_between_two_questions_ends_only_what_does_not_answer(watched):
    watched.timeout_s = EVERY_S / 5
    watched.run(1000)
    assert watched.ended == []
    watched.answering.remove(OTHER)
    watched.run(2 * EVERY_S)
    assert watched.ended == [OTHER]


def test_silence_shows_at_once_and_is_ended_after_the_timeout(watched):
    watched.answering.remove(OTHER)
    watched.run(EVERY_S + LATE_S)
    assert watched.unresponsive == {OTHER}
    watched.run(TIMEOUT_S - EVERY_S - LATE_S - EVERY_S)
    assert watched.ended == []
    watched.run(2 * EVERY_S)
    assert watched.ended == [OTHER]


def test_an_answer_ends_the_silence(watched):
    watched.answering.remove(OTHER)
    watched.run(TIMEOUT_S - 1)
    watched.answering.add(OTHER)
    watched.run(1000)
    assert (watched.unresponsive, watched.ended) == (set(), [])


def test_what_starts_or_applies_and_gets_somewhere_is_not_ended_but_shown(watched):
    watched.answering.remove(OTHER)
    watched.busy.add(OTHER)
    watched.run(100)
    assert (watched.unresponsive, watched.ended) == ({OTHER}, [])
    watched.busy.remove(OTHER)
    watched.run(TIMEOUT_S)
    assert watched.ended == [OTHER]


def test_what_spins_while_it_starts_or_applies_is_ended_in_the_end(watched):
    watched.answering.remove(OTHER)
    watched.busy.add(OTHER)
    watched.run(MOST_BUSY_S)
    assert watched.ended == []
    watched.run(TIMEOUT_S + EVERY_S)
    assert watched.ended == [OTHER]


def test_time_for_which_a_shard_waited_for_a_cpu_does_not_count(watched):
    watched.answering.remove(OTHER)
    for _ in range(int(20 / EVERY_S)):
        watched.run(EVERY_S)
        watched.shard_watchdog.waited(OTHER, 0.8 * EVERY_S, now_s=watched.now_s)
    assert watched.ended == [], "4 s of 20 it had a CPU"
    watched.run(TIMEOUT_S)
    assert watched.ended == [OTHER]


def test_a_successor_has_the_whole_timeout(watched):
    watched.answering.remove(OTHER)
    watched.run(TIMEOUT_S - 1)
    watched.shard_watchdog.lost(OTHER, now_s=watched.now_s)
    assert watched.unresponsive == set()
    watched.run(TIMEOUT_S - 1)
    assert watched.ended == []
    watched.run(1 + EVERY_S)
    assert watched.ended == [OTHER]


def test_what_is_not_ended_by_the_signal_is_ended_again(watched):
    watched.answering.remove(OTHER)
    watched.run(3 * TIMEOUT_S + EVERY_S)
    assert watched.ended == [OTHER] * 3


def test_time_in_which_the_coordinator_did_not_run_counts_for_nobody(watched):
    watched.answering.clear()
    watched.run(2)
    watched.now_s += 3600
    watched.look()
    assert watched.ended == []
    watched.answering = {ONE, OTHER}
    watched.run(1000)
    assert watched.ended == []
