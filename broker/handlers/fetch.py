"""Fetch (1), versions 4-18: KIP-74 (response limit), KIP-98 (isolation levels), KIP-227 (sessions), KIP-320, KIP-516.

Sessions are refused the way a broker with a full cache does: a full fetch is answered with session id 0, so that the
client asks for everything each time. There is one replica, so the high watermark is the log's end. read_committed ends at
the last stable offset, and names the aborted transactions in what it returns. Not emulated: followers, KIP-392's closest
replica, diverging epochs, KIP-951's leader hints.
"""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from broker.log.fetch_in_progress import PartitionFetch
from broker.log.partitions import Answer, Partitions
from broker.log.reading import Reader
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.primitives import from_timedelta
from broker.protocol.requests import FetchPartition, FetchRequest
from broker.protocol.wire import Types
from broker.serve.call import Call, Route
from shards.mesh.deferred import MaybeDeferred, Spawn, then

FETCH = 1
TOPIC_IDS_SINCE = 13
READ_COMMITTED = 1
FULL_EPOCHS = (0, -1)  # of a fetch that names every partition

Topics = dict[tuple[str, UUID | None], dict[int, FetchPartition]]
"""What a request asks for, by topic name or id (the other is "" or None) and partition."""


def routes(partitions: Partitions, spawn: Spawn, room: Callable[[int], int] = lambda most: most) -> list[Route]:
    """`room(most)`: how many bytes of records an answer may have now, of `most`; a first batch comes in any case."""
    reader = Reader(partitions, spawn, room)
    image = partitions.image

    def fetch(request: FetchRequest, call: Call) -> MaybeDeferred[Message]:
        error = _session_error(request)
        if error:
            return call.types.FetchResponse(error_code=error, session_id=0, responses=())
        by_id = call.api_version >= TOPIC_IDS_SINCE
        topics = _distinct(request)
        wanted, committed = [], request.isolation_level == READ_COMMITTED
        for (name, topic_id), asked in topics.items():
            topic = partitions.name_of(topic_id) if by_id else name
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
        max_bytes = min(request.max_bytes, image.get("fetch.max.bytes"))
        if call.most_bytes is not None:
            max_bytes = min(max_bytes, int(call.most_bytes))
        answers = reader.fetch(
            wanted,
            max_bytes=max_bytes,
            min_bytes=min(request.min_bytes, max_bytes),
            wait_ms=from_timedelta(request.max_wait),
            client=f"{call.ip} {call.port}",
        )
        return then(answers, partial(_respond, topics, committed, call))

    return [Route.of(FETCH, fetch)]


def _session_error(request: FetchRequest) -> int:
    session_id = request.session_id
    if session_id:
        return codes.FETCH_SESSION_ID_NOT_FOUND
    return codes.NONE if request.session_epoch in FULL_EPOCHS else codes.INVALID_FETCH_SESSION_EPOCH


def _distinct(request: FetchRequest) -> Topics:
    """Every partition once, however often it is named: as it was named last, where it was named first, as in Kafka."""
    topics: Topics = {}
    for topic in request.topics:
        partitions = topics.setdefault((topic.topic, topic.topic_id), {})
        for partition in topic.partitions:
            partitions[partition.partition] = partition
    return topics


def _respond(topics: Topics, committed: bool, call: Call, answers: Sequence[Answer]) -> Message:
    types = call.types
    answered = iter(answers)
    by_id = call.api_version >= TOPIC_IDS_SINCE
    responses = [
        types.FetchableTopicResponse(
            topic=None if by_id else name,
            topic_id=topic_id if by_id else None,
            partitions=[_partition(types, number, next(answered), committed, by_id) for number in asked],
        )
        for (name, topic_id), asked in topics.items()
    ]
    return types.FetchResponse(error_code=codes.NONE, session_id=0, responses=responses)


def _partition(types: Types, index: int, answer: Answer, committed: bool, by_id: bool) -> Message:
    code, high_watermark, start_offset, batches, last_stable_offset, aborted = answer
    if code == codes.UNKNOWN_TOPIC_OR_PARTITION and by_id:
        code = codes.UNKNOWN_TOPIC_ID
    return types.PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=start_offset,
        aborted_transactions=[types.AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted]
        if committed
        else None,
        records=batches,
        preferred_read_replica=-1,
    )
