"""WriteTxnMarkers (27) 1-2: ends a producer's transaction in partitions, as an administrator may where it hangs (KIP-664).

Kafka's brokers send it to each other; here a transaction's coordinator calls the homes (broker/kafka/transactions/markers.py).
It is exempt from quotas, as Kafka's requests between brokers are. Source: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import guards
from broker.kafka.transactions.homes import ClusterHomes
from broker.serve.call import Call
from broker.storage.partitions import Partitions
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.internal_topics import GROUP_METADATA
from shards.loop.deferred import MaybeDeferred, gather, then

if TYPE_CHECKING:
    from broker.wire.requests import WritableTxnMarker, WriteTxnMarkersRequest
    from broker.wire.responses import WriteTxnMarkersTypes

WRITE_TXN_MARKERS = 27


def routes(homes: ClusterHomes, partitions: Partitions) -> list[GuardedRoute]:
    def write_txn_markers(request: WriteTxnMarkersRequest, call: Call[WriteTxnMarkersTypes]) -> MaybeDeferred[Message]:
        def response(answers: list[list[int]]) -> WriteTxnMarkersTypes.WriteTxnMarkersResponse:
            markers = [_result(call.types, *each) for each in zip(request.markers, answers, strict=True)]
            return call.types.WriteTxnMarkersResponse(markers=markers)

        return then(gather([write(marker) for marker in request.markers]), response)

    def write(marker: WritableTxnMarker) -> MaybeDeferred[list[int]]:
        return then(
            gather([end(marker, topic.name, number) for topic in marker.topics for number in topic.partition_indexes]),
            lambda answers: [answer[0] for answer in answers],
        )

    def end(marker: WritableTxnMarker, topic: str, number: int) -> MaybeDeferred[Sequence[int]]:
        producer = (marker.producer_id, marker.producer_epoch, marker.transaction_result)
        if topic == GROUP_METADATA:
            home = homes.of_offsets(number)
            if home is None or home.broker != homes.me.broker:
                return [codes.UNKNOWN_TOPIC_OR_PARTITION]
            return or_lost(homes.call(home, "group.end_transaction", number, *producer), _away)
        fields = (marker.coordinator_epoch, marker.transaction_version)
        answers = partitions.ask("end_transaction", [(topic, number, *producer, *fields)])
        return then(answers, _first)

    return [GuardedRoute(WRITE_TXN_MARKERS, write_txn_markers, guards.write_txn_markers)]


def _away() -> Sequence[int]:
    return [codes.NOT_LEADER_OR_FOLLOWER]


def _first(answers: Sequence[Sequence[int]]) -> Sequence[int]:
    return answers[0]


def _result(
    types: WriteTxnMarkersTypes, marker: WritableTxnMarker, answers: list[int]
) -> WriteTxnMarkersTypes.WritableTxnMarkerResult:
    answered = iter(answers)
    topics = [
        types.WritableTxnMarkerTopicResult(
            name=topic.name,
            partitions=[
                types.WritableTxnMarkerPartitionResult(partition_index=number, error_code=next(answered))
                for number in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]
    return types.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
