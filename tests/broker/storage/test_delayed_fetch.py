"""The wait of a Fetch."""

import trio

from broker.storage.delayed_fetch import Reader
from broker.storage.fetch_in_progress import PartitionFetch
from broker.storage.log_ends import BUSY


class Stuck:
    """Partitions that can be read, and not be watched: a stopped process has the lock of their logs."""

    def __init__(self):
        self.reads = 0

    def do(self, operation, item):
        self.reads += 1
        return 0, 5, 0, b"", 5, ()

    def log(self, topic, partition):
        raise BUSY.with_traceback(None)


async def test_a_wait_that_can_not_begin_lets_others_run(autojump_clock):
    """It reads again now and then, until its time is over; by a clock that stands still while a task spins."""
    partitions = Stuck()
    async with trio.open_nursery() as nursery:
        answers = []

        def spawn(coroutine, *, cancellable=False):
            async def run():
                answers.extend(await coroutine)

            nursery.start_soon(run)

        wanted = [PartitionFetch("t", 0, -1, 5, 1000)]
        Reader(partitions, spawn).fetch(wanted, max_bytes=1000, min_bytes=1, wait_ms=1000)
    assert [answer[0] for answer in answers] == [0]
    assert 2 <= partitions.reads <= 20
    assert trio.current_time() >= 1
