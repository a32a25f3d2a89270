"""DeleteRecords (21), versions 0-2: KIP-107. Moves a partition's start offset up; offset -1 means to the end."""

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
    from broker.wire.requests import DeleteRecordsRequest
    from broker.wire.responses import DeleteRecordsTypes

DELETE_RECORDS = 21


def routes(partitions: Partitions) -> list[GuardedRoute]:
    def delete_records(request: DeleteRecordsRequest, call: Call[DeleteRecordsTypes]) -> MaybeDeferred[Message]:
        items = [
            (topic.name, each.partition_index, each.offset) for topic in request.topics for each in topic.partitions
        ]
        answers = partitions.ask("delete_before", items)
        return then(answers, partial(_respond, request, call))

    return [GuardedRoute(DELETE_RECORDS, delete_records, guards.delete_records)]


def _respond(
    request: DeleteRecordsRequest, call: Call[DeleteRecordsTypes], answers: Sequence[PartitionAnswer]
) -> Message:
    types = call.types
    answered = iter(answers)

    def partition(index: int) -> DeleteRecordsTypes.DeleteRecordsPartitionResult:
        code, low_watermark = next(answered)
        return types.DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=code)

    return types.DeleteRecordsResponse(
        topics=[
            types.DeleteRecordsTopicResult(
                name=topic.name, partitions=[partition(each.partition_index) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )
