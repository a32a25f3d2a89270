"""ListOffsets (2), versions 1-11: KIP-79 (by timestamp), KIP-734 (largest timestamp), KIP-405, KIP-1005 and KIP-1023 (tiers).

At read_committed the end is the last stable offset, and a record beyond it is not found (KIP-98).

Special timestamps: -1 the end, -2 the start, -3 the record with the largest timestamp, -4 the start of the local log,
which is the whole log. -5 (the end of the tiered log) and -6 (the start of what is not tiered yet) are accepted, but nothing
is tiered. Lower ones are UNSUPPORTED_VERSION.
A compressed batch is not decompressed: its first record answers for all of its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.kafka.records import guards
from broker.kafka.security.guarded_route import GuardedRoute
from broker.serve.call import Call
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.partitions import PartitionAnswer, Partitions
from broker.wire import codes
from broker.wire.codec import Message
from shards.loop.deferred import MaybeDeferred, then

if TYPE_CHECKING:
    from broker.wire.requests import ListOffsetsRequest
    from broker.wire.responses import ListOffsetsTypes

LIST_OFFSETS = 2
READ_COMMITTED = 1
_LEAST = ((11, -6), (9, -5), (8, -4), (7, -3), (0, -2))
"""(since which version, the least special timestamp): those below are UNSUPPORTED_VERSION."""


def routes(partitions: Partitions) -> list[GuardedRoute]:
    def list_offsets(request: ListOffsetsRequest, call: Call[ListOffsetsTypes]) -> MaybeDeferred[Message]:
        least = next(timestamp for since, timestamp in _LEAST if call.api_version >= since)
        read_committed = request.isolation_level == READ_COMMITTED
        items = [
            (topic.name, each.partition_index, each.current_leader_epoch, each.timestamp, read_committed)
            for topic in request.topics
            for each in topic.partitions
        ]
        if any(each[3] < least for each in items):
            asked = [each for each in items if each[3] >= least]
            answers = then(partitions.ask_current("offset_at", asked), partial(_with_unsupported, items, least))
        else:
            answers = partitions.ask_current("offset_at", items)
        return then(answers, partial(_respond, request, call))

    return [GuardedRoute(LIST_OFFSETS, list_offsets, guards.list_offsets)]


def _with_unsupported(
    items: Sequence[tuple[object, ...]], least: int, answers: Sequence[PartitionAnswer]
) -> list[PartitionAnswer]:
    """The answers to all of `items`, of which only those with a timestamp that the version has were asked for."""
    answered = iter(answers)
    return [next(answered) if each[3] >= least else (codes.UNSUPPORTED_VERSION, -1, -1) for each in items]  # type: ignore[operator]


def _respond(request: ListOffsetsRequest, call: Call[ListOffsetsTypes], answers: Sequence[PartitionAnswer]) -> Message:
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


def _partition(
    types: ListOffsetsTypes, index: int, answer: PartitionAnswer
) -> ListOffsetsTypes.ListOffsetsPartitionResponse:
    code, timestamp, offset = answer
    return types.ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=code,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=-1 if code != codes.NONE or offset < 0 else LEADER_EPOCH,
    )
