"""The returns that the shards of a broker count in shared memory, and the deaths that the kernel tells."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from shards.ownership import hash_of
from shards.supervisor import return_counts
from shards.supervisor.return_counts import PLACES, ReturnCounts, ShardReturns

KEY = "ip:10.0.0.1"


@contextmanager
def another_shard(
    counts: ReturnCounts, shard: int, then: Callable[[ShardReturns], None] | None = None
) -> Iterator[int]:
    """The process of a shard that has started and done `then`; it is killed at the end."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        returns = counts.start(shard)
        if then is not None:
            then(returns)
        os.write(write_end, b"x")
        signal.pause()
    os.close(write_end)
    try:
        assert os.read(read_end, 1) == b"x"
        yield pid
    finally:
        os.close(read_end)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_returns_of_all_shards_are_counted() -> None:
    counts = ReturnCounts(2)
    mine = counts.start(0)
    with another_shard(counts, 1):
        before = mine.of(KEY)
        assert before is not None
        mine.add(KEY)
        assert mine.of(KEY) == before + 1
    with another_shard(counts, 1, lambda returns: returns.add(KEY)):
        assert mine.of(KEY) == before + 3  # its start, and its return


def test_a_return_of_another_pool_is_not_one_of_this() -> None:
    counts = ReturnCounts(1)
    mine = counts.start(0)
    before = mine.of(KEY)
    other = next(key for key in (f"ip:10.0.1.{n}" for n in range(9)) if hash_of(key) % PLACES != hash_of(KEY) % PLACES)
    mine.add(other)
    assert mine.of(KEY) == before


def test_nothing_can_be_told_before_all_shards_have_started() -> None:
    counts = ReturnCounts(2)
    assert counts.start(0).of(KEY) is None


def test_nothing_can_be_told_while_a_shard_is_dead() -> None:
    counts = ReturnCounts(2)
    mine = counts.start(0)
    with another_shard(counts, 1):
        before = mine.of(KEY)
        assert before is not None
    assert mine.of(KEY) is None
    with another_shard(counts, 1):
        assert mine.of(KEY) == before + 1  # its start


def test_a_death_is_seen_before_the_sockets_of_the_process_are_closed() -> None:
    """Also that of a process with other threads, whose end may come later than that of its main thread."""
    counts = ReturnCounts(2)
    mine = counts.start(0)
    for _ in range(50):
        read_end, write_end = os.pipe()

        def with_threads(returns: ShardReturns) -> None:
            for _ in range(4):
                threading.Thread(target=signal.pause, daemon=True).start()

        with another_shard(counts, 1, with_threads) as pid:
            os.close(write_end)
            assert mine.of(KEY) is not None
            os.kill(pid, signal.SIGKILL)
            assert os.read(read_end, 1) == b""  # the last process that could write has closed its end
            assert mine.of(KEY) is None
        os.close(read_end)


def test_a_stopped_shard_is_not_dead() -> None:
    counts = ReturnCounts(2)
    mine = counts.start(0)
    with another_shard(counts, 1) as pid:
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        assert mine.of(KEY) is not None


def test_without_robust_mutexes_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutThem:
        def __init__(self, name: None) -> None: ...

    monkeypatch.setattr(return_counts.ctypes, "CDLL", WithoutThem)
    mine = ReturnCounts(1).start(0)
    mine.add(KEY)
    assert mine.of(KEY) is None
