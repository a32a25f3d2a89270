"""OffsetForLeaderEpoch (23), versions 2-4: KIP-320. Leaders never change: the one epoch lasts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.kafka.records import guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.partitions import PartitionAnswer, Partitions
from broker.wire.codec import Message
from shards.loop.deferred import MaybeDeferred, then

if TYPE_CHECKING:
    from broker.wire.requests import OffsetForLeaderEpochRequest
    from broker.wire.responses import OffsetForLeaderEpochTypes

OFFSET_FOR_LEADER_EPOCH = 23


def routes(partitions: Partitions) -> list[GuardedRoute]:
    def offset_for_leader_epoch(
        request: OffsetForLeaderEpochRequest, call: Call[OffsetForLeaderEpochTypes]
    ) -> MaybeDeferred[Message]:
        items = [
            (topic.topic, each.partition, each.current_leader_epoch, each.leader_epoch)
            for topic in request.topics
            for each in topic.partitions
        ]
        answers = partitions.ask("end_of_epoch", items)
        return then(answers, partial(_respond, request, call))

    return [GuardedRoute(OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch, guards.offset_for_leader_epoch)]


def _respond(
    request: OffsetForLeaderEpochRequest, call: Call[OffsetForLeaderEpochTypes], answers: Sequence[PartitionAnswer]
) -> Message:
    types = call.types
    answered = iter(answers)

    def partition(index: int) -> OffsetForLeaderEpochTypes.EpochEndOffset:
        code, epoch, end_offset = next(answered)
        return types.EpochEndOffset(partition=index, error_code=code, leader_epoch=epoch, end_offset=end_offset)

    return types.OffsetForLeaderEpochResponse(
        topics=[
            types.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[partition(each.partition) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )
