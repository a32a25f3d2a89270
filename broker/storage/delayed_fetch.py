"""Fetch, over all the partitions a consumer asks for: how much of each, and the wait until there is enough.

What is there and enough is answered at once. Otherwise the logs tell when they have grown by what is missing, altogether;
then all are read again. So nothing polls, and a busy partition never hides another's records.

reads_fit_the_room  A Fetch reads no more than the room that is left for answers when it reads, but for one batch.
many_partitions_in_turns  Many partitions are read, and watched, a part at a time, in turns with other work.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import trio

from broker.storage.fetch_in_progress import FetchInProgress, PartitionFetch
from broker.storage.partitions import MOST_AT_ONCE, PartitionAnswer, Partitions, with_late
from broker.storage.records import Rejected
from broker.storage.shared_log import SharedLog
from broker.storage.topic_partition import TopicPartition
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.loop.deferred import MaybeDeferred, Spawn, then

MAX_WAIT_MS = 60_000  # an answer without records may come early; so no Fetch outlives its connection for long
INTERNAL_WAIT_MS = 500  # records committed meanwhile come with the next Fetch

RETRY_S = 0.1


class GrowthWait:
    """A wait for logs to grow by so many bytes altogether, or to go away."""

    def __init__(self, need_bytes: int) -> None:
        self.over = trio.Event()
        self._need_bytes = need_bytes

    def appended(self, size_bytes: int) -> None:
        self._need_bytes -= size_bytes
        if self._need_bytes <= 0:
            self.over.set()

    def closed(self) -> None:
        self.over.set()


class Reader:
    """Reads for the clients of this shard. `room(most)`: how many bytes an answer may have now, of `most`."""

    def __init__(self, partitions: Partitions, spawn: Spawn, room: Callable[[int], int] = lambda most: most) -> None:
        self._partitions = partitions
        self._spawn = spawn
        self._room = room

    def fetch(
        self, wanted: Sequence[PartitionFetch], *, max_bytes: int, min_bytes: int, wait_ms: int
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        """The answer of `Partitions.do("read")` for each, in order; cancelling it ends the wait.

        At least one batch comes if there is any, however large.
        """
        if not INTERNAL_TOPICS.isdisjoint([each.topic for each in wanted]):
            wait_ms = min(wait_ms, INTERNAL_WAIT_MS)
            internal = [(each.topic, each.partition) for each in wanted if each.topic in INTERNAL_TOPICS]
            return then(
                self._partitions.bring_up(internal),
                partial(self._fetch_current, wanted, max_bytes=max_bytes, min_bytes=min_bytes, wait_ms=wait_ms),
            )
        return self._fetch(wanted, max_bytes=max_bytes, min_bytes=min_bytes, wait_ms=wait_ms)

    def _fetch_current(
        self,
        wanted: Sequence[PartitionFetch],
        late: Collection[TopicPartition],
        *,
        max_bytes: int,
        min_bytes: int,
        wait_ms: int,
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        """`late`: partitions of internal topics that can't be read now, which ends the wait for the others."""
        current = [each for each in wanted if (each.topic, each.partition) not in late]
        wait_ms = 0 if late else wait_ms
        answers = self._fetch(current, max_bytes=max_bytes, min_bytes=min_bytes, wait_ms=wait_ms)
        return then(
            answers, lambda read: with_late("read", [(each.topic, each.partition) for each in wanted], late, read)
        )

    def _fetch(
        self, wanted: Sequence[PartitionFetch], *, max_bytes: int, min_bytes: int, wait_ms: int
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        fetch = FetchInProgress(wanted, max_bytes=max_bytes, min_bytes=min_bytes)
        if len(wanted) > MOST_AT_ONCE:
            return self._spawn(self._fetch_many(fetch, wait_ms), cancellable=True)
        fetch.begin(self._room(max_bytes))
        self._read(fetch, 0, len(wanted))
        if wait_ms <= 0 or fetch.enough:
            return fetch.answers
        return self._spawn(self._wait_and_read(fetch, wait_ms), cancellable=True)

    async def _fetch_many(self, fetch: FetchInProgress, wait_ms: int) -> list[PartitionAnswer]:
        await self._read_again(fetch)
        return await self._wait_and_read(fetch, wait_ms)

    async def _wait_and_read(self, fetch: FetchInProgress, wait_ms: int) -> list[PartitionAnswer]:
        deadline = trio.current_time() + min(wait_ms, MAX_WAIT_MS) / 1000
        while not fetch.enough and (left_s := deadline - trio.current_time()) > 0:
            await self._wait(fetch, left_s)
            await self._read_again(fetch)
        return fetch.answers

    async def _read_again(self, fetch: FetchInProgress) -> None:
        fetch.begin(self._room(fetch.max_bytes))
        await self._in_turns(len(fetch.wanted), partial(self._read, fetch))

    def _read(self, fetch: FetchInProgress, first: int, end: int) -> None:
        for index in range(first, end):
            fetch.answers[index] = answer = self._partitions.do("read", fetch.asked(index))
            fetch.take(answer)

    async def _wait(self, fetch: FetchInProgress, wait_s: float) -> None:
        """Waits until the logs have grown by what is missing beyond the ends that were read; not at all if one has grown
        already."""
        growth = GrowthWait(fetch.missing_bytes)
        watched: list[SharedLog] = []

        def watch(first: int, end: int) -> None:
            for index in range(first, 0 if growth.over.is_set() else end):
                log = self._partitions.log(*fetch.wanted[index][:2])
                watched.append(log)
                log.watch(growth)
                if log.next_offset != fetch.answers[index][1]:
                    growth.over.set()
                    return

        try:
            await self._in_turns(len(fetch.wanted), watch)
            with trio.move_on_after(wait_s):
                await growth.over.wait()
            await self._partitions.turns.woken()
        except (Rejected, OSError):  # a log whose lock a stopped shard has, perhaps
            await trio.sleep(min(wait_s, RETRY_S))
        finally:
            for log in watched:
                log.waiters.discard(growth)

    async def _in_turns(self, count: int, do: Callable[[int, int], None]) -> None:
        """Reads a part of the partitions at a time (many_partitions_in_turns)."""
        if count <= MOST_AT_ONCE:
            do(0, count)
            return
        for first in range(0, count, MOST_AT_ONCE):
            async with self._partitions.turns.turn():
                do(first, min(first + MOST_AT_ONCE, count))
