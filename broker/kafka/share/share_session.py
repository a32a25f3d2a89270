"""Share sessions: which partitions a member fetches, remembered, so that it names only what changes. Pure.

A session is at home with its group, and belongs to the connection that began it. An epoch counts its requests: one that was lost
or is repeated is told by it.

share_sessions_are_bounded  At most `most` sessions of a broker are open: of each shard its part, and one at least.
ended_connections_end_their_session  A connection that ends takes its own session along, and none that its member has begun
    over another one since.

Source: ShareSessionCache, ShareSession, SharePartitionManager.newContext of Kafka 4.1.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from broker.kafka.records.fetch_sessions import INITIAL_EPOCH, next_epoch
from broker.wire import codes


class TopicIdPartition(NamedTuple):
    """A partition; `topic_id` as hex digits, which msgpack carries."""

    topic_id: str
    partition: int


class ShareSession:
    """`epoch`: that of the request that comes next. `owner`: the connection that began it."""

    __slots__ = ("epoch", "group", "member", "owner", "places")

    def __init__(self, group: str, member: str, owner: Sequence[int], places: Iterable[TopicIdPartition]) -> None:
        self.group = group
        self.member = member
        self.owner = tuple(owner)
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.places = dict.fromkeys(places)

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Takes in the partitions that a request adds and takes away."""
        self.places |= dict.fromkeys(added)
        for place in forgotten:
            self.places.pop(place, None)

    def rotated(self) -> list[TopicIdPartition]:
        """The partitions, in an order in which each comes first in its turn."""
        places = [*self.places]
        start = self.epoch % len(places) if places else 0
        return places[start:] + places[:start]


class ShareSessions:
    """The sessions of one shard of `shards`."""

    def __init__(self, shard: int, shards: int) -> None:
        self._shard = shard
        self._shards = shards
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def places(self) -> int:
        return sum(len(session.places) for session in self._sessions.values())

    def __iter__(self) -> Iterator[ShareSession]:
        return iter([*self._sessions.values()])

    def open(
        self, group: str, member: str, owner: Sequence[int], places: Iterable[TopicIdPartition], most: int
    ) -> ShareSession | None:
        """Begun in place of the one that the member has; None: share_sessions_are_bounded."""
        self.close(group, member)
        own_slots = max(most // self._shards + (self._shard < most % self._shards), 1)
        if len(self._sessions) >= own_slots:
            return None
        session = self._sessions[group, member] = ShareSession(group, member, owner, places)
        return session

    def next(self, group: str, member: str, epoch: int) -> ShareSession | int:
        """The session of a request of this epoch, which counts; or the code that answers it."""
        session = self._sessions.get((group, member))
        if session is None:
            return codes.SHARE_SESSION_NOT_FOUND
        if session.epoch != epoch:
            return codes.INVALID_SHARE_SESSION_EPOCH
        session.epoch = next_epoch(epoch)
        return session

    def get(self, group: str, member: str) -> ShareSession | None:
        return self._sessions.get((group, member))

    def close(self, group: str, member: str, owner: Sequence[int] | None = None) -> ShareSession | None:
        """The session that has ended. `owner`: only if it belongs to that connection (ended_connections_end_their_session)."""
        session = self._sessions.get((group, member))
        if session is None or (owner is not None and session.owner != tuple(owner)):
            return None
        return self._sessions.pop((group, member))

    def clear(self) -> None:
        self._sessions.clear()
