"""Produce (0), versions 3-13: KIP-98 (idempotence, transactions), KIP-467 (which record is bad), KIP-516 (topic ids).

A batch is appended by the shard that it came to and stays as it came. acks=0 is not answered, and closes the connection if
something failed, so that the producer asks for metadata again. acks=1 and acks=-1 are one thing: there is one replica.
A batch that begins a transaction in its partition is refused there first (broker/storage/producer_state.py,
transactions_are_verified_first), and appended once the transaction's coordinator knows of it: transactional_produce.py.
Not emulated: KIP-951's hints about the new leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.kafka.records import guards
from broker.kafka.records.transactional_produce import TransactionalProduce
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.partitions import PartitionAnswer, Partitions
from broker.storage.producer_state import UNVERIFIED
from broker.storage.records import ATTRIBUTES_AT, COMPRESSION, ZSTD
from broker.wire import codes
from broker.wire.codec import Message
from shards.errors import ClientFault
from shards.loop.deferred import MaybeDeferred, then

if TYPE_CHECKING:
    from broker.wire.requests import ProduceRequest
    from broker.wire.responses import ProduceTypes

PRODUCE = 0
ZSTD_SINCE, TOPIC_IDS_SINCE = 7, 13


def routes(partitions: Partitions, transactional: TransactionalProduce) -> list[GuardedRoute]:
    def produce(request: ProduceRequest, call: Call[ProduceTypes]) -> MaybeDeferred[Message | None]:
        items = []
        respond = partial(_respond, partitions, request, call)
        for topic in request.topic_data:
            name = partitions.name_of(topic.topic_id) if call.api_version >= TOPIC_IDS_SINCE else topic.name
            items += [(name, partition.index, partition.records) for partition in topic.partition_data]
        refused = _refused(request, call, items)
        if refused is not None:
            return respond([refused] * len(items))
        if request.transactional_id is not None:
            answers = transactional.append(request.transactional_id, call.api_version, items)
        else:
            answers = partitions.ask("append", items)
        return then(answers, respond)

    return [GuardedRoute(PRODUCE, produce, guards.produce)]


def _refused(
    request: ProduceRequest, call: Call[ProduceTypes], items: Sequence[tuple[str, int, bytes | None]]
) -> PartitionAnswer | None:
    """The answer for every partition of a request that can't be served as a whole; None: it can."""
    if request.acks not in (-1, 0, 1):
        return codes.INVALID_REQUIRED_ACKS, -1, -1, -1, "Produce request acks must be -1, 0 or 1.", ()
    if call.api_version < ZSTD_SINCE and any(_is_zstd(records) for _, _, records in items):
        return codes.UNSUPPORTED_COMPRESSION_TYPE, -1, -1, -1, "Produce has zstd since version 7.", ()
    return None


def _is_zstd(records: bytes | None) -> bool:
    return records is not None and len(records) > ATTRIBUTES_AT + 1 and records[ATTRIBUTES_AT + 1] & COMPRESSION == ZSTD


def _respond(
    partitions: Partitions, request: ProduceRequest, call: Call[ProduceTypes], answers: Sequence[PartitionAnswer]
) -> Message | None:
    if request.acks == 0:
        for code, _, _, _, message, _ in answers:
            if code:
                raise ClientFault("PRODUCE_FAILED", f"Produce with acks=0 failed with error {code}: {message}")
        return None
    types = call.types
    answered = iter(answers)
    topics = []
    by_id = call.api_version >= TOPIC_IDS_SINCE
    for topic in request.topic_data:
        if not topic.partition_data:
            continue
        unknown = codes.UNKNOWN_TOPIC_OR_PARTITION
        if by_id and not partitions.name_of(topic.topic_id):
            unknown = codes.UNKNOWN_TOPIC_ID
        made = [_partition(types, partition.index, next(answered), unknown) for partition in topic.partition_data]
        topics.append(
            types.TopicProduceResponse(
                name=None if by_id else topic.name,
                topic_id=topic.topic_id if by_id else None,
                partition_responses=made,
            )
        )
    return types.ProduceResponse(responses=topics)


def _partition(
    types: ProduceTypes, index: int, answer: PartitionAnswer, unknown: int
) -> ProduceTypes.PartitionProduceResponse:
    code, base_offset, append_time_ms, start_offset, message, bad = answer
    if code == UNVERIFIED:  # without a transactional id there is no coordinator to ask
        code, bad = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ()
    if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
        code = unknown
    return types.PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=base_offset,
        log_append_time=append_time_ms,
        log_start_offset=start_offset,
        record_errors=[
            types.BatchIndexAndErrorMessage(batch_index=each, batch_index_error_message=message) for each in bad
        ],
        error_message=message or None,
    )
