"""Guards of the APIs of producers and transactions: TRANSACTIONAL_ID_AUTHORIZATION_FAILED. Source: KafkaApis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.kafka.security.guards import (
    CLUSTER_DENIED,
    MESSAGES,
    TOPIC_DENIED,
    Guard,
    MakeRefusal,
    after,
    answered,
    by_topic,
    described,
    of_cluster,
    of_group_and_topics,
    of_partitions,
    unless,
)
from broker.serve.call import Answer, Call, Handler
from broker.wire import codes
from broker.wire.codec import Message

if TYPE_CHECKING:
    from broker.wire.requests import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
        DescribeTransactionsRequest,
        InitProducerIdRequest,
        ProducersTopicRequest,
        TxnOffsetCommitRequest,
        WritableTxnMarker,
        WriteTxnMarkersRequest,
    )
    from broker.wire.responses import (
        AddPartitionsToTxnTypes,
        DescribeProducersTypes,
        DescribeTransactionsTypes,
        InitProducerIdTypes,
        TxnOffsetCommitTypes,
        WriteTxnMarkersTypes,
    )

DENIED = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
TRANSACTION = ResourceType.TRANSACTIONAL_ID


def init_producer_id(access: Access, handler: Handler) -> Handler:
    """A transactional id needs WRITE on it. Without one, InitProducerId needs IDEMPOTENT_WRITE on the cluster or WRITE on any
    topic."""

    def handle(request: InitProducerIdRequest, call: Call[InitProducerIdTypes]) -> Answer:
        code = codes.NONE
        if request.transactional_id is not None:
            if not access.may(call, Operation.WRITE, TRANSACTION, request.transactional_id):
                code = DENIED
        elif not access.may_cluster(call, Operation.IDEMPOTENT_WRITE) and not access.may_any(
            call, Operation.WRITE, ResourceType.TOPIC
        ):
            code = codes.CLUSTER_AUTHORIZATION_FAILED
        if not code:
            return handler(request, call)
        return call.types.InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)

    return handle


def of_transaction(refused: MakeRefusal, *, group: bool = False) -> Guard:
    """The guard of an API whose request has one `transactional_id`; `group`: and a `group_id`."""

    def code(access: Access, call: Call, request: Any) -> int:
        if not access.may(call, Operation.WRITE, TRANSACTION, request.transactional_id):
            return DENIED
        if group and not access.may(call, Operation.READ, ResourceType.GROUP, request.group_id):
            return codes.GROUP_AUTHORIZATION_FAILED
        return codes.NONE

    return unless(code, refused)


end_txn = of_transaction(
    lambda types, request, code: types.EndTxnResponse(error_code=code, producer_id=-1, producer_epoch=-1)
)
add_offsets_to_txn = of_transaction(
    lambda types, request, code: types.AddOffsetsToTxnResponse(error_code=code), group=True
)


_COMMITTED = ("TxnOffsetCommitResponseTopic", "TxnOffsetCommitResponsePartition")


def _uncommitted(types: TxnOffsetCommitTypes, request: TxnOffsetCommitRequest, code: int) -> Message:
    made: Any = of_partitions(*_COMMITTED, code=code)
    return types.TxnOffsetCommitResponse(topics=tuple(made(types, topic) for topic in request.topics))


txn_offset_commit = of_group_and_topics(
    of_transaction(_uncommitted, group=True),
    by_topic(Operation.READ, of_partitions(*_COMMITTED), alone="TxnOffsetCommitResponse"),
)


def add_partitions_to_txn(access: Access, handler: Handler) -> Handler:
    """Up to version 3, which clients use: if the client may not write to one of the topics, none is added, as in Kafka. From
    version 4, which brokers use: needs CLUSTER_ACTION."""

    def handle(request: AddPartitionsToTxnRequest, call: Call[AddPartitionsToTxnTypes]) -> Answer:
        if call.api_version >= 4:
            if access.may_cluster(call, Operation.CLUSTER_ACTION):
                return handler(request, call)
            return call.types.AddPartitionsToTxnResponse(
                error_code=codes.CLUSTER_AUTHORIZATION_FAILED, results_by_transaction=()
            )
        topics = request.v3_and_below_topics
        if not access.may(call, Operation.WRITE, TRANSACTION, request.v3_and_below_transactional_id):
            return _unadded(call.types, topics, lambda topic: DENIED)
        _, denied = access.split(call, Operation.WRITE, ResourceType.TOPIC, topics, lambda each: str(each.name))
        if not denied:
            return handler(request, call)
        names = {each.name for each in denied}
        return _unadded(
            call.types,
            topics,
            lambda topic: codes.TOPIC_AUTHORIZATION_FAILED if topic in names else codes.OPERATION_NOT_ATTEMPTED,
        )

    return handle


def _unadded(
    types: AddPartitionsToTxnTypes, topics: Iterable[AddPartitionsToTxnTopic], code: Callable[[str], int]
) -> AddPartitionsToTxnTypes.AddPartitionsToTxnResponse:
    one = types.AddPartitionsToTxnPartitionResult
    results = tuple(
        types.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                one(partition_index=number, partition_error_code=code(topic.name)) for number in topic.partitions
            ),
        )
        for topic in topics
    )
    return types.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _producers(types: DescribeProducersTypes, topic: ProducersTopicRequest) -> DescribeProducersTypes.TopicResponse:
    partitions = tuple(
        types.PartitionResponse(
            partition_index=number, error_code=TOPIC_DENIED, error_message=MESSAGES[TOPIC_DENIED], active_producers=()
        )
        for number in topic.partition_indexes
    )
    return types.TopicResponse(name=topic.name, partitions=partitions)


describe_producers = by_topic(Operation.READ, _producers)


def describe_transactions(access: Access, handler: Handler) -> Handler:
    def handle(request: DescribeTransactionsRequest, call: Call[DescribeTransactionsTypes]) -> Answer:
        allowed, denied = access.split(call, Operation.DESCRIBE, TRANSACTION, request.transactional_ids, str)
        request.transactional_ids = tuple(allowed)
        refused = [
            call.types.TransactionState(
                error_code=DENIED, transactional_id=each, transaction_state="", transaction_timeout=0,
                transaction_start_time=0, producer_id=0, producer_epoch=0, topics=(),
            )
            for each in denied
        ]  # fmt: skip

        def show(
            response: DescribeTransactionsTypes.DescribeTransactionsResponse,
        ) -> DescribeTransactionsTypes.DescribeTransactionsResponse:
            for state in response.transaction_states:
                kept = (t for t in state.topics if access.may(call, Operation.DESCRIBE, ResourceType.TOPIC, t.topic))
                state.topics = tuple(kept)
            return answered(response, "transaction_states", refused)

        return after(handler(request, call), show)

    return handle


def _markers(types: WriteTxnMarkersTypes, request: WriteTxnMarkersRequest) -> Message:
    def refused(marker: WritableTxnMarker) -> WriteTxnMarkersTypes.WritableTxnMarkerResult:
        topics = tuple(
            types.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    types.WritableTxnMarkerPartitionResult(partition_index=n, error_code=CLUSTER_DENIED)
                    for n in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        )
        return types.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)

    return types.WriteTxnMarkersResponse(markers=tuple(map(refused, request.markers)))


list_transactions = described(TRANSACTION, "transaction_states", "transactional_id")
write_txn_markers = of_cluster(Operation.CLUSTER_ACTION, _markers)
