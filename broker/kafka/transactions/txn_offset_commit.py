"""TxnOffsetCommit (28), versions 0-5: offsets that are committed with a producer's transaction; KIP-447 (members), KIP-890.

The offsets are checked here against the topics that exist, and are pending at the group's home until the transaction ends
(broker/kafka/groups/pending_offsets.py). From version 5 on the group is added to the transaction by the commit itself.
Source: KafkaApis.handleTxnOffsetCommitRequest, OffsetMetadataManager.commitTransactionalOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.kafka.cluster_metadata import ClusterMetadata
from broker.kafka.groups.messages import CommitOffsetsInTransaction
from broker.kafka.groups.offsets_api import to_commit
from broker.kafka.groups.router import GroupRouter
from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import guards
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import MaybeDeferred, then

if TYPE_CHECKING:
    from broker.wire.requests import TxnOffsetCommitRequest
    from broker.wire.responses import TxnOffsetCommitTypes

TXN_OFFSET_COMMIT = 28
ABORTABLE_SINCE, SECOND_SINCE = 4, 5
WAIT_S = 8.0
"""A commit that adds its group to the transaction asks another shard, which may be coming back."""


def routes(cluster: ClusterMetadata, groups: GroupRouter, image: ClusterImage) -> list[GuardedRoute]:
    def commit(request: TxnOffsetCommitRequest, call: Call[TxnOffsetCommitTypes]) -> MaybeDeferred[Message]:
        results: dict[tuple[str, int], int] = {}
        places = []
        for topic in request.topics:
            for partition in topic.partitions:
                code, place = to_commit(image, topic.name, partition)
                results[topic.name, partition.partition_index] = code
                if not code:
                    places.append(place)

        def response(code: int) -> Message:
            shown = _told(code, call.api_version)
            return _response(request, call, {place: known or shown for place, known in results.items()})

        if not request.group_id:
            return response(codes.INVALID_GROUP_ID)
        if not cluster.coordinates(request.group_id):
            return response(codes.NOT_COORDINATOR)
        if not request.transactional_id:
            return response(codes.INVALID_REQUEST)
        second = call.api_version >= SECOND_SINCE
        message = CommitOffsetsInTransaction(
            group=request.group_id,
            member=request.member_id,
            instance=request.group_instance_id,
            generation=request.generation_id,
            offsets=places,
            producer=(request.transactional_id, request.producer_id, request.producer_epoch, second),
        )
        answer = groups.ask(message, timeout_s=WAIT_S)
        return or_lost(then(answer, response), lambda: response(codes.NOT_COORDINATOR))

    return [GuardedRoute(TXN_OFFSET_COMMIT, commit, guards.txn_offset_commit)]


def _told(code: int, version: int) -> int:
    """The code that a client of that version knows."""
    if code == codes.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return codes.INVALID_TXN_STATE
    if code == codes.PRODUCER_FENCED:
        return codes.INVALID_PRODUCER_EPOCH
    # What another shard could not be asked, and a transaction that is being ended: clients of every version try again.
    waits = code in (codes.NOT_COORDINATOR, codes.CONCURRENT_TRANSACTIONS) and version < SECOND_SINCE
    return codes.COORDINATOR_LOAD_IN_PROGRESS if waits else code


def _response(
    request: TxnOffsetCommitRequest, call: Call[TxnOffsetCommitTypes], results: dict[tuple[str, int], int]
) -> Message:
    types = call.types
    topics = [
        types.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                types.TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=results[topic.name, each.partition_index]
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
        if topic.partitions
    ]
    return types.TxnOffsetCommitResponse(topics=topics)
