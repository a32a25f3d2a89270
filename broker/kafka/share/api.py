"""ShareFetch (78) 1-2 and ShareAcknowledge (79) 1-2: share groups' records (KIP-932), strict limits (KIP-1206), RENEW (KIP-1222).

The home of the group decides what is acquired (share_partition.py); the shard with the connection reads the records. When the home
has died, its sessions are gone: SHARE_SESSION_NOT_FOUND, and members begin new ones. A quota that withholds an answer's records
gives them back: they do not count as delivered (Kafka keeps them locked until their time is over). While the feature
`share.version` is 0 both are UNSUPPORTED_VERSION.

Not emulated: leaders in the answer to who asks the wrong broker, and the throttling of batches with poison records (4.2).
Source: KafkaApis.handleShareFetchRequest, handleShareAcknowledgeRequest of Kafka 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from broker.kafka.records.fetch_sessions import INITIAL_EPOCH
from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.share import guards
from broker.kafka.share.messages import (
    AcknowledgeShares,
    EndShareSession,
    FetchShares,
    GiveBackAcquired,
)
from broker.kafka.share.share_homes import ShareHomes
from broker.kafka.share.share_requests import PartitionResult, ShareAnswer, ShareFetchLimits, ShareRequest
from broker.kafka.share.share_session import TopicIdPartition
from broker.serve.call import Call
from broker.storage.partitions import Partitions
from broker.storage.record_batches import end_of
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, Spawn, then
from shards.settings.releases import SHARE_VERSION

if TYPE_CHECKING:
    from broker.wire.requests import ShareAcknowledgeRequest, ShareFetchRequest
    from broker.wire.responses import ShareAcknowledgeTypes, ShareFetchTypes

FETCH, ACKNOWLEDGE = 78, 79
LEAST_VERSION = 1
RECORD_LIMIT = 1
"""A value of `share_acquire_mode`."""
ANSWERS_S = 5.0
LOST_S = 0.2
"""The longest wait of a client while a home restarts: it comes again at once."""
NO_LEADER = -1

Results = dict[TopicIdPartition, PartitionResult]


def routes(
    partitions: Partitions,
    homes: ShareHomes,
    image: ClusterImage,
    spawn: Spawn,
    room: Callable[[int], int] = lambda most: most,
) -> list[GuardedRoute]:
    """`room(most)`: how many bytes of records an answer may have now, of `most`; a first batch comes in any case."""
    handler = _ShareFetch(partitions, homes, image, spawn, room)
    return [
        GuardedRoute(FETCH, handler.fetch, guards.share_fetch),
        GuardedRoute(ACKNOWLEDGE, handler.acknowledge, guards.share_acknowledge),
    ]


class _ShareFetch:
    def __init__(
        self,
        partitions: Partitions,
        homes: ShareHomes,
        image: ClusterImage,
        spawn: Spawn,
        room: Callable[[int], int],
    ) -> None:
        self._partitions = partitions
        self._image = image
        self._homes = homes
        self._spawn = spawn
        self._room = room
        self._members: dict[int, set[tuple[str, str]]] = {}  # (group, member) that began sessions, by connection

    def _is_off(self) -> bool:
        return self._image.feature_level(SHARE_VERSION) == 0

    def fetch(self, request: ShareFetchRequest, call: Call[ShareFetchTypes]) -> MaybeDeferred[Message]:
        if self._is_off():
            return self._respond(request, call, ShareAnswer(codes.UNSUPPORTED_VERSION))
        limits = self._limits(request, call)
        asked = self._ask(FetchShares(self._request(request, call), limits), limits.wait_ms)
        return then(asked, partial(self._respond, request, call))

    def acknowledge(
        self, request: ShareAcknowledgeRequest, call: Call[ShareAcknowledgeTypes]
    ) -> MaybeDeferred[Message]:
        if self._is_off():
            return _acknowledged(call, ShareAnswer(codes.UNSUPPORTED_VERSION))
        return then(self._ask(AcknowledgeShares(self._request(request, call))), partial(_acknowledged, call))

    def _ask(self, message: FetchShares | AcknowledgeShares, wait_ms: int = 0) -> MaybeDeferred[ShareAnswer]:
        answer = self._homes.ask(message.request.group, message, timeout_s=wait_ms / 1000 + ANSWERS_S)
        answered = then(or_lost(answer, lambda: None), lambda row: None if row is None else ShareAnswer(*row))
        return then(answered, lambda there: self._spawn(_lost(), cancellable=True) if there is None else there)

    def _request(self, request: ShareFetchRequest | ShareAcknowledgeRequest, call: Call) -> ShareRequest:
        with_acls = bool(self._image.get("authorizer.class.name"))
        owner = (self._homes.me.shard, call.channel.id if call.channel is not None else 0)
        topics = [
            (
                topic.topic_id.hex if topic.topic_id else UUID(int=0).hex,
                partition.partition_index,
                [
                    (each.first_offset, each.last_offset, each.acknowledge_types)
                    for each in partition.acknowledgement_batches
                ],
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        return ShareRequest(
            request.group_id or "",
            request.member_id or "",
            request.share_session_epoch,
            owner,
            topics,
            (call.user, call.ip) if with_acls else ("", ""),
            bool(request.is_renew_ack),
        )

    def _limits(self, request: ShareFetchRequest, call: Call[ShareFetchTypes]) -> ShareFetchLimits:
        max_bytes = min(request.max_bytes, self._image.get("fetch.max.bytes"))
        if call.most_bytes is not None:
            max_bytes = min(max_bytes, int(call.most_bytes))
        if max_bytes > 0:
            max_bytes = max(self._room(max_bytes), 1)
        forgotten = [
            (topic.topic_id.hex, number)
            for topic in request.forgotten_topics_data
            if topic.topic_id
            for number in topic.partitions
        ]
        return ShareFetchLimits(
            max(from_timedelta(request.max_wait), 0),
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == RECORD_LIMIT,
            forgotten,
        )

    # Answering

    def _respond(self, request: ShareFetchRequest, call: Call[ShareFetchTypes], answer: ShareAnswer) -> Message:
        results = answer.results()
        if not answer.code and request.share_session_epoch == INITIAL_EPOCH:
            self._ends_with(call, request)
        records = {place: self._read(place, result) for place, result in results.items()}
        lost = [place for place, result in results.items() if result.acquired and not records[place]]
        if lost:
            self._give_back(request, results, lost)
        if any(records.values()):
            call.withhold_by(lambda: self._withheld(request, call, answer, results))
        return self._response(call, answer, results, records)

    def _read(self, place: TopicIdPartition, result: PartitionResult) -> bytes:
        """The batches in which what was acquired is; nothing unless all of them can be read. A read ends with its segment."""
        if not result.acquired:
            return b""
        topic = self._partitions.name_of(UUID(hex=place.topic_id))
        data, at = b"", result.acquired[0].first
        while len(data) < result.size:
            asked = (topic, place.partition, -1, at, result.size - len(data), False, not data)
            result.code, _, _, found, *_ = self._partitions.do("read", asked)
            if result.code:
                return b""
            if not found:
                break
            data, at = data + found, end_of(found, at)
        return data

    def _withheld(
        self, request: ShareFetchRequest, call: Call[ShareFetchTypes], answer: ShareAnswer, results: Results
    ) -> Message:
        """A quota: nothing is delivered, and what was acknowledged is."""
        self._give_back(request, results, results)
        return self._response(call, answer, results, {})

    def _give_back(self, request: ShareFetchRequest, results: Results, places: Iterable[TopicIdPartition]) -> None:
        rows = [(*place, results[place].acquired) for place in places if results[place].acquired]
        for place in places:
            results[place].acquired = []
        group = request.group_id or ""
        or_lost(self._homes.ask(group, GiveBackAcquired(group, request.member_id or "", rows)), lambda: None)

    def _response(
        self, call: Call[ShareFetchTypes], answer: ShareAnswer, results: Results, records: dict[TopicIdPartition, bytes]
    ) -> ShareFetchTypes.ShareFetchResponse:
        types = call.types
        topics: dict[str, list[ShareFetchTypes.PartitionData]] = {}
        for place, result in results.items():
            acquired = tuple(
                types.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in result.acquired
            )
            partition = types.PartitionData(
                partition_index=place.partition,
                error_code=result.code,
                error_message=result.message,
                acknowledge_error_code=result.ack_code,
                acknowledge_error_message=result.ack_message,
                current_leader=types.LeaderIdAndEpoch(**_leader(result.code)),
                records=records.get(place, b""),
                acquired_records=acquired,
            )
            topics.setdefault(place.topic_id, []).append(partition)
        return types.ShareFetchResponse(
            error_code=answer.code,
            error_message=answer.message,
            acquisition_lock_timeout=answer.lock_ms,
            responses=tuple(
                types.ShareFetchableTopicResponse(topic_id=UUID(hex=topic_id), partitions=tuple(partitions))
                for topic_id, partitions in topics.items()
            ),
            node_endpoints=(),
        )

    def _ends_with(self, call: Call[ShareFetchTypes], request: ShareFetchRequest) -> None:
        """The session ends with the connection that began it."""
        channel = call.channel
        if channel is not None:
            self._members.setdefault(channel.id, set()).add((request.group_id or "", request.member_id or ""))
            channel.call_when_closed(partial(self._closed, channel.id))

    def _closed(self, connection: int) -> None:
        for group, member in self._members.pop(connection, ()):
            owner = self._homes.me.shard, connection
            or_lost(self._homes.ask(group, EndShareSession(group, member, owner)), lambda: None)


async def _lost() -> ShareAnswer:
    await trio.sleep(LOST_S)
    return ShareAnswer(codes.SHARE_SESSION_NOT_FOUND, "The home of the share group is starting.")


def _leader(code: int) -> dict[str, int]:
    """The fields of a LeaderIdAndEpoch."""
    unknown = NO_LEADER if code == codes.NOT_LEADER_OR_FOLLOWER else 0
    return {"leader_id": unknown, "leader_epoch": unknown}


def _acknowledged(
    call: Call[ShareAcknowledgeTypes], answer: ShareAnswer
) -> ShareAcknowledgeTypes.ShareAcknowledgeResponse:
    types = call.types
    topics: dict[str, list[ShareAcknowledgeTypes.PartitionData]] = {}
    for place, result in answer.results().items():
        partition = types.PartitionData(
            partition_index=place.partition,
            error_code=result.code,
            error_message=result.message,
            current_leader=types.LeaderIdAndEpoch(**_leader(result.code)),
        )
        topics.setdefault(place.topic_id, []).append(partition)
    lock = {"acquisition_lock_timeout": answer.lock_ms} if call.api_version >= 2 else {}
    return types.ShareAcknowledgeResponse(
        error_code=answer.code,
        error_message=answer.message,
        responses=tuple(
            types.ShareAcknowledgeTopicResponse(topic_id=UUID(hex=topic_id), partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=(),
        **lock,
    )
