"""The home of share groups: sessions, acknowledgements, and what administrators ask. Fetching is share_fetching.py.

Every operation takes and returns what msgpack carries, so a call from another shard and one from here are the same.

acknowledged_is_on_disk   What is acknowledged is on disk before it is answered.
ended_session_holds_nothing   A session that ends, by the final epoch or with its connection, releases what its member holds.

Membership of the group is not looked at, as in Kafka. Source: SharePartitionManager, KafkaApis.handleShareFetchRequest of 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from broker.kafka.api_error import ApiError
from broker.kafka.groups.share.messages import ShareOffset
from broker.kafka.records.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation
from broker.kafka.share.acknowledgement import AcknowledgementBatch, are_valid
from broker.kafka.share.messages import (
    AcknowledgeShares,
    EndShareSession,
    FetchShares,
    ForgetShares,
    GiveBackAcquired,
    ListSharePlaces,
    ReadShareOffsets,
    SetShareOffsets,
    ShareMessage,
)
from broker.kafka.share.share_fetching import ShareFetching
from broker.kafka.share.share_log import ShareKey
from broker.kafka.share.share_partition import AcquiredRecords
from broker.kafka.share.share_requests import PartitionResult, ShareAnswer, ShareFetchLimits, ShareRequest
from broker.kafka.share.share_session import ShareSession, ShareSessions, TopicIdPartition
from broker.kafka.share.share_store import ShareStore, Unavailable
from broker.storage.partitions import Partitions
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, Spawn

STORAGE_ERROR = ApiError(codes.KAFKA_STORAGE_ERROR, "The state of the share group can't be written.")

Results = dict[TopicIdPartition, PartitionResult]


class SharePartitionManager:
    """The share groups of one shard. `access` says which topics their members may read; None: there is no authorizer."""

    def __init__(
        self,
        store: ShareStore,
        sessions: ShareSessions,
        partitions: Partitions,
        image: ClusterImage,
        spawn: Spawn,
        access: Access | None = None,
    ) -> None:
        self.store = store
        self.sessions = sessions
        self._image = image
        self._partitions = partitions
        self._fetching = ShareFetching(store, partitions, image, spawn)
        self._access = access
        self.operations: dict[type[ShareMessage], Callable[..., object]] = {
            FetchShares: self.fetch,
            AcknowledgeShares: self.acknowledge,
            GiveBackAcquired: self.give_back,
            EndShareSession: self.disconnected,
            ReadShareOffsets: self.offsets,
            ListSharePlaces: self.places,
            SetShareOffsets: self.alter,
            ForgetShares: self.delete,
        }
        """The class of a message -> the function of its fields that answers it."""

    # What clients ask

    def fetch(self, request_row: Sequence[Any], limits_row: Sequence[Any]) -> MaybeDeferred[ShareAnswer]:
        request, limits = ShareRequest(*request_row), ShareFetchLimits(*limits_row)
        acknowledged = request.acknowledgements()
        if request.epoch == INITIAL_EPOCH and acknowledged:
            return ShareAnswer(codes.INVALID_REQUEST, "The first request of a share session acknowledges nothing.")
        if request.renews and (limits.wait_ms or limits.min_bytes or limits.max_bytes or limits.max_records):
            return ShareAnswer(codes.INVALID_REQUEST, "A request that renews locks fetches nothing.")
        session = self._session(request, limits)
        if isinstance(session, int):
            return ShareAnswer(session)
        results: Results = {}
        self._acknowledge(request, acknowledged, results, of_fetch=True)
        if request.epoch == FINAL_EPOCH:
            self._end(session)
        if request.epoch == FINAL_EPOCH or request.renews:
            return self._answer(request, results)
        denied = self._denied(request, session)
        for place in denied:
            results.setdefault(place, PartitionResult()).code = codes.TOPIC_AUTHORIZATION_FAILED
        return self._fetching.fetch(
            session,
            limits,
            results,
            denied,
            lambda made: self._answer(request, made),
            whole=request.epoch == INITIAL_EPOCH,
        )

    def _session(self, request: ShareRequest, limits: ShareFetchLimits) -> ShareSession | int:
        """Begun, gone on with or about to end; or the code that answers the request."""
        if request.epoch == FINAL_EPOCH:
            return self.sessions.get(request.group, request.member) or codes.SHARE_SESSION_NOT_FOUND
        if request.epoch == INITIAL_EPOCH:
            most = self._image.get("group.share.max.share.sessions")
            opened = self.sessions.open(request.group, request.member, request.owner, request.places(), most)
            return opened or codes.SHARE_SESSION_LIMIT_REACHED
        session = self.sessions.next(request.group, request.member, request.epoch)
        if not isinstance(session, int):
            session.update(request.places(), (TopicIdPartition(*each) for each in limits.forgotten))
            if len(session.places) > self._image.get("turnstile.request.max.items"):
                self._end(session)
                return codes.SHARE_SESSION_NOT_FOUND
        return session

    def acknowledge(self, request_row: Sequence[Any]) -> ShareAnswer:
        request = ShareRequest(*request_row)
        if request.epoch == INITIAL_EPOCH:
            return ShareAnswer(codes.INVALID_SHARE_SESSION_EPOCH)
        final = request.epoch == FINAL_EPOCH
        session = self.sessions.get(request.group, request.member) if final else None
        found = session or self.sessions.next(request.group, request.member, request.epoch)
        if isinstance(found, int):
            return ShareAnswer(codes.SHARE_SESSION_NOT_FOUND if final else found)
        results: Results = {}
        named = {
            TopicIdPartition(*each[:2]): [AcknowledgementBatch(*batch) for batch in each[2]] for each in request.topics
        }
        self._acknowledge(request, named, results, of_fetch=False)
        if final:
            self._end(found)
        return self._answer(request, results)

    def _answer(self, request: ShareRequest, results: Results) -> ShareAnswer:
        rows = [(*place, result.packed()) for place, result in results.items()]
        return ShareAnswer(codes.NONE, None, self.store.lock_ms(request.group), rows)

    def _acknowledge(
        self,
        request: ShareRequest,
        named: dict[TopicIdPartition, list[AcknowledgementBatch]],
        results: Results,
        *,
        of_fetch: bool,
    ) -> None:
        for place, batches in named.items():
            code, message = self._acknowledge_one(request, place, batches)
            result = results.setdefault(place, PartitionResult())
            if of_fetch:
                result.ack_code, result.ack_message = code, message
            else:
                result.code, result.message = code, message

    def _acknowledge_one(
        self, request: ShareRequest, place: TopicIdPartition, batches: Sequence[AcknowledgementBatch]
    ) -> ApiError:
        key = ShareKey(request.group, place)
        try:
            topic = self.store.topic_of(key)
        except Unavailable as why:
            return ApiError(why.code, why.message)
        if not are_valid(batches, renews=request.renews):
            return ApiError(codes.INVALID_REQUEST)
        if not self._may_read(request.reader, topic):
            return ApiError(codes.TOPIC_AUTHORIZATION_FAILED)
        partition = self.store.log.get(key)
        if partition is None:
            return ApiError(codes.UNKNOWN_TOPIC_OR_PARTITION)
        lock = self.store.lock(request.group, request.member)
        try:
            refused = self.store.change(key, partition, lambda: partition.acknowledge(batches, lock))
        except OSError:
            return STORAGE_ERROR
        self.store.freed(key)
        return refused

    def _denied(self, request: ShareRequest, session: ShareSession) -> set[TopicIdPartition]:
        """Places of topics that the client may not read."""
        if not any(request.reader):
            return set()
        denied = set()
        for place in session.places:
            topic = self.store.name_of(place)
            if topic is not None and not self._may_read(request.reader, topic):
                denied.add(place)
        return denied

    def _may_read(self, reader: Sequence[str], topic: str) -> bool:
        return self._access is None or self._access.member_may(reader, Operation.READ, topic)

    # What ends

    def give_back(self, group: str, member: str, rows: Sequence[Any]) -> None:
        """`rows`: (topic id, partition, AcquiredRecords) that were acquired by an answer which was withheld."""
        for topic_id, number, acquired in rows:
            key = ShareKey(group, TopicIdPartition(topic_id, number))
            partition = self.store.log.get(key)
            if partition is not None:
                records = [AcquiredRecords(*each) for each in acquired]
                self.store.try_change(key, partition, lambda p=partition, r=records: p.give_back(member, r))  # type: ignore[misc]

    def disconnected(self, group: str, member: str, owner: Sequence[int]) -> None:
        """The connection that began a session has ended."""
        session = self.sessions.close(group, member, owner)
        if session is not None:
            self._end(session)

    def _end(self, session: ShareSession) -> None:
        """Keeps ended_session_holds_nothing. Also what the session does not name any more is released."""
        self.sessions.close(session.group, session.member)
        self._fetching.end(session)
        limit = self.store.delivery_count_limit(session.group)
        for place in self.store.log.of_group(session.group):
            key = ShareKey(session.group, place)
            partition = self.store.log.get(key)
            if partition is not None:
                self.store.try_change(key, partition, lambda p=partition: p.release(session.member, limit))  # type: ignore[misc]

    def peer_gone(self, shard: int) -> None:
        """A shard has died, and its connections with it."""
        for session in self.sessions:
            if session.owner[0] == shard:
                self._end(session)

    # What administrators ask

    def offsets(self, group: str, rows: Sequence[Sequence[Any]]) -> list[ShareOffset]:
        """The offset of each (topic id, partition)."""
        return [self._offset_of(ShareKey(group, TopicIdPartition(*row))) for row in rows]

    def _offset_of(self, key: ShareKey) -> ShareOffset:
        partition = self.store.log.get(key)
        if partition is None:
            return ShareOffset()
        try:
            asked = (self.store.topic_of(key), key.place.partition, -1, -1)
        except Unavailable as why:
            return ShareOffset(why.code)
        code, _, end = self._partitions.do("offset_at", asked)
        lag = max(end - partition.start_offset - partition.completed, 0)
        return ShareOffset(code, partition.start_offset, 0, lag)

    def places(self, group: str) -> list[TopicIdPartition]:
        """The partitions of which the group has a state here."""
        return self.store.log.of_group(group)

    def alter(self, group: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        """A code for each (topic id, partition, start offset)."""
        return [
            self._alter(ShareKey(group, TopicIdPartition(topic_id, number)), offset)
            for topic_id, number, offset in rows
        ]

    def _alter(self, key: ShareKey, offset: int) -> int:
        try:
            self.store.log.begin(key, offset)
        except OSError:
            return codes.KAFKA_STORAGE_ERROR
        self.store.freed(key)
        return codes.NONE

    def delete(self, group: str, topic_ids: Sequence[str] | None) -> int:
        try:
            for topic_id in [None] if topic_ids is None else topic_ids:
                self.store.log.forget(group, topic_id)
        except OSError:
            return codes.KAFKA_STORAGE_ERROR
        return codes.NONE

    def image_changed(self, kinds: Collection[str]) -> None:
        """The image has another version, in which records of `kinds` differ: what is kept of topics that are gone is forgotten."""
        if "topic" not in kinds:
            return
        topics = {key.place.topic_id: key.place for key in self.store.log}
        gone = {topic_id for topic_id, place in topics.items() if self.store.name_of(place) is None}
        for key in self.store.log if gone else ():
            if key.place.topic_id in gone:
                self.delete(key.group, [key.place.topic_id])

    def reset(self) -> None:
        for session in self.sessions:
            self._end(session)
        self.store.reset()
