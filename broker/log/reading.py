"""Fetch, over all the partitions a consumer asks for: how much of each, and the wait until there is enough.

What is here and enough is answered at once. Otherwise the homes of all partitions are read, and if that is not enough
either, every home tells when its logs have grown by what is missing; the first to do so ends the wait, and all are
read again. So nothing polls, and a busy partition never hides another's records.

F1  At most MOST_FORWARDS answers of one other shard are on their way to this one; further reads wait for these, in order.
F2  A Fetch reads no more than the room that is left for answers when it reads, but for one batch.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import trio

from broker.log.fetch_in_progress import FetchInProgress, PartitionFetch
from broker.log.partition_log import PartitionLog
from broker.log.partitions import FAILED, MOST_AT_ONCE, Answer, Partitions
from broker.log.records import Rejected
from broker.protocol import codes
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.mesh.deferred import MaybeDeferred, Spawn

READ, WAIT, GIVE_UP = "partitions.read", "partitions.wait", "partitions.give_up"
MOST_FORWARDED_BYTES = 1 << 20  # a larger answer would hold up what else crosses the link between two shards
MOST_FORWARDS = 16
MAX_WAIT_MS = 60_000  # an answer without records may come early; so no Fetch outlives its connection for long
_MARGIN_S = 5.0
_ANY_BYTES = 1 << 62


class DelayedFetch:
    """A wait for logs to grow by so many bytes altogether, or to go away. `number` is that of a wait for another shard."""

    def __init__(self, need_bytes: int, number: int = 0) -> None:
        self.over = trio.Event()
        self.number = number
        self._need_bytes = need_bytes

    def grown(self, size_bytes: int) -> None:
        self._need_bytes -= size_bytes
        if self._need_bytes <= 0:
            self.over.set()

    def gone(self) -> None:
        self.over.set()


class Reader:
    """Reads for the clients of this shard, and for other shards what is at home here. `room(most)`: how many bytes an answer
    may have now, of `most`."""

    def __init__(self, partitions: Partitions, spawn: Spawn, room: Callable[[int], int] = lambda most: most) -> None:
        self._partitions = partitions
        self._spawn = spawn
        self._room = room
        self._forwards: dict[int, trio.Semaphore] = {}
        self._numbers = itertools.count(1)
        self._waits: dict[str, DelayedFetch] = {}  # by client: a new wait of one ends its earlier one
        partitions.mesh.serve(
            READ, lambda _peer, wanted, max_bytes: self._read_here(wanted, max_bytes, MOST_FORWARDED_BYTES)
        )
        partitions.mesh.serve(WAIT, self._serve_wait)
        partitions.mesh.serve(GIVE_UP, self._serve_give_up)

    def fetch(
        self, wanted: Sequence[PartitionFetch], *, max_bytes: int, min_bytes: int, wait_ms: int, client: str
    ) -> MaybeDeferred[list[Answer]]:
        """What Partitions.read answers for each, in order; cancelling it ends the wait.

        At least one batch comes if there is any, however large. `client` names the connection among all of this broker.
        """
        fetch = FetchInProgress(wanted, max_bytes=max_bytes, min_bytes=min_bytes, wait_ms=wait_ms, client=client)
        if len(wanted) > MOST_AT_ONCE:
            return self._spawn(self._fetch_in_turns(fetch), cancellable=True)
        self._find_homes(fetch, range(len(wanted)))
        if fetch.by_home.keys() <= {self._partitions.shard}:
            here = fetch.by_home.get(self._partitions.shard, [])
            room_bytes = self._room(max_bytes)
            fetch.answered(here, self._read_here(fetch.wanted_of(here), room_bytes))
            fetch.share(room_bytes)
            if wait_ms <= 0 or fetch.enough:
                return fetch.answers
        return self._spawn(self._fetch_slowly(fetch), cancellable=True)

    def _find_homes(self, fetch: FetchInProgress, indexes: Iterable[int]) -> None:
        """Of these partitions; where there is no such partition, that is its answer."""
        for index in indexes:
            try:
                home = self._partitions.home(fetch.wanted[index].topic, fetch.wanted[index].partition)
                fetch.by_home.setdefault(home, []).append(index)
            except Rejected as why:
                fetch.answers[index] = FAILED["read"](why)

    async def _fetch_in_turns(self, fetch: FetchInProgress) -> list[Answer]:
        """Of so many partitions that even finding them takes long."""
        partitions = len(fetch.wanted)
        for first in range(0, partitions, MOST_AT_ONCE):
            async with self._partitions.turns.turn():
                self._find_homes(fetch, range(first, min(first + MOST_AT_ONCE, partitions)))
        return await self._fetch_slowly(fetch)

    async def _fetch_slowly(self, fetch: FetchInProgress) -> list[Answer]:
        deadline = trio.current_time() + min(fetch.wait_ms, MAX_WAIT_MS) / 1000
        waited = any(answer is None for answer in fetch.answers)  # else they were read just now
        while True:
            if waited:
                await self._read_homes(fetch)
            left_s = deadline - trio.current_time()
            if left_s <= 0 or fetch.enough:
                return fetch.answers
            await self._wait_for_any(fetch, left_s)
            waited = True

    # Reading

    def _read_here(self, wanted: Sequence[Sequence[Any]], max_bytes: int, room_bytes: int = _ANY_BYTES) -> list[Answer]:
        """`room_bytes`: what fits besides the client's own limits. Where only that is short, no batch is cut."""
        answers = []
        left_bytes, nothing_yet = max_bytes, True
        for topic, partition, epoch, offset, most, committed in wanted:
            most = min(most, left_bytes)
            asked = (topic, partition, epoch, offset, min(most, room_bytes), committed, nothing_yet, most > room_bytes)
            answer = self._partitions.do("read", asked)
            if answer[3]:
                size = len(answer[3])
                # A larger one is the first here, and not surely the first of all: FetchInProgress.share knows.
                left_bytes -= size if size <= most else 0
                room_bytes -= size
                nothing_yet = False
            answers.append(answer)
        return answers

    async def _read_homes(self, fetch: FetchInProgress) -> None:
        """Every home answers as if it had all the bytes; then the partitions get them in the order of the request, as many as
        there is room for."""

        async def read_home(home: int, indexes: list[int]) -> None:
            fetch.answered(indexes, await self._read_home(home, fetch.wanted_of(indexes), fetch.max_bytes))

        async with trio.open_nursery() as nursery:
            for home, indexes in fetch.by_home.items():
                nursery.start_soon(read_home, home, indexes)
        fetch.share(self._room(fetch.max_bytes))

    async def _read_home(self, home: int, wanted: list[PartitionFetch], max_bytes: int) -> list[Answer]:
        if home == self._partitions.shard:
            return self._read_here(wanted, self._room(max_bytes))
        forwards = self._forwards.setdefault(home, trio.Semaphore(MOST_FORWARDS))
        try:
            forwards.acquire_nowait()
        except trio.WouldBlock:
            await forwards.acquire()
        try:
            answers: list[Answer] = await self._partitions.mesh.request(home, READ, wanted, self._room(max_bytes))
            return answers
        except (PeerLost, RemoteError, DeadlineExceeded):
            gone = Rejected(codes.NOT_LEADER_OR_FOLLOWER, "The partition's shard is starting again.")
            return [FAILED["read"](gone)] * len(wanted)
        finally:
            forwards.release()

    # Waiting

    async def _wait_for_any(self, fetch: FetchInProgress, wait_s: float) -> None:
        """Until logs of one home have grown by what is missing."""
        need_bytes = fetch.missing_bytes

        async def wait_at(home: int, logs: list[tuple[str, int, int]]) -> None:
            if home == self._partitions.shard:
                await self._wait_here(logs, DelayedFetch(need_bytes), wait_s)
            else:
                await self._wait_there(home, fetch.client, logs, need_bytes, wait_s)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for home in fetch.by_home:
                nursery.start_soon(wait_at, home, fetch.ends_at(home))

    async def _wait_there(
        self, home: int, client: str, logs: list[tuple[str, int, int]], need_bytes: int, wait_s: float
    ) -> None:
        """Also over when the home is lost: the read that follows says so. A wait that is cancelled ends at the home, too."""
        name, number = f"{self._partitions.shard} {client}", next(self._numbers)
        try:
            asked = (name, number, logs, need_bytes, wait_s)
            if not await self._partitions.mesh.request(home, WAIT, *asked, timeout_s=wait_s + _MARGIN_S):
                await trio.sleep(wait_s)  # the client has another Fetch waiting there: this one's answer is not missed
        except (PeerLost, RemoteError, DeadlineExceeded):
            pass
        except trio.Cancelled:
            self._partitions.mesh.call(home, GIVE_UP, name, number)
            raise

    def _serve_give_up(self, _peer: Any, client: str, number: int) -> None:
        growth = self._waits.get(client)
        if growth is not None and growth.number == number:
            growth.over.set()

    async def _serve_wait(
        self, _peer: Any, client: str, number: int, logs: Sequence[Sequence[Any]], need_bytes: int, wait_s: float
    ) -> bool:
        """False if the wait ended because the same client began another one."""
        growth = DelayedFetch(need_bytes, number)
        given_up = self._waits.get(client)
        self._waits[client] = growth
        if given_up is not None:
            given_up.over.set()
        try:
            await self._wait_here(logs, growth, wait_s)
            return self._waits.get(client) is growth
        finally:
            if self._waits.get(client) is growth:
                del self._waits[client]

    async def _wait_here(self, logs: Sequence[Sequence[Any]], growth: DelayedFetch, wait_s: float) -> None:
        """Until the logs have grown enough beyond their ends as the reader saw them; at once if one has already."""
        watched: list[PartitionLog] = []
        try:
            for topic, partition, end in logs:
                log = self._partitions.log(topic, partition)
                if log.next_offset != end:
                    return
                log.waiters.add(growth)
                watched.append(log)
            with trio.move_on_after(wait_s):
                await growth.over.wait()
        except (Rejected, OSError):
            return
        finally:
            for log in watched:
                log.waiters.discard(growth)
