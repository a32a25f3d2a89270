"""Places in shared memory, and locks that end with their process."""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from broker.storage import log_ends
from broker.storage.log_ends import END, FREED, GENERATION, KEY, WANTED, LogEnd, LogEnds
from broker.storage.records import Rejected
from broker.wire import codes


@contextmanager
def held(end: LogEnd) -> Iterator[int]:
    """The lock is another process's, which gets it before this begins."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        with end:
            os.write(write_end, b"!")
            signal.pause()
        os._exit(0)
    os.read(read_end, 1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(read_end)
        os.close(write_end)


def test_a_log_has_one_place_of_its_own() -> None:
    ends = LogEnds(64)
    logs = [(broker, topic, number) for broker in (0, 1) for topic in ("t", "t-1") for number in range(10)]
    assert len({ends.end_of(*log).place for log in logs}) == len(logs)
    for log in logs:
        ends.end_of(*log).words[END] = hash(log)
    assert [ends.end_of(*log).words[END] for log in logs] == [hash(log) for log in logs]


def test_a_place_is_given_away_when_its_log_is_gone() -> None:
    ends = LogEnds(8)
    for number in range(100):
        ends.free(ends.end_of(0, "t", number))
    assert not any(ends.end_of(0, "u", number).words[END] for number in range(7))
    with pytest.raises(Rejected) as refused:
        ends.end_of(0, "u", 7)
    assert refused.value.code == codes.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("gone", range(7))
def test_logs_are_found_whichever_of_them_goes(gone: int) -> None:
    ends = LogEnds(8)
    found = [ends.end_of(0, "t", number) for number in range(7)]
    before = found[gone].words[GENERATION]
    ends.free(found[gone])
    assert found[gone].lost
    assert [ends.end_of(0, "t", number).place for number in range(7) if number != gone] == [
        end.place for end in found if end is not found[gone]
    ]
    again = ends.end_of(0, "t", gone)
    assert not again.lost
    assert again.words[GENERATION] > before, "who knew the log before notices"


def test_the_topic_of_a_log() -> None:
    end = LogEnds(8).end_of(0, "t", 0)
    assert end.topic_id == UUID(int=0)
    for topic_id in (UUID(int=2**128 - 1), UUID(int=1), UUID(int=2**64 + 2**63)):
        end.claim(topic_id, 7)
        assert end.topic_id == topic_id


def test_a_deletion_is_remembered_by_its_newest_version() -> None:
    ends = LogEnds(8)
    ends.deleted(5)
    ends.deleted(3)
    assert ends.deleted_at == 5


def test_a_holder_that_does_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = LogEnds(8)
    end, other = ends.end_of(0, "t", 0), ends.end_of(0, "t", 1)
    waits: list[float] = []
    monkeypatch.setattr(log_ends.time, "sleep", waits.append)
    with held(end):
        with pytest.raises(Rejected) as refused, end:
            pass
        assert refused.value.code == codes.NOT_LEADER_OR_FOLLOWER
        assert waits
        waits.clear()
        with pytest.raises(Rejected), end:
            pass
        assert not waits, "it did not move since"
        with other:
            pass
    with end:
        pass
    with held(end), pytest.raises(Rejected), end:
        pass
    assert waits, "another one may be done soon"


def test_a_holder_that_is_stopped_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock of the test: one that only waits for a CPU gets more time."""
    now, pause = 0.0, time.sleep

    def sleep(_: float) -> None:
        nonlocal now
        now += 0.01
        pause(0.001)  # in which the other process gets the CPU that it may be waiting for

    monkeypatch.setattr(log_ends.time, "sleep", sleep)
    monkeypatch.setattr(log_ends.time, "monotonic", lambda: now)
    end = LogEnds(8).end_of(0, "t", 0)
    with held(end) as pid:
        with pytest.raises(Rejected), end:
            pass
        assert now > 0.2  # and longer, the longer the holder waits for a CPU
    end = LogEnds(8).end_of(0, "t", 0)
    with held(end) as pid:
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        now = 0.0
        with pytest.raises(Rejected), end:
            pass
        assert now < 0.2


def test_the_lock_of_a_process_that_is_killed_is_free() -> None:
    end = LogEnds(8).end_of(0, "t", 0)
    with held(end) as pid:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with end:
            assert end.words[KEY]


def test_a_shard_that_appends_without_end_leaves_the_lock_to_another() -> None:
    """Each time within a few of its own appends; the kernel alone would give it the lock again and again."""
    ends = LogEnds(8)
    end, taken = ends.end_of(0, "t", 0), ends.end_of(0, "t", 1).words
    pid = os.fork()
    if not pid:
        while True:
            with end:
                taken[END] += 1
                time.sleep(0.002)
    try:
        while not taken[END]:
            time.sleep(0.001)
        waited_for = []
        for _ in range(20):
            before = taken[END]
            with end:
                waited_for.append(taken[END] - before)
        assert sum(waited_for) <= 100, waited_for
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_shard_that_waited_for_the_lock_and_died_is_given_way_to_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now, pauses
        now += seconds
        pauses += 1

    monkeypatch.setattr(log_ends.time, "sleep", sleep)
    monkeypatch.setattr(log_ends.time, "monotonic", lambda: now)
    end = LogEnds(8).end_of(0, "t", 0)
    end.words[WANTED] = 1
    with end:
        assert not pauses
    assert pauses and now < 0.01
    pauses = 0
    with end:
        pass
    assert not pauses


def test_logs_that_come_and_go_leave_no_freed_place_behind_which_all_is_empty() -> None:
    chosen = random.Random(7)
    ends = LogEnds(256)
    here: dict[tuple[int, str, int], LogEnd] = {}
    for number in range(5_000):
        if len(here) < 60:
            log = (0, f"t{number}", 0)
            here[log] = ends.end_of(*log)
            here[log].words[END] = number
        else:
            gone = chosen.choice(list(here))
            assert here[gone].words[END] == int(gone[1][1:])
            ends.free(here.pop(gone))
        keys = [ends._key_at(place) for place in range(256)]
        assert not any(keys[place] == FREED and keys[(place + 1) % 256 or 1] == 0 for place in range(1, 256))
    assert {log: ends.end_of(*log).place for log in here} == {log: end.place for log, end in here.items()}
    for end in here.values():
        ends.free(end)
    assert not any(ends._key_at(place) for place in range(1, 256)), "none is left when all have gone"
