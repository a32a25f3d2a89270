"""Guards of Metadata and DescribeTopicPartitions. They leave out the topics that the client may not describe, or answer
TOPIC_AUTHORIZATION_FAILED for those that it named, and add the client's authorized operations.

Source: KafkaApis.handleTopicMetadataRequest, AuthHelper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guards import TOPIC_DENIED as DENIED
from broker.kafka.security.guards import after, answered
from broker.serve.call import Answer, Call, Handler
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.config.topic_changes import illegal_name

if TYPE_CHECKING:
    from broker.wire.requests import MetadataRequest
    from broker.wire.responses import DescribeTopicPartitionsTypes, MetadataTypes

TOPIC = ResourceType.TOPIC
_CLUSTER_OPERATIONS = range(8, 11)
"""The versions of Metadata that have cluster_authorized_operations."""


def metadata(access: Access, handler: Handler) -> Handler:
    def handle(request: MetadataRequest, call: Call[MetadataTypes]) -> Answer:
        wants_all = request.topics is None or (not request.topics and call.api_version == 0)
        refused = [] if wants_all else _refuse(access, request, call)
        hides_all = bool(refused) and not request.topics and call.api_version == 0  # no topics would be all of them

        def show(response: MetadataTypes.MetadataResponse) -> MetadataTypes.MetadataResponse:
            if wants_all:
                response.topics = _described(access, call, response.topics)
            elif hides_all:
                response.topics = ()
            if request.include_topic_authorized_operations:
                for topic in response.topics:
                    if topic.name is not None:
                        topic.topic_authorized_operations = access.operations(call, TOPIC, topic.name)
            if request.include_cluster_authorized_operations and call.api_version in _CLUSTER_OPERATIONS:
                response.cluster_authorized_operations = access.cluster_operations(call)
            return answered(response, "topics", refused)

        return after(handler(request, call), show)

    return handle


def _described(
    access: Access, call: Call, topics: Sequence[MetadataTypes.MetadataResponseTopic]
) -> tuple[MetadataTypes.MetadataResponseTopic, ...]:
    return tuple(topic for topic in topics if access.may(call, Operation.DESCRIBE, TOPIC, topic.name or ""))


def _refuse(
    access: Access, request: MetadataRequest, call: Call[MetadataTypes]
) -> list[MetadataTypes.MetadataResponseTopic]:
    """Removes from the request the topics that the client may not describe or not create. Returns the answers for them."""
    refused, kept = [], []
    may_create = access.may_cluster(call, Operation.CREATE)
    creates = request.allow_auto_topic_creation and access.image.get("auto.create.topics.enable")
    by_id = any(topic.topic_id for topic in request.topics or ())
    for topic in request.topics or ():
        name = access.name_of(topic.topic_id) if by_id else topic.name
        if name is None:
            kept.append(topic)
        elif not access.may(call, Operation.DESCRIBE, TOPIC, name):
            refused.append(_unknown(call.types, None if by_id else name, topic.topic_id if by_id else None))
        elif not (name in access.image.topics or may_create or not creates or illegal_name(name)) and not access.may(
            call, Operation.CREATE, TOPIC, name
        ):
            refused.append(_unknown(call.types, name, None, is_internal=name in INTERNAL_TOPICS))
        else:
            kept.append(topic)
    request.topics = tuple(kept)
    return refused


def _unknown(
    types: MetadataTypes, name: str | None, topic_id: UUID | None, *, is_internal: bool = False
) -> MetadataTypes.MetadataResponseTopic:
    return types.MetadataResponseTopic(
        error_code=DENIED, name=name, topic_id=topic_id, is_internal=is_internal, partitions=()
    )


class _Named:
    """A topic of a DescribeTopicPartitions request; made here for each topic when the request asks for all."""

    def __init__(self, name: str) -> None:
        self.name = name


def describe_topic_partitions(access: Access, handler: Handler) -> Handler:
    def handle(request: Any, call: Call[DescribeTopicPartitionsTypes]) -> Answer:
        wants_all = not request.topics
        asked: Any = [_Named(name) for name in access.image.topics.names()] if wants_all else request.topics
        allowed, denied = access.split(call, Operation.DESCRIBE, TOPIC, asked, lambda topic: str(topic.name))
        types = call.types
        refused = [] if wants_all else [
            types.DescribeTopicPartitionsResponseTopic(
                error_code=DENIED, name=topic.name, topic_id=None, is_internal=False, partitions=()
            )
            for topic in denied
        ]  # fmt: skip
        if not allowed:
            return types.DescribeTopicPartitionsResponse(topics=tuple(refused), next_cursor=None)
        request.topics = tuple(allowed)

        def show(
            response: DescribeTopicPartitionsTypes.DescribeTopicPartitionsResponse,
        ) -> DescribeTopicPartitionsTypes.DescribeTopicPartitionsResponse:
            for topic in response.topics:
                topic.topic_authorized_operations = access.operations(call, TOPIC, topic.name or "")
            return answered(response, "topics", refused)

        return after(handler(request, call), show)

    return handle
