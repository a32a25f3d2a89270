"""Guards of Produce, Fetch and the others that name topics for their records: the handler is asked for those that the client may
touch, the others are answered TOPIC_AUTHORIZATION_FAILED, whether they exist or not. Source: KafkaApis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    MESSAGES,
    TOPIC_DENIED,
    after,
    answered,
    by_topic,
    of_cluster,
    of_partitions,
    whole,
)
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.codec import Message
from shards.errors import ClientFault

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirTopic,
        FetchRequest,
        ProduceRequest,
        TopicProduceData,
    )
    from broker.wire.responses import AlterReplicaLogDirsTypes, ProduceTypes

_IDS_SINCE = {0: 13, 1: 13}

list_offsets = by_topic(
    Operation.DESCRIBE,
    of_partitions("ListOffsetsTopicResponse", "ListOffsetsPartitionResponse", timestamp=-1, offset=-1),
)
offset_for_leader_epoch = by_topic(
    Operation.DESCRIBE,
    of_partitions("OffsetForLeaderTopicResult", "EpochEndOffset", "partition", leader_epoch=-1, end_offset=-1),
    name="topic",
)
delete_records = by_topic(
    Operation.DELETE, of_partitions("DeleteRecordsTopicResult", "DeleteRecordsPartitionResult", low_watermark=-1)
)


def produce(access: Access, handler: Handler) -> Handler:
    def handle(request: ProduceRequest, call: Call[ProduceTypes]) -> Answer:
        if request.transactional_id is not None and not access.may(
            call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
        ):
            code = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return _produced(request, call, [_unproduced(call.types, topic, code) for topic in request.topic_data])
        name_of = partial(_name_of, access, call)
        allowed, denied = access.split(call, Operation.WRITE, ResourceType.TOPIC, request.topic_data, name_of)
        if not denied:
            return handler(request, call)
        refused = [_unproduced(call.types, topic, TOPIC_DENIED) for topic in denied]
        request.topic_data = tuple(allowed)
        if not request.topic_data:
            return _produced(request, call, refused)
        response = handler(request, call)
        if request.acks == 0:
            return after(response, lambda _: _produced(request, call, refused))
        return after(response, lambda made: answered(made, "responses", refused))

    return handle


def _name_of(access: Access, call: Call, topic: TopicProduceData) -> str | None:
    """The name of a topic in a Produce, given by name or by id; None if there is none."""
    by_id = call.api_version >= _IDS_SINCE[call.api_key]
    return (access.name_of(topic.topic_id) if by_id else topic.name) or None


def _produced(
    request: ProduceRequest, call: Call[ProduceTypes], refused: Sequence[ProduceTypes.TopicProduceResponse]
) -> ProduceTypes.ProduceResponse:
    """The answer to a Produce of which nothing is taken."""
    if request.acks == 0 and refused:
        raise ClientFault("PRODUCE_FAILED", f"Produce with acks=0 failed: {MESSAGES[TOPIC_DENIED]}")
    return call.types.ProduceResponse(responses=tuple(refused))


def _unproduced(types: ProduceTypes, topic: TopicProduceData, code: int) -> ProduceTypes.TopicProduceResponse:
    partitions = tuple(
        types.PartitionProduceResponse(
            index=each.index, error_code=code, base_offset=-1, log_append_time=-1, log_start_offset=-1,
            record_errors=(), error_message=MESSAGES[code],
        )
        for each in topic.partition_data
    )  # fmt: skip
    return types.TopicProduceResponse(
        name=getattr(topic, "name", None), topic_id=getattr(topic, "topic_id", None), partition_responses=partitions
    )


def fetch(access: Access, handler: Handler) -> Handler:
    """The partitions of a session are known to the handler alone, so it asks itself."""

    def handle(request: FetchRequest, call: Call) -> Answer:
        call.read_only_if(partial(access.may, call, Operation.READ, ResourceType.TOPIC))
        return handler(request, call)

    return handle


def _alter_log_dirs(types: AlterReplicaLogDirsTypes, request: AlterReplicaLogDirsRequest) -> Message:
    def topic(asked: AlterReplicaLogDirTopic) -> AlterReplicaLogDirsTypes.AlterReplicaLogDirTopicResult:
        one = types.AlterReplicaLogDirPartitionResult
        partitions = tuple(one(partition_index=number, error_code=CLUSTER_DENIED) for number in asked.partitions)
        return types.AlterReplicaLogDirTopicResult(topic_name=asked.name, partitions=partitions)

    return types.AlterReplicaLogDirsResponse(results=tuple(topic(each) for d in request.dirs for each in d.topics))


alter_replica_log_dirs = of_cluster(Operation.ALTER, _alter_log_dirs)
describe_log_dirs = of_cluster(Operation.DESCRIBE, whole("DescribeLogDirsResponse", results=()))
