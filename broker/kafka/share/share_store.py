"""The share partitions of one shard, with their clock: every change is kept on disk, and locks run out in time.

unwritten_changes_have_not_happened  A change that can't be written has not happened: OSError.
locked_records_have_a_deadline  While a record is locked there is an entry in `deadlines` at or before the end of its lock.
waiters_are_told_of_records  Who waits for a share partition is told when records of it may have become available, or locks
    free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID

import trio

from broker.kafka.groups.deadlines import Deadlines
from broker.kafka.share.share_log import ShareKey, ShareLog
from broker.kafka.share.share_partition import Lock, SharePartition
from broker.kafka.share.share_session import TopicIdPartition
from broker.runtime.logger import Logger
from broker.storage.partitions import Partitions
from broker.wire import codes
from shards.config.image import ClusterImage

TRY_AGAIN_MS = 1000

T = TypeVar("T")

log = Logger()


class Waiter(Protocol):
    """A ShareFetch that waits."""

    def freed(self) -> None: ...


class Unavailable(Exception):
    """A share partition can't be used now: a Kafka code, and why."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ShareStore:
    """`now_ms` is a clock that only goes forward, `wall_ms` the time of day."""

    def __init__(
        self,
        log: ShareLog,
        partitions: Partitions,
        image: ClusterImage,
        *,
        now_ms: Callable[[], int] = lambda: int(trio.current_time() * 1000),
        wall_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self.log = log
        self.deadlines: Deadlines[ShareKey] = Deadlines()
        self._partitions = partitions
        self._image = image
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._waiters: dict[ShareKey, set[Waiter]] = {}
        self._wake = trio.Event()
        self._asleep_until_ms: float = 0

    def lock(self, group: str, member: str) -> Lock:
        """The lock that `member` gets if it acquires now."""
        until_ms = self._now_ms() + self.lock_ms(group)
        renewable = bool(self._image.group_get(group, "share.renew.acknowledge.enable"))
        return Lock(member, until_ms, self.delivery_count_limit(group), renewable)

    def lock_ms(self, group: str) -> int:
        return int(self._image.group_get(group, "share.record.lock.duration.ms"))

    def delivery_count_limit(self, group: str) -> int:
        """The number of times a record may be delivered to `group`."""
        return int(self._image.group_get(group, "share.delivery.count.limit"))

    def most_locks(self, group: str) -> int:
        """Records of one partition that `group` may have in flight."""
        return int(self._image.group_get(group, "share.partition.max.record.locks"))

    # Share partitions

    def name_of(self, place: TopicIdPartition) -> str | None:
        """The name of a partition's topic; None: there is no such topic."""
        topic = self._image.topics.by_id(UUID(hex=place.topic_id))
        return None if topic is None else str(topic.name)

    def topic_of(self, key: ShareKey) -> str:
        """The name of its topic. Raises Unavailable."""
        name = self.name_of(key.place)
        if name is None:
            raise Unavailable(codes.UNKNOWN_TOPIC_ID)
        return name

    def open(self, key: ShareKey) -> SharePartition:
        """The share partition, begun if there is none yet. Raises Unavailable, and OSError."""
        known = self.log.get(key)
        return self._begin(key) if known is None else known

    def _begin(self, key: ShareKey) -> SharePartition:
        """Begins a share partition at the offset that share.auto.offset.reset names."""
        if len(self.log) >= self._image.get("turnstile.share.partitions.max"):
            raise Unavailable(codes.UNKNOWN_SERVER_ERROR, "turnstile.share.partitions.max are kept already.")
        strategy = str(self._image.group_get(key.group, "share.auto.offset.reset"))
        offset = -1
        if strategy.startswith("by_duration:"):
            offset = self._offset_at(key, self._wall_ms() - duration_ms(strategy.partition(":")[2]))
        if offset < 0:
            offset = self._offset_at(key, -2 if strategy == "earliest" else -1)
        return self.log.begin(key, offset)

    def _offset_at(self, key: ShareKey, timestamp: int) -> int:
        asked = (self.topic_of(key), key.place.partition, -1, timestamp)
        code, _, offset = self._partitions.do("offset_at", asked)
        if code:
            raise Unavailable(code)
        return int(offset)

    def change(self, key: ShareKey, partition: SharePartition, make: Callable[[], T]) -> T:
        """Returns what `make` does, once its change is written. Raises OSError (unwritten_changes_have_not_happened)."""
        before = partition.start_offset, partition.runs
        made = make()
        self.log.write(key, partition, before)
        self._note(key, partition.lock_deadline_ms())
        return made

    def try_change(self, key: ShareKey, partition: SharePartition, make: Callable[[], object]) -> bool:
        """As `change`, for a change that no request waits for; the partition's waiters are woken."""
        try:
            self.change(key, partition, make)
        except OSError as fault:
            log.warning("the state of a share group can't be written", group=key.group, error=str(fault))
            return False
        self.freed(key)
        return True

    # Locks

    def freed(self, key: ShareKey) -> None:
        """Records or locks of the partition may have become free (waiters_are_told_of_records)."""
        for waiter in self._waiters.get(key, ()):
            waiter.freed()

    def watch(self, key: ShareKey, waiter: Waiter) -> None:
        self._waiters.setdefault(key, set()).add(waiter)

    def unwatch(self, key: ShareKey, waiter: Waiter) -> None:
        waiters = self._waiters.get(key, set())
        waiters.discard(waiter)
        if not waiters:
            self._waiters.pop(key, None)

    def _note(self, key: ShareKey, deadline_ms: int | None) -> None:
        self.deadlines.note(key, deadline_ms)
        if deadline_ms is not None and deadline_ms < self._asleep_until_ms:
            self._wake.set()

    async def run(self) -> None:
        """Releases what locks held whose time is over, until cancelled."""
        while True:
            due_ms = self.deadlines.next_ms()
            self._wake = trio.Event()
            self._asleep_until_ms = float("inf") if due_ms is None else due_ms
            with trio.move_on_after(max(self._asleep_until_ms - self._now_ms(), 0) / 1000):
                await self._wake.wait()
            self._asleep_until_ms = 0
            self.expire()
            await trio.lowlevel.checkpoint()

    def expire(self) -> None:
        """Looks at one round of the partitions that are due; those left over stay due."""
        now_ms = self._now_ms()
        self.deadlines.round(now_ms, partial(self._expire, now_ms))

    def _expire(self, now_ms: int, key: ShareKey) -> int:
        """The number of records that were looked at."""
        partition = self.log.get(key)
        if partition is None:
            return 0
        looked_at = partition.in_flight
        limit = self.delivery_count_limit(key.group)
        if not self.try_change(key, partition, lambda: partition.expire(limit, now_ms=now_ms)):
            self._note(key, now_ms + TRY_AGAIN_MS)
        return looked_at

    def reset(self) -> None:
        """No share group has anything left."""
        for group in {key.group for key in self.log}:
            self.log.forget(group)
        self.deadlines.clear()


def duration_ms(text: str) -> int:
    """The ms of an ISO 8601 duration of days and less, as in `share.auto.offset.reset`, whose range is checked when it is set."""
    total_s, digits = 0.0, ""
    for letter in text.upper():
        if letter in "PT":
            continue
        if letter in "DHMS":
            total_s += float(digits) * {"D": 86_400, "H": 3600, "M": 60, "S": 1}[letter]
            digits = ""
        else:
            digits += letter
    return int(total_s * 1000)
