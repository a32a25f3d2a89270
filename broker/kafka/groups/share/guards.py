"""Guards of the APIs about the offsets of share groups: GROUP_AUTHORIZATION_FAILED, or TOPIC_AUTHORIZATION_FAILED of those topics
that the client may not touch. Source: KafkaApis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guards import GROUP_DENIED as DENIED
from broker.kafka.security.guards import (
    MESSAGES,
    TOPIC_DENIED,
    after,
    answered,
    by_topic,
    of_group,
    of_group_and_topics,
)
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterShareGroupOffsetsRequestTopic,
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsRequestTopic,
    )
    from broker.wire.responses import AlterShareGroupOffsetsTypes, DescribeShareGroupOffsetsTypes

GROUP = ResourceType.GROUP
TOPIC = ResourceType.TOPIC


def describe_offsets(access: Access, handler: Handler) -> Handler:
    """The guard of DescribeShareGroupOffsets. A request for all topics is answered without those that the client may not
    describe."""

    def handle(request: DescribeShareGroupOffsetsRequest, call: Call[DescribeShareGroupOffsetsTypes]) -> Answer:
        groups, denied = access.split(call, Operation.DESCRIBE, GROUP, request.groups, lambda each: str(each.group_id))
        request.groups = tuple(groups)
        refused = [_undescribed(call.types, each.group_id) for each in denied]
        hidden = {each.group_id: _hide(access, call, each) for each in groups}

        def show(
            response: DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponse,
        ) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponse:
            for group in response.groups:
                if not group.error_code:
                    _show(access, call, group, hidden[group.group_id])
            return answered(response, "groups", refused)

        return after(handler(request, call), show)

    return handle


def _hide(
    access: Access, call: Call, group: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsRequestTopic] | None:
    """Takes the topics out of the request that the client may not describe; None if it asks for all topics."""
    if group.topics is None:
        return None
    allowed, denied = access.split(call, Operation.DESCRIBE, TOPIC, group.topics, lambda each: str(each.topic_name))
    group.topics = tuple(allowed)
    return denied


def _show(
    access: Access,
    call: Call[DescribeShareGroupOffsetsTypes],
    group: DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponseGroup,
    hidden: list[DescribeShareGroupOffsetsRequestTopic] | None,
) -> None:
    if hidden is None:
        may = (each for each in group.topics if access.may(call, Operation.DESCRIBE, TOPIC, each.topic_name))
        group.topics = tuple(may)
    else:
        answered(group, "topics", [_undescribed_topic(call.types, each) for each in hidden])


def _undescribed(
    types: DescribeShareGroupOffsetsTypes, group: str
) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponseGroup:
    return types.DescribeShareGroupOffsetsResponseGroup(
        group_id=group, topics=(), error_code=DENIED, error_message=MESSAGES[DENIED]
    )


def _undescribed_topic(
    types: DescribeShareGroupOffsetsTypes, topic: DescribeShareGroupOffsetsRequestTopic
) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponseTopic:
    partitions = tuple(
        types.DescribeShareGroupOffsetsResponsePartition(
            partition_index=number, start_offset=-1, leader_epoch=0, error_code=TOPIC_DENIED, error_message=MESSAGES[TOPIC_DENIED]
        )
        for number in topic.partitions
    )  # fmt: skip
    return types.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, topic_id=None, partitions=partitions
    )


def _unaltered(
    types: AlterShareGroupOffsetsTypes, topic: AlterShareGroupOffsetsRequestTopic
) -> AlterShareGroupOffsetsTypes.AlterShareGroupOffsetsResponseTopic:
    partitions = tuple(
        types.AlterShareGroupOffsetsResponsePartition(
            partition_index=each.partition_index, error_code=TOPIC_DENIED, error_message=MESSAGES[TOPIC_DENIED]
        )
        for each in topic.partitions
    )
    return types.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, topic_id=None, partitions=partitions)


_NAMES: dict[str, Any] = {
    "answers": "responses",
    "name": "topic_name",
    "error_code": codes.NONE,
    "error_message": None,
}
alter_offsets = of_group_and_topics(
    of_group(
        Operation.READ,
        lambda types, _: types.AlterShareGroupOffsetsResponse(
            error_code=DENIED, error_message=MESSAGES[DENIED], responses=()
        ),
    ),
    by_topic(Operation.READ, _unaltered, alone="AlterShareGroupOffsetsResponse", **_NAMES),
)
delete_offsets = of_group_and_topics(
    of_group(
        Operation.DELETE,
        lambda types, _: types.DeleteShareGroupOffsetsResponse(
            error_code=DENIED, error_message=MESSAGES[DENIED], responses=()
        ),
    ),
    by_topic(
        Operation.READ,
        lambda types, topic: types.DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, topic_id=None, error_code=TOPIC_DENIED, error_message=MESSAGES[TOPIC_DENIED]
        ),
        alone="DeleteShareGroupOffsetsResponse",
        **_NAMES,
    ),
)
