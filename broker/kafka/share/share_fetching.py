"""ShareFetch at the home of its group: acquires what is there, or waits until there is something.

A wait ends when a log grows, when records become available or locks free, and with its session. Then all partitions are looked at
again. So nothing polls.

one_waiting_fetch_a_session  A session has one ShareFetch that waits at most: a new one ends the wait of the one before it,
    which is answered.
cancelled_waits_acquire_nothing  Nothing is acquired for a wait that was cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from broker.kafka.share.share_log import ShareKey
from broker.kafka.share.share_partition import SharePartition, Wanted
from broker.kafka.share.share_reads import ShareRead, read
from broker.kafka.share.share_requests import PartitionResult, ShareAnswer, ShareFetchLimits
from broker.kafka.share.share_session import ShareSession, TopicIdPartition
from broker.kafka.share.share_store import ShareStore, Unavailable
from broker.storage.delayed_fetch import MAX_WAIT_MS
from broker.storage.partitions import Partitions
from broker.storage.records import Rejected
from broker.storage.shared_log import SharedLog
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, Spawn

RETRY_S = 0.1
COMMITTED = "read_committed"

Answered = Callable[[dict[TopicIdPartition, PartitionResult]], ShareAnswer]


class _Wait:
    """`over` is set when it is worth looking again, or when the wait has ended."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.ended = False

    def freed(self) -> None:
        self.over.set()

    def appended(self, _size_bytes: int) -> None:
        self.over.set()

    def closed(self) -> None:
        self.over.set()

    def end(self) -> None:
        self.ended = True
        self.over.set()


class _Fetch:
    """One ShareFetch: `ends` is where each partition's log ended when it was read last."""

    def __init__(
        self,
        session: ShareSession,
        limits: ShareFetchLimits,
        results: dict[TopicIdPartition, PartitionResult],
        denied: set[TopicIdPartition],
    ) -> None:
        self.session = session
        self.limits = limits
        self.results = results
        self.places = [place for place in session.rotated() if place not in denied]
        self.failed = bool(denied)
        self.passed_over = False  # records that can't be delivered: what is behind them is to be looked at
        self.ends: dict[TopicIdPartition, int] = {}

    def result(self, place: TopicIdPartition) -> PartitionResult:
        return self.results.setdefault(place, PartitionResult())


class ShareFetching:
    def __init__(self, store: ShareStore, partitions: Partitions, image: ClusterImage, spawn: Spawn) -> None:
        self._store = store
        self._partitions = partitions
        self._image = image
        self._spawn = spawn
        self._waits: dict[tuple[str, str], _Wait] = {}

    def __len__(self) -> int:
        """The number of fetches that wait."""
        return len(self._waits)

    def fetch(
        self,
        session: ShareSession,
        limits: ShareFetchLimits,
        results: dict[TopicIdPartition, PartitionResult],
        denied: set[TopicIdPartition],
        answered: Answered,
        *,
        whole: bool,
    ) -> MaybeDeferred[ShareAnswer]:
        """`whole`: the answer has a row for every partition of the session, also if nothing was acquired."""
        self.end(session)
        fetch = _Fetch(session, limits, results, denied)
        if whole:
            for place in fetch.places:
                fetch.result(place)
        at_once = limits.wait_ms <= 0 or not fetch.places
        if self._acquire(fetch, last=at_once) or at_once:
            return answered(results)
        return self._spawn(self._wait(fetch, answered), cancellable=True)

    def end(self, session: ShareSession) -> None:
        """Ends the wait of the session's ShareFetch, if one waits (one_waiting_fetch_a_session)."""
        wait = self._waits.pop((session.group, session.member), None)
        if wait is not None:
            wait.end()

    # Acquiring

    def _acquire(self, fetch: _Fetch, *, last: bool) -> bool:
        """True if there is something to answer. `last`: also less than the bytes that were asked for."""
        fetch.passed_over = False
        open_partitions = {place: each for place in fetch.places if (each := self._open(fetch, place)) is not None}
        reads = self._read(fetch, open_partitions)
        if fetch.failed:
            last = True
        if not last and sum(each.size for each in reads.values()) < fetch.limits.min_bytes:
            return False
        left = fetch.limits.max_records
        acquired = 0
        for place, found in reads.items():
            acquired += self._acquire_one(fetch, place, open_partitions[place], found, left - acquired)
        return acquired > 0 or fetch.failed

    def _open(self, fetch: _Fetch, place: TopicIdPartition) -> SharePartition | None:
        """The share partition; None: nothing can be acquired of it; if that is an error, it is in the results."""
        key = ShareKey(fetch.session.group, place)
        try:
            partition = self._store.open(key)
            asked = (self._store.topic_of(key), place.partition, -1, -2)
        except Unavailable as why:
            self._fail(fetch, place, why.code, why.message)
            return None
        except OSError:
            self._fail(fetch, place, codes.KAFKA_STORAGE_ERROR, None)
            return None
        code, _, log_start = self._partitions.do("offset_at", asked)
        if code:
            self._fail(fetch, place, code, None)
            return None
        if log_start > partition.start_offset:
            self._store.try_change(key, partition, lambda: partition.log_starts_at(log_start))
        most = self._store.most_locks(key.group)
        return partition if partition.can_acquire(most) else None

    def _fail(self, fetch: _Fetch, place: TopicIdPartition, code: int, message: str | None) -> None:
        result = fetch.result(place)
        result.code, result.message = code, message
        fetch.failed = True

    def _read(
        self, fetch: _Fetch, open_partitions: Mapping[TopicIdPartition, SharePartition]
    ) -> dict[TopicIdPartition, ShareRead]:
        """Bytes are shared out evenly, as by Kafka's UniformPartitionMaxBytesStrategy; one batch comes in any case."""
        if not open_partitions:
            return {}
        group, limits = fetch.session.group, fetch.limits
        each_bytes = max(limits.max_bytes // len(open_partitions), 1)
        committed = str(self._image.group_get(group, "share.isolation.level")) == COMMITTED
        reads: dict[TopicIdPartition, ShareRead] = {}
        for place, partition in open_partitions.items():
            topic = self._store.topic_of(ShareKey(group, place))
            offset = partition.next_fetch_offset()
            found = read(
                self._partitions, topic, place.partition, offset,
                max_bytes=each_bytes, max_records=limits.max_records, committed=committed, at_least_one=not reads,
            )  # fmt: skip
            fetch.ends[place] = found.log_end
            if found.code not in (codes.NONE, codes.OFFSET_OUT_OF_RANGE):
                self._fail(fetch, place, found.code, None)
            elif found.spans:
                reads[place] = found
        return reads

    def _acquire_one(
        self, fetch: _Fetch, place: TopicIdPartition, partition: SharePartition, found: ShareRead, max_records: int
    ) -> int:
        """The number of records that were acquired."""
        session, limits = fetch.session, fetch.limits
        key = ShareKey(session.group, place)
        most = self._store.most_locks(session.group)
        wanted = Wanted(max_records, max(limits.batch_size, 1), most, limits.strict)
        lock = self._store.lock(session.group, session.member)
        offset = partition.next_fetch_offset()
        try:
            acquired = self._store.change(
                key, partition, lambda: partition.acquire(found.spans, lock, wanted, found.dropped)
            )
        except OSError:
            self._fail(fetch, place, codes.KAFKA_STORAGE_ERROR, None)
            return 0
        if acquired:
            result = fetch.result(place)
            result.acquired = acquired
            first, end = acquired[0].first, acquired[-1].last
            result.size = sum(span.size for span in found.spans if span.last >= first and span.first <= end)
        elif max_records > 0:
            fetch.passed_over |= partition.next_fetch_offset() > offset
        return sum(each.last - each.first + 1 for each in acquired)

    # Waiting

    async def _wait(self, fetch: _Fetch, answered: Answered) -> ShareAnswer:
        session = fetch.session
        wait = self._waits[session.group, session.member] = _Wait()
        deadline = trio.current_time() + min(fetch.limits.wait_ms, MAX_WAIT_MS) / 1000
        try:
            while (left_s := deadline - trio.current_time()) > 0 and not wait.ended:
                if fetch.passed_over:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._until_something(fetch, wait, left_s)
                if wait.ended or self._acquire(fetch, last=trio.current_time() >= deadline):
                    break
            return answered(fetch.results)
        finally:
            if self._waits.get((session.group, session.member)) is wait:
                del self._waits[session.group, session.member]

    async def _until_something(self, fetch: _Fetch, wait: _Wait, left_s: float) -> None:
        wait.over = trio.Event()
        keys = [ShareKey(fetch.session.group, place) for place in fetch.places]
        watched: list[SharedLog] = []
        for key in keys:
            self._store.watch(key, wait)
        try:
            self._watch_logs(fetch, wait, watched)
            with trio.move_on_after(left_s):
                await wait.over.wait()
        except (Rejected, Unavailable, OSError):  # a log whose lock a stopped shard has, perhaps
            await trio.sleep(min(left_s, RETRY_S))
        finally:
            for log in watched:
                log.waiters.discard(wait)
            for key in keys:
                self._store.unwatch(key, wait)

    def _watch_logs(self, fetch: _Fetch, wait: _Wait, watched: list[SharedLog]) -> None:
        for place in fetch.places:
            topic = self._store.topic_of(ShareKey(fetch.session.group, place))
            log = self._partitions.log(topic, place.partition)
            watched.append(log)
            log.watch(wait)
            if place in fetch.ends and log.next_offset != fetch.ends[place]:
                wait.over.set()
