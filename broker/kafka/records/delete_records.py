"""DeleteRecords (21), versions 0-2: KIP-107. Moves a partition's start offset up; offset -1 means to the end."""

from collections.abc import Sequence
from functools import partial

from broker.kafka.records import guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.partitions import Answer, Partitions
from broker.wire.codec import Message
from broker.wire.requests import DeleteRecordsRequest
from shards.loop.deferred import MaybeDeferred, then

DELETE_RECORDS = 21


def routes(partitions: Partitions) -> list[GuardedRoute]:
    def delete_records(request: DeleteRecordsRequest, call: Call) -> MaybeDeferred[Message]:
        items = [
            (topic.name, each.partition_index, each.offset) for topic in request.topics for each in topic.partitions
        ]
        answers = partitions.ask("delete_before", items)
        return then(answers, partial(_respond, request, call))

    return [GuardedRoute(DELETE_RECORDS, delete_records, guards.delete_records)]


def _respond(request: DeleteRecordsRequest, call: Call, answers: Sequence[Answer]) -> Message:
    types = call.types
    answered = iter(answers)

    def partition(index: int) -> Message:
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
