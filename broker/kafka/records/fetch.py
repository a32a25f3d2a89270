"""Fetch (1), versions 4-18: KIP-74 (response limit), KIP-98 (isolation levels), KIP-227 (sessions), KIP-320, KIP-516.

Sessions: broker/kafka/records/fetch_sessions.py. One may have as many partitions as a request may have items. There is one replica,
so the high watermark is the log's end. read_committed ends at the last stable offset (broker/storage/partition_log.py, `read`;
log_segments.py has `last_stable_offset`), and names the aborted transactions in what it returns. Not emulated: followers, KIP-392's
closest replica, diverging epochs, KIP-951's leader hints.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from broker.kafka.records import guards
from broker.kafka.records.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    next_epoch,
)
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.delayed_fetch import Reader
from broker.storage.fetch_in_progress import PartitionFetch, shared_out
from broker.storage.partitions import FAILED, PartitionAnswer, Partitions
from broker.storage.records import Rejected
from broker.wire import codes
from broker.wire.codec import Message
from broker.wire.primitives import from_timedelta
from broker.wire.wire import LARGE_ITEMS, encode_large_response
from shards.errors import ClientFault
from shards.loop.deferred import MaybeDeferred, Spawn, then

if TYPE_CHECKING:
    from broker.wire.requests import FetchPartition, FetchRequest
    from broker.wire.responses import FetchTypes

FETCH = 1
TOPIC_IDS_SINCE = 13
READ_COMMITTED = 1

_DENIED = FAILED["read"](Rejected(codes.TOPIC_AUTHORIZATION_FAILED, ""))

FetchTopics: TypeAlias = "dict[tuple[str, UUID | None], dict[int, FetchPartition]]"
"""The partitions that a request asks for, by topic name or id (the other is "" or None) and number."""


def routes(
    partitions: Partitions,
    spawn: Spawn,
    sessions: FetchSessionCache,
    room: Callable[[int], int] = lambda most: most,
    now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
) -> list[GuardedRoute]:
    """`room(most)`: how many bytes of records an answer may have now, of `most`; a first batch comes in any case."""
    return [
        GuardedRoute(FETCH, _Fetch(partitions, Reader(partitions, spawn, room), sessions, now_ms).fetch, guards.fetch)
    ]


class _Fetch:
    def __init__(
        self, partitions: Partitions, reader: Reader, sessions: FetchSessionCache, now_ms: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._image = partitions.image
        self._reader = reader
        self._sessions = sessions
        self._now_ms = now_ms

    def fetch(self, request: FetchRequest, call: Call[FetchTypes]) -> MaybeDeferred[Message]:
        epoch = request.session_epoch
        if epoch != FINAL_EPOCH and epoch != INITIAL_EPOCH:
            return self._fetch_incremental(request, call)
        if request.session_id:
            self._sessions.remove(request.session_id)
        return self._fetch_all(request, call, begins=epoch == INITIAL_EPOCH)

    def _fetch_all(self, request: FetchRequest, call: Call[FetchTypes], *, begins: bool) -> MaybeDeferred[Message]:
        """A fetch that names every partition; `begins` a session, if there is room for one."""
        topics = _distinct(request)
        committed = request.isolation_level == READ_COMMITTED
        wanted = self._wanted(topics, committed, call)
        answers = self._read(request, call, wanted)
        if begins:
            return then(answers, partial(self._respond_and_begin, request, topics, wanted, committed, call))
        return then(answers, partial(self._respond, topics, committed, call))

    def _wanted(self, topics: FetchTopics, committed: bool, call: Call[FetchTypes]) -> list[PartitionFetch]:
        by_id = call.api_version >= TOPIC_IDS_SINCE
        wanted = []
        for (name, topic_id), asked in topics.items():
            topic = self._partitions.name_of(topic_id) if by_id else name
            wanted += [
                PartitionFetch(
                    topic,
                    each.partition,
                    each.current_leader_epoch,
                    each.fetch_offset,
                    each.partition_max_bytes,
                    committed,
                )
                for each in asked.values()
            ]
        return wanted

    def _read(
        self, request: FetchRequest, call: Call[FetchTypes], wanted: Sequence[PartitionFetch]
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        if call.may_read is None:
            return self._ask(request, call, wanted)
        names = {each.topic for each in wanted}
        denied = {name for name in names if name and not call.may_read(name)}  # not topics whose id is unknown
        allowed = [each for each in wanted if each.topic not in denied]

        def with_denied(answers: list[PartitionAnswer]) -> list[PartitionAnswer]:
            answered = iter(answers)
            return [_DENIED if each.topic in denied else next(answered) for each in wanted]

        return then(self._ask(request, call, allowed) if allowed else [], with_denied)

    def _ask(
        self, request: FetchRequest, call: Call[FetchTypes], wanted: Sequence[PartitionFetch]
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        max_bytes = min(request.max_bytes, self._image.get("fetch.max.bytes"))
        if call.most_bytes is not None:
            max_bytes = min(max_bytes, int(call.most_bytes))
        most_bytes = self._image.get("kafka_max_bytes_per_fetch")
        if most_bytes is not None:
            max_bytes = min(max_bytes, most_bytes)
            wanted = shared_out(wanted, max_bytes)
        return self._reader.fetch(
            wanted,
            max_bytes=max_bytes,
            min_bytes=min(request.min_bytes, max_bytes),
            wait_ms=from_timedelta(request.max_wait),
        )

    def _respond(
        self,
        topics: FetchTopics,
        committed: bool,
        call: Call[FetchTypes],
        answers: Sequence[PartitionAnswer],
        session_id: int = NO_SESSION,
    ) -> FetchTypes.FetchResponse:
        types = call.types
        answered = iter(answers)
        by_id = call.api_version >= TOPIC_IDS_SINCE
        responses = []
        for (name, topic_id), asked in topics.items():
            unknown = self._unknown(topic_id, by_id)
            partitions = [_partition(types, number, next(answered), committed, unknown) for number in asked]
            responses.append(_topic(types, topic_id if by_id else name, partitions))
        return types.FetchResponse(error_code=codes.NONE, session_id=session_id, responses=responses)

    def _unknown(self, topic_id: str | UUID | None, by_id: bool) -> int:
        """The error for a partition that is not there: perhaps there is not even the topic."""
        known = isinstance(topic_id, str) or not by_id or self._partitions.name_of(topic_id)
        return codes.UNKNOWN_TOPIC_OR_PARTITION if known else codes.UNKNOWN_TOPIC_ID

    # Sessions

    def _respond_and_begin(
        self,
        request: FetchRequest,
        topics: FetchTopics,
        wanted: Sequence[PartitionFetch],
        committed: bool,
        call: Call[FetchTypes],
        answers: Sequence[PartitionAnswer],
    ) -> Message:
        def told() -> dict[PartitionKey, CachedPartition]:
            keys = _keys(topics, call.api_version >= TOPIC_IDS_SINCE)
            partitions = {key: CachedPartition(key, asked) for key, asked in zip(keys, wanted, strict=True)}
            for partition, answer in zip(partitions.values(), answers, strict=True):
                partition.mark_sent(answer)
            return partitions

        session = self._sessions.create(
            len(wanted),
            told,
            slots=self._image.get("max.incremental.fetch.session.cache.slots"),
            by_id=call.api_version >= TOPIC_IDS_SINCE,
            privileged=max(request.replica_id, request.replica_state.replica_id) >= 0,
            now_ms=self._now_ms(),
        )
        if session is None:
            return self._respond(topics, committed, call, answers)
        call.withhold_by(partial(self._withdrawn, session, call))
        return self._respond(topics, committed, call, answers, session.id)

    def _withdrawn(self, session: FetchSession, call: Call[FetchTypes]) -> FetchTypes.FetchResponse:
        """The answer that tells of the session is withheld, so its client does not know it."""
        self._sessions.remove(session.id)
        return call.types.FetchResponse(error_code=codes.NONE, session_id=NO_SESSION, responses=())

    def _fetch_incremental(self, request: FetchRequest, call: Call[FetchTypes]) -> MaybeDeferred[Message]:
        by_id = call.api_version >= TOPIC_IDS_SINCE
        found = self._sessions.find(request.session_id, request.session_epoch, by_id=by_id)
        if isinstance(found, int):
            return call.types.FetchResponse(error_code=found, session_id=NO_SESSION, responses=())
        session = found
        topics = _distinct(request)
        forgotten = [
            (topic.topic_id if by_id else topic.topic, number)
            for topic in request.forgotten_topics_data
            for number in topic.partitions
        ]
        committed = request.isolation_level == READ_COMMITTED
        session.update(zip(_keys(topics, by_id), self._wanted(topics, committed, call), strict=True), forgotten)
        session.isolate(committed)
        if not session.partitions:
            self._sessions.remove(session.id)
            return self._fetch_all(request, call, begins=False)
        self._sessions.touch(session, now_ms=self._now_ms())
        if session.size > self._image.get("turnstile.request.max.items"):
            self._sessions.remove(session.id)
            raise ClientFault("INVALID_REQUEST", f"a fetch session of {session.size} partitions")
        session.epoch = next_epoch(session.epoch)
        if by_id:
            session.resolve(self._image.version, self._partitions.name_of)
        asked = [*session.partitions.values()]
        answers = self._read(request, call, [each.asked for each in asked])
        return then(answers, partial(self._respond_incrementally, session, session.epoch, asked, committed, call))

    def _respond_incrementally(
        self,
        session: FetchSession,
        epoch: int,
        asked: Sequence[CachedPartition],
        committed: bool,
        call: Call[FetchTypes],
        answers: Sequence[PartitionAnswer],
    ) -> MaybeDeferred[Message]:
        make = partial(call.types.FetchResponse, session_id=session.id)
        if session.epoch != epoch:  # another request of the session has overtaken this one
            overtaken = make(error_code=codes.INVALID_FETCH_SESSION_EPOCH, responses=())
            call.withhold_by(lambda: overtaken)
            return overtaken
        changed = session.mark_sent(asked, answers)

        def withheld() -> Message:
            session.mark_unsent(changed)
            return make(error_code=codes.NONE, responses=())

        call.withhold_by(withheld)
        response = make(
            error_code=codes.NONE, responses=self._topics_told(changed, session.by_id, committed, call.types)
        )
        if len(changed) <= LARGE_ITEMS:
            return response
        return self._partitions.turns.spawn(self._encode_aside(call, response), cancellable=True)

    def _topics_told(
        self, answers: Iterable[tuple[PartitionKey, PartitionAnswer]], by_id: bool, committed: bool, types: FetchTypes
    ) -> list[FetchTypes.FetchableTopicResponse]:
        """The answers by topic, in the order of the session; neighbours of one topic are together."""
        topics = []
        for topic, each in itertools.groupby(answers, key=lambda one: one[0][0]):
            unknown = self._unknown(topic, by_id)
            partitions = [_partition(types, key[1], answer, committed, unknown) for key, answer in each]
            topics.append(_topic(types, topic, partitions))
        return topics

    async def _encode_aside(self, call: Call[FetchTypes], response: Message) -> Message:
        """A small request may be answered with all partitions of its session."""
        call.encoded = await self._partitions.turns.aside(encode_large_response, call, response, call.node_throttle_ms)
        return response


def _keys(topics: FetchTopics, by_id: bool) -> list[PartitionKey]:
    return [(topic_id if by_id else name, number) for (name, topic_id), asked in topics.items() for number in asked]


def _topic(
    types: FetchTypes, topic: str | UUID | None, partitions: list[FetchTypes.PartitionData]
) -> FetchTypes.FetchableTopicResponse:
    return types.FetchableTopicResponse(
        topic=topic if isinstance(topic, str) else None,
        topic_id=topic if isinstance(topic, UUID) else None,
        partitions=partitions,
    )


def _distinct(request: FetchRequest) -> FetchTopics:
    """Every partition once, however often it is named: as it was named last, where it was named first, as in Kafka."""
    topics: FetchTopics = {}
    for topic in request.topics:
        partitions = topics.setdefault((topic.topic, topic.topic_id), {})
        for partition in topic.partitions:
            partitions[partition.partition] = partition
    return topics


def _partition(
    types: FetchTypes, index: int, answer: PartitionAnswer, committed: bool, unknown: int
) -> FetchTypes.PartitionData:
    code, high_watermark, start_offset, batches, last_stable_offset, aborted = answer
    if code:
        high_watermark = last_stable_offset = start_offset = -1
    if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
        return types.PartitionData(
            partition_index=index, error_code=unknown, high_watermark=-1, last_stable_offset=-1, log_start_offset=-1,
            aborted_transactions=(), records=batches, preferred_read_replica=-1,
        )  # fmt: skip
    return types.PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=start_offset,
        aborted_transactions=[types.AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted]
        if committed or code == codes.TOPIC_AUTHORIZATION_FAILED
        else None,
        records=batches,
        preferred_read_replica=-1,
    )
