"""AddPartitionsToTxn (24) 0-5, AddOffsetsToTxn (25) 0-4, EndTxn (26) 0-5: KIP-98, KIP-890.

Clients use AddPartitionsToTxn up to version 3. Kafka's brokers use 4 and 5 among themselves, to verify several transactions in
one request. EndTxn from version 5 on is of the second version of the protocol: it answers with the next
epoch. A home that is not there is COORDINATOR_NOT_AVAILABLE, which clients try again.
Source: KafkaApis.handleAddPartitionsToTxnRequest, handleAddOffsetsToTxnRequest, handleEndTxnRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.kafka.remote import or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import guards
from broker.kafka.transactions.homes import ClusterHomes, offsets_place
from broker.kafka.transactions.messages import AddPartitions, EndTransaction, TransactionMessage, VerifyPartitions, send
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.loop.deferred import MaybeDeferred, gather, then

if TYPE_CHECKING:
    from broker.wire.requests import (
        AddOffsetsToTxnRequest,
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
        EndTxnRequest,
    )
    from broker.wire.responses import AddOffsetsToTxnTypes, AddPartitionsToTxnTypes, EndTxnTypes

ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 24, 25, 26
BATCHED_SINCE = 4
SECOND_SINCE = 5
FENCED_SINCE = 2
"""Earlier versions answer INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED (KIP-588)."""


def routes(homes: ClusterHomes) -> list[GuardedRoute]:
    handler = _Transactions(homes)
    return [
        GuardedRoute(ADD_PARTITIONS, handler.add_partitions, guards.add_partitions_to_txn),
        GuardedRoute(ADD_OFFSETS, handler.add_offsets, guards.add_offsets_to_txn),
        GuardedRoute(END_TXN, handler.end, guards.end_txn),
    ]


def ask_coordinator(homes: ClusterHomes, message: TransactionMessage) -> MaybeDeferred[Any]:
    """The answer of the home of the message's transactional id, None while it is away.

    The id must be one that this broker coordinates.
    """
    return or_lost(send(homes, message), lambda: None)


def refusal(homes: ClusterHomes, transactional_id: str | None) -> int:
    """The error code for an id that is missing or coordinated by another broker; NONE if this broker coordinates it."""
    if not transactional_id:
        return codes.INVALID_REQUEST
    return codes.NONE if homes.coordinates(transactional_id) else codes.NOT_COORDINATOR


class _Transactions:
    def __init__(self, homes: ClusterHomes) -> None:
        self._homes = homes

    # --- partitions ------------------------------------------------------------------------------------------------

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, call: Call[AddPartitionsToTxnTypes]
    ) -> MaybeDeferred[Message]:
        types = call.types
        if call.api_version < BATCHED_SINCE:
            topics = request.v3_and_below_topics
            producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
            answer = self._add(request.v3_and_below_transactional_id, *producer, topics, verify=False)
            return then(
                answer,
                lambda results: types.AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=_by_topic(types, topics, results, call.api_version)
                ),
            )
        answers = [
            self._add(
                each.transactional_id, each.producer_id, each.producer_epoch, each.topics, verify=each.verify_only
            )
            for each in request.transactions
        ]

        def response(results: list[list[int]]) -> AddPartitionsToTxnTypes.AddPartitionsToTxnResponse:
            by_transaction = [
                types.AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=_by_topic(types, each.topics, codes_there, call.api_version),
                )
                for each, codes_there in zip(request.transactions, results, strict=True)
            ]
            return types.AddPartitionsToTxnResponse(error_code=codes.NONE, results_by_transaction=by_transaction)

        return then(gather(answers), response)

    def _add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        topics: Sequence[AddPartitionsToTxnTopic],
        *,
        verify: bool,
    ) -> MaybeDeferred[list[int]]:
        """One code per partition. If one can't be written to, it gets its own code and the others OPERATION_NOT_ATTEMPTED."""
        places = [(topic.name, partition) for topic in topics for partition in topic.partitions]
        code = refusal(self._homes, transactional_id)
        if code:
            return [code] * len(places)
        faults = [self._fault(*each) for each in places]
        if any(faults):
            return [fault or codes.OPERATION_NOT_ATTEMPTED for fault in faults]
        question = VerifyPartitions if verify else AddPartitions
        asked = ask_coordinator(self._homes, question(transactional_id, producer_id, epoch, places))
        return then(asked, partial(_one_each, len(places)))

    def _fault(self, topic: str, partition: int) -> int:
        if topic in INTERNAL_TOPICS:
            return codes.TOPIC_AUTHORIZATION_FAILED
        found = self._homes.of_partition(topic, partition)
        return codes.UNKNOWN_TOPIC_OR_PARTITION if found is None else codes.NONE

    # --- offsets ---------------------------------------------------------------------------------------------------

    def add_offsets(self, request: AddOffsetsToTxnRequest, call: Call[AddOffsetsToTxnTypes]) -> MaybeDeferred[Message]:
        def response(code: int | None) -> AddOffsetsToTxnTypes.AddOffsetsToTxnResponse:
            return call.types.AddOffsetsToTxnResponse(error_code=_told(code, call.api_version))

        code = refusal(self._homes, request.transactional_id)
        if code:
            return response(code)
        message = AddPartitions(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            places=[offsets_place(request.group_id)],
        )
        return then(ask_coordinator(self._homes, message), response)

    # --- the end ---------------------------------------------------------------------------------------------------

    def end(self, request: EndTxnRequest, call: Call[EndTxnTypes]) -> MaybeDeferred[Message]:
        def response(answer: Sequence[int] | None) -> EndTxnTypes.EndTxnResponse:
            code, producer_id, epoch = answer or (None, -1, -1)
            return call.types.EndTxnResponse(
                error_code=_told(code, call.api_version), producer_id=producer_id, producer_epoch=epoch
            )

        code = refusal(self._homes, request.transactional_id)
        if code:
            return response((code, -1, -1))
        second = call.api_version >= SECOND_SINCE
        message = EndTransaction(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            commit=request.committed,
            second=second,
        )
        return then(ask_coordinator(self._homes, message), response)


def _one_each(count: int, answer: int | list[int] | None) -> list[int]:
    if isinstance(answer, list):
        return answer
    return [codes.COORDINATOR_NOT_AVAILABLE if answer is None else answer] * count


def _told(code: int | None, version: int) -> int:
    if code is None:
        return codes.COORDINATOR_NOT_AVAILABLE
    return codes.INVALID_PRODUCER_EPOCH if code == codes.PRODUCER_FENCED and version < FENCED_SINCE else code


def _by_topic(
    types: AddPartitionsToTxnTypes, topics: Sequence[AddPartitionsToTxnTopic], results: list[int], version: int
) -> list[AddPartitionsToTxnTypes.AddPartitionsToTxnTopicResult]:
    codes_there = iter(results)
    return [
        types.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                types.AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=_told(next(codes_there), version)
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
