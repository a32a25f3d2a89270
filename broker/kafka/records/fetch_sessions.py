"""Fetch sessions (KIP-227): the broker remembers which partitions a client fetches. An incremental Fetch names only the
partitions that it adds, changes or removes; the answer has only those with something new. Pure: time is an argument.

Each shard has a cache of its own, as it has its own connections. (Kafka, too, divides its cache into shards, by ranges of session
ids.) A client that connects again may reach another shard. It is answered FETCH_SESSION_ID_NOT_FOUND there and begins a new
session, as it does when its session was evicted.

fetch_sessions_are_bounded  There are at most `slots` sessions, and `partitions` is the sum of their sizes.
incremental_answers_hold_changes  An incremental answer has a partition if it has records or an error, or if its high
    watermark or log start differs from what the client was told last. After an error the next answer has the partition again,
    changed or not.
full_partitions_go_last  Partitions with records go to the end of their session's order, so that the next fetch fills the
    others first.

Sources: FetchSession.scala (FetchManager, FetchSessionCacheShard, CachedPartition), FetchMetadata.nextEpoch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from broker.storage.fetch_in_progress import PartitionFetch
from broker.storage.partitions import PartitionAnswer
from broker.wire import codes

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EVICTION_MS = 120_000
"""Any new session may evict one that was unused for longer than this. A consumer's new session never evicts one that was younger
than this at its last use."""
_IDS = (1 << 31) - 1
_UNSENT = -1

PartitionKey: TypeAlias = tuple[str | UUID | None, int]
"""(topic, partition); the topic by its name, or by its id in a session that uses ids."""


def next_epoch(epoch: int) -> int:
    """The epoch of the request that follows a request with this epoch."""
    return FINAL_EPOCH if epoch < 0 else 1 if epoch == _IDS else epoch + 1


class CachedPartition:
    """A partition of a session. `asked`: the fetch of it; `high_watermark`, `start_offset`: as they were sent last."""

    __slots__ = ("asked", "high_watermark", "key", "start_offset")

    def __init__(self, key: PartitionKey, asked: PartitionFetch) -> None:
        self.key = key
        self.asked = asked
        self.high_watermark = _UNSENT
        self.start_offset = _UNSENT

    def mark_sent(self, answer: PartitionAnswer) -> bool:
        """Marks an answer as sent. True if an incremental answer must have it (incremental_answers_hold_changes)."""
        code, high_watermark, start_offset = answer[:3]
        changed = bool(code or answer[3] or high_watermark != self.high_watermark or start_offset != self.start_offset)
        self.high_watermark = _UNSENT if code else high_watermark
        self.start_offset = start_offset
        return changed


SessionPartitions: TypeAlias = dict[PartitionKey, CachedPartition]
"""The partitions of a session, in the order in which a Fetch reads them."""


class FetchSession:
    """`epoch`: that of the next request. `by_id`: True if the session names topics by id. `privileged`: True if a follower's."""

    __slots__ = (
        "_committed",
        "_version",
        "by_id",
        "created_ms",
        "epoch",
        "id",
        "partitions",
        "privileged",
        "size",
        "used_ms",
    )

    def __init__(
        self, session_id: int, partitions: SessionPartitions, *, by_id: bool, privileged: bool, now_ms: int
    ) -> None:
        self.id = session_id
        self.by_id = by_id
        self.privileged = privileged
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = partitions
        self.size = len(partitions)
        """The number of partitions, as last counted by the cache."""
        self.created_ms = self.used_ms = now_ms
        self._version = -1
        self._committed: bool | None = None

    def update(self, asked: Iterable[tuple[PartitionKey, PartitionFetch]], forgotten: Iterable[PartitionKey]) -> None:
        """Applies a request: the partitions that it adds or changes (`asked`), and those that it removes (`forgotten`)."""
        partitions = self.partitions
        for key, each in asked:
            known = partitions.get(key)
            if known is None:
                partitions[key] = CachedPartition(key, each)
            else:
                known.asked = each
        for key in forgotten:
            partitions.pop(key, None)

    def isolate(self, committed: bool) -> None:
        """Sets the isolation level of all partitions: that of the present request, as a session has none of its own."""
        if committed is not self._committed:
            self._committed = committed
            for partition in self.partitions.values():
                partition.asked = partition.asked._replace(committed=committed)

    def resolve(self, version: int, name_of: Callable[[UUID | None], str]) -> None:
        """Sets the topic names of partitions that are fetched by id, as of this version of the configuration."""
        if version == self._version:
            return
        self._version = version
        for (topic_id, _), partition in self.partitions.items():
            assert not isinstance(topic_id, str)
            name = name_of(topic_id)
            if name != partition.asked.topic:
                partition.asked = partition.asked._replace(topic=name)

    def mark_sent(
        self, partitions: Sequence[CachedPartition], answers: Sequence[PartitionAnswer]
    ) -> list[tuple[PartitionKey, PartitionAnswer]]:
        """Marks the answers as sent; returns those that an incremental answer must have (incremental_answers_hold_changes,
        full_partitions_go_last)."""
        changed = []
        for partition, answer in zip(partitions, answers, strict=True):
            if not partition.mark_sent(answer):
                continue
            changed.append((partition.key, answer))
            if answer[3] and self.partitions.pop(partition.key, None) is not None:
                self.partitions[partition.key] = partition
        return changed

    def mark_unsent(self, changed: Iterable[tuple[PartitionKey, PartitionAnswer]]) -> None:
        """Undoes `mark_sent` for an answer that a quota withheld: the next answer has these partitions again."""
        for key, _ in changed:
            partition = self.partitions.get(key)
            if partition is not None:
                partition.high_watermark = partition.start_offset = _UNSENT


class FetchSessionCache:
    """The sessions of one of the broker's `shards`."""

    def __init__(self, shard: int, shards: int) -> None:
        self._ids = _IDS // shards - 1
        self._first_id = 1 + shard * (_IDS // shards)
        self._shard = shard
        self._shards = shards
        self._sessions: dict[int, FetchSession] = {}
        """The sessions by id; the one used longest ago is the first."""
        self.partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def check(self) -> None:
        """Raises AssertionError if an invariant is broken; for tests."""
        sessions = [*self._sessions.values()]
        assert self.partitions == sum(session.size for session in sessions)
        assert [session.used_ms for session in sessions] == sorted(session.used_ms for session in sessions)

    def find(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession | int:
        """The session of an incremental request, or the error code that answers it."""
        session = self._sessions.get(session_id)
        if session is None:
            return codes.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return codes.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return codes.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def create(
        self,
        size: int,
        make: Callable[[], SessionPartitions],
        *,
        slots: int,
        by_id: bool,
        privileged: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """A new session of `size` partitions, which `make` makes; None if all slots are taken and it may evict no session.

        `slots`: those of the whole broker, of which this shard has its share. `privileged`: True if a follower's.
        """
        own_slots = slots // self._shards + (self._shard < slots % self._shards)
        if len(self._sessions) >= own_slots and not self._evict(size, privileged, now_ms):
            return None
        session = FetchSession(self._new_id(), make(), by_id=by_id, privileged=privileged, now_ms=now_ms)
        self._sessions[session.id] = session
        self.partitions += session.size
        return session

    def touch(self, session: FetchSession, *, now_ms: int) -> None:
        """Call it after a request has used a session: the request may have changed the session's size."""
        self._sessions[session.id] = self._sessions.pop(session.id)
        session.used_ms = now_ms
        self.partitions += len(session.partitions) - session.size
        session.size = len(session.partitions)

    def remove(self, session_id: int) -> None:
        """Removes a session; does nothing if there is none with this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= session.size

    def clear(self) -> None:
        self._sessions.clear()
        self.partitions = 0

    def _new_id(self) -> int:
        """A session id that no other shard of the broker gives out."""
        while (session_id := self._first_id + secrets.randbelow(self._ids)) in self._sessions:
            pass
        return session_id

    def _evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Evicts one session for a new one of `size` partitions. Returns False if it may evict none.

        The first choice is the session used longest ago, if it is stale. The second is the evictable session of the least worth,
        if the new session is worth more. A follower's session is worth more than a consumer's, then more partitions are.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms <= EVICTION_MS:
            evictable = [each for each in self._sessions.values() if _is_evictable(each, privileged)]
            if not evictable:
                return False
            oldest = min(evictable, key=_worth)
            if (privileged, size, 0) < _worth(oldest):
                return False
        self.remove(oldest.id)
        return True


def _is_evictable(session: FetchSession, by_privileged: bool) -> bool:
    """True if a new session of more worth may evict this one: one that was older than EVICTION_MS at its last use, or, for a
    follower's new session (`by_privileged`), any consumer's."""
    return session.used_ms - session.created_ms > EVICTION_MS or (by_privileged and not session.privileged)


def _worth(session: FetchSession) -> Any:
    return session.privileged, session.size, session.id
