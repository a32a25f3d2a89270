"""ListOffsets (2), versions 1-10: KIP-79 (by timestamp), KIP-734 (largest timestamp), KIP-405 and KIP-1005 (tiers).

At read_committed the end is the last stable offset, and a record behind it is not found (KIP-98).

Special timestamps: -1 the end, -2 the start, -3 the record with the largest timestamp, -4 the start of the local log,
which is the whole log, -5 the end of the tiered log, which is empty. A compressed batch is not decompressed: its first
record answers for all of its records.
"""

from collections.abc import Sequence
from functools import partial

from broker.log.partition_log import LEADER_EPOCH
from broker.log.partitions import Answer, Partitions
from broker.protocol import codes
from broker.protocol.codec import Message
from broker.protocol.requests import ListOffsetsRequest
from broker.protocol.wire import Types
from broker.serve.call import Call, Route
from shards.mesh.deferred import MaybeDeferred, then

LIST_OFFSETS = 2
READ_COMMITTED = 1


def routes(partitions: Partitions) -> list[Route]:
    def list_offsets(request: ListOffsetsRequest, call: Call) -> MaybeDeferred[Message]:
        committed = request.isolation_level == READ_COMMITTED
        items = [
            (topic.name, each.partition_index, each.current_leader_epoch, each.timestamp, committed)
            for topic in request.topics
            for each in topic.partitions
        ]
        answers = partitions.ask("offset_at", items)
        return then(answers, partial(_respond, request, call))

    return [Route.of(LIST_OFFSETS, list_offsets)]


def _respond(request: ListOffsetsRequest, call: Call, answers: Sequence[Answer]) -> Message:
    types = call.types
    answered = iter(answers)
    return types.ListOffsetsResponse(
        topics=[
            types.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_partition(types, each.partition_index, next(answered)) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _partition(types: Types, index: int, answer: Answer) -> Message:
    code, timestamp, offset = answer
    return types.ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=-1 if code != codes.NONE or offset < 0 else LEADER_EPOCH,
    )
