"""DescribeShareGroupOffsets (90) 0-1, AlterShareGroupOffsets (91) 0, DeleteShareGroupOffsets (92) 0 (KIP-932, KIP-1226: lag).

Where the partitions of a share group begin for it: what is told, set and forgotten by administrators. Alter and delete are of
groups without members. A lag is told once the first offset is known; Kafka knows it from the first delivery on. While the
feature `share.version` is 0 all are UNSUPPORTED_VERSION.

Source: KafkaApis, GroupCoordinatorService of Kafka 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups.router import GroupRouter
from broker.kafka.groups.share import guards
from broker.kafka.groups.share.api import is_on
from broker.kafka.groups.share.messages import (
    AlteredOffsets,
    AlterShareOffsets,
    DeletedOffsets,
    DeleteShareOffsets,
    DescribedOffsets,
    DescribeShareOffsets,
)
from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

if TYPE_CHECKING:
    from broker.wire.requests import (
        AlterShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )
    from broker.wire.responses import (
        AlterShareGroupOffsetsTypes,
        DeleteShareGroupOffsetsTypes,
        DescribeShareGroupOffsetsTypes,
    )

T = TypeVar("T", AlteredOffsets, DeletedOffsets, DescribedOffsets)

DESCRIBE, ALTER, DELETE = 90, 91, 92
LAG_SINCE = 1
WAIT_S = 10.0
"""The coordinator may have to ask other brokers."""
MESSAGES = {
    codes.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    codes.NON_EMPTY_GROUP: "The group is not empty.",
    codes.GROUP_ID_NOT_FOUND: "The group id does not exist.",
}


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> list[GuardedRoute]:
    handler = _ShareGroupOffsets(cluster, groups, image, turns)
    return [
        GuardedRoute(DESCRIBE, handler.describe, guards.describe_offsets),
        GuardedRoute(ALTER, handler.alter, guards.alter_offsets),
        GuardedRoute(DELETE, handler.delete, guards.delete_offsets),
    ]


class _ShareGroupOffsets:
    def __init__(self, cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage, turns: Turns) -> None:
        self._cluster = cluster
        self._groups = groups
        self._image = image
        self._turns = turns

    def _refusal(self, group: str) -> int:
        """NONE if this broker coordinates the group and may be asked, else the code."""
        if not is_on(self._image):
            return codes.UNSUPPORTED_VERSION
        if not group:
            return codes.INVALID_GROUP_ID
        return codes.NONE if self._cluster.coordinates(group) else codes.NOT_COORDINATOR

    def _ask(
        self, message: AlterShareOffsets | DeleteShareOffsets | DescribeShareOffsets, made: type[T]
    ) -> MaybeDeferred[T]:
        """`made`: the class of the answer; NOT_COORDINATOR and no topics if the group's home went away."""
        answer = then(self._groups.ask(message, timeout_s=WAIT_S), lambda fields: made(*fields))
        return or_lost(answer, lambda: made(codes.NOT_COORDINATOR, []))

    # --- describe ------------------------------------------------------------------------------------------------------

    def describe(
        self, request: DescribeShareGroupOffsetsRequest, call: Call[DescribeShareGroupOffsetsTypes]
    ) -> MaybeDeferred[Message]:
        def ask(group: DescribeShareGroupOffsetsRequestGroup) -> MaybeDeferred[DescribedOffsets]:
            refused = self._refusal(group.group_id)
            if refused:  # Kafka does not expect a group without a name here
                return DescribedOffsets(
                    codes.UNKNOWN_SERVER_ERROR if refused == codes.INVALID_GROUP_ID else refused, []
                )
            asked = None if group.topics is None else [(t.topic_name, list(t.partitions)) for t in group.topics]
            return self._ask(DescribeShareOffsets(group.group_id, asked), DescribedOffsets)

        def response(
            answers: list[DescribedOffsets],
        ) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponse:
            groups = tuple(
                _described(call, group.group_id, answer) for group, answer in zip(request.groups, answers, strict=True)
            )
            return call.types.DescribeShareGroupOffsetsResponse(groups=groups)

        return then(ask_each(self._turns, request.groups, ask), response)

    # --- alter ---------------------------------------------------------------------------------------------------------

    def alter(
        self, request: AlterShareGroupOffsetsRequest, call: Call[AlterShareGroupOffsetsTypes]
    ) -> MaybeDeferred[Message]:
        types = call.types

        def response(answer: AlteredOffsets) -> AlterShareGroupOffsetsTypes.AlterShareGroupOffsetsResponse:
            code, topics = answer
            return types.AlterShareGroupOffsetsResponse(
                error_code=code,
                error_message=MESSAGES.get(code),
                responses=tuple(
                    types.AlterShareGroupOffsetsResponseTopic(
                        topic_name=name,
                        topic_id=_uuid(topic_id),
                        partitions=tuple(
                            types.AlterShareGroupOffsetsResponsePartition(
                                partition_index=number, error_code=each, error_message=MESSAGES.get(each)
                            )
                            for number, each in parts
                        ),
                    )
                    for name, topic_id, parts in topics
                ),
            )

        refused = self._refusal(request.group_id)
        if refused:
            return response(AlteredOffsets(refused, []))
        asked = [(t.topic_name, [(p.partition_index, p.start_offset) for p in t.partitions]) for t in request.topics]
        return then(self._ask(AlterShareOffsets(request.group_id, asked), AlteredOffsets), response)

    # --- delete --------------------------------------------------------------------------------------------------------

    def delete(
        self, request: DeleteShareGroupOffsetsRequest, call: Call[DeleteShareGroupOffsetsTypes]
    ) -> MaybeDeferred[Message]:
        types = call.types

        def response(answer: DeletedOffsets) -> DeleteShareGroupOffsetsTypes.DeleteShareGroupOffsetsResponse:
            code, topics = answer
            return types.DeleteShareGroupOffsetsResponse(
                error_code=code,
                error_message=MESSAGES.get(code),
                responses=tuple(
                    types.DeleteShareGroupOffsetsResponseTopic(
                        topic_name=name,
                        topic_id=_uuid(topic_id),
                        error_code=each,
                        error_message=message or MESSAGES.get(each),
                    )
                    for name, topic_id, each, message in topics
                ),
            )

        refused = self._refusal(request.group_id)
        if refused:
            return response(DeletedOffsets(refused, []))
        names = [topic.topic_name for topic in request.topics]
        return then(self._ask(DeleteShareOffsets(request.group_id, names), DeletedOffsets), response)


def _described(
    call: Call[DescribeShareGroupOffsetsTypes], group: str, answer: DescribedOffsets
) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponseGroup:
    types = call.types
    code, topics = answer

    def partition(
        number: int, start_offset: int, leader_epoch: int, lag: int
    ) -> DescribeShareGroupOffsetsTypes.DescribeShareGroupOffsetsResponsePartition:
        more = {"lag": lag} if call.api_version >= LAG_SINCE else {}
        return types.DescribeShareGroupOffsetsResponsePartition(
            partition_index=number,
            start_offset=start_offset,
            leader_epoch=leader_epoch,
            error_code=codes.NONE,
            error_message=None,
            **more,
        )

    return types.DescribeShareGroupOffsetsResponseGroup(
        group_id=group,
        topics=tuple(
            types.DescribeShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=_uuid(topic_id), partitions=tuple(partition(*each) for each in parts)
            )
            for name, topic_id, parts in topics
        ),
        error_code=code,
        error_message=MESSAGES.get(code),
    )


def _uuid(topic_id: str | None) -> UUID | None:
    return None if topic_id is None else UUID(hex=topic_id)
