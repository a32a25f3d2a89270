"""DescribeTransactions (65) 0, ListTransactions (66) 0-2, DescribeProducers (61) 0: KIP-664, KIP-994, KIP-1152.

Each broker lists the transactions that it coordinates, and describes the producers of the partitions that it leads.
Source: KafkaApis, TransactionCoordinator.handleDescribeTransactions, TransactionStateManager.listTransactionStates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.kafka.remote import ask_each, or_lost
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.transactions import guards
from broker.kafka.transactions.api import refusal
from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.messages import (
    DescribeTransaction,
    ListTransactions,
    TransactionDescription,
    TransactionListing,
    send,
    send_to,
)
from broker.kafka.transactions.transaction_coordinator import STATE_NAMES
from broker.runtime.partitions_by_topic import by_topic
from broker.serve.call import Call
from broker.storage.partitions import PartitionAnswer, Partitions
from broker.wire import codes
from broker.wire.codec import Message
from shards.loop.deferred import MaybeDeferred, gather, then
from shards.loop.turns import Turns
from shards.settings import patterns

if TYPE_CHECKING:
    from broker.wire.requests import DescribeProducersRequest, DescribeTransactionsRequest, ListTransactionsRequest
    from broker.wire.responses import DescribeProducersTypes, DescribeTransactionsTypes, ListTransactionsTypes

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66


def routes(homes: ClusterHomes, partitions: Partitions, turns: Turns) -> list[GuardedRoute]:
    handler = _Describing(homes, partitions, turns)
    return [
        GuardedRoute(DESCRIBE_PRODUCERS, handler.producers, guards.describe_producers),
        GuardedRoute(DESCRIBE_TRANSACTIONS, handler.describe, guards.describe_transactions),
        GuardedRoute(LIST_TRANSACTIONS, handler.list, guards.list_transactions),
    ]


class _Describing:
    def __init__(self, homes: ClusterHomes, partitions: Partitions, turns: Turns) -> None:
        self._homes = homes
        self._partitions = partitions
        self._turns = turns

    def describe(
        self, request: DescribeTransactionsRequest, call: Call[DescribeTransactionsTypes]
    ) -> MaybeDeferred[Message]:
        wanted = [*dict.fromkeys(request.transactional_ids)]

        def ask(transactional_id: str) -> MaybeDeferred[TransactionDescription]:
            code = refusal(self._homes, transactional_id)
            if code:
                return TransactionDescription(code)
            asked = send(self._homes, DescribeTransaction(transactional_id))
            answer = then(asked, lambda fields: TransactionDescription(*fields))
            return or_lost(answer, lambda: TransactionDescription(codes.COORDINATOR_LOAD_IN_PROGRESS))

        def response(answers: list[TransactionDescription]) -> DescribeTransactionsTypes.DescribeTransactionsResponse:
            states = [_state(call.types, each, answer) for each, answer in zip(wanted, answers, strict=True)]
            return call.types.DescribeTransactionsResponse(transaction_states=states)

        return then(ask_each(self._turns, wanted, ask), response)

    def list(self, request: ListTransactionsRequest, call: Call[ListTransactionsTypes]) -> MaybeDeferred[Message]:
        types = call.types
        pattern = request.transactional_id_pattern or ""
        unknown = [name for name in request.state_filters if name not in STATE_NAMES]
        known = [name for name in request.state_filters if name in STATE_NAMES]
        if not _is_pattern(pattern):
            code = codes.INVALID_REGULAR_EXPRESSION
            return types.ListTransactionsResponse(error_code=code, unknown_state_filters=(), transaction_states=())

        def response(
            answers: list[list[TransactionListing] | None],
        ) -> ListTransactionsTypes.ListTransactionsResponse:
            # While a shard is coming back its transactions are not known: the client is to ask again.
            code = codes.COORDINATOR_LOAD_IN_PROGRESS if None in answers else codes.NONE
            states = [
                types.TransactionState(
                    transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state
                )
                for answer in answers
                for each in answer or ()
            ]
            return types.ListTransactionsResponse(
                error_code=code, unknown_state_filters=unknown, transaction_states=() if code else states
            )

        if unknown and not known:
            return response([])
        message = ListTransactions(known, request.producer_id_filters, request.duration_filter, pattern)

        def ask(shard: int) -> MaybeDeferred[list[TransactionListing] | None]:
            asked = send_to(self._homes, Shard(self._homes.me.broker, shard), message)
            return or_lost(then(asked, lambda rows: [TransactionListing(*row) for row in rows]), lambda: None)

        return then(gather([ask(shard) for shard in range(self._homes.shards)]), response)

    def producers(
        self, request: DescribeProducersRequest, call: Call[DescribeProducersTypes]
    ) -> MaybeDeferred[Message]:
        types = call.types
        places = [(topic.name, number) for topic in request.topics for number in topic.partition_indexes]

        def response(answers: list[PartitionAnswer]) -> DescribeProducersTypes.DescribeProducersResponse:
            answered = iter(answers)
            topics = [
                types.TopicResponse(
                    name=topic.name,
                    partitions=[_producers(types, number, next(answered)) for number in topic.partition_indexes],
                )
                for topic in request.topics
            ]
            return types.DescribeProducersResponse(topics=topics)

        return then(self._partitions.ask("producers", places), response)


def _is_pattern(pattern: str) -> bool:
    try:
        patterns.whole(pattern)
    except patterns.BadPattern:
        return False
    return True


def _state(
    types: DescribeTransactionsTypes, transactional_id: str, described: TransactionDescription
) -> DescribeTransactionsTypes.TransactionState:
    return types.TransactionState(
        error_code=described.code,
        transactional_id=transactional_id,
        transaction_state=described.state,
        transaction_timeout=described.timeout_ms,
        transaction_start_time=described.start_ms,
        producer_id=described.producer_id,
        producer_epoch=described.epoch,
        topics=[
            types.TopicData(topic=name, partitions=numbers) for name, numbers in by_topic(described.places).items()
        ],
    )


def _producers(
    types: DescribeProducersTypes, index: int, answer: Sequence[Any]
) -> DescribeProducersTypes.PartitionResponse:
    code, message, producers = answer
    return types.PartitionResponse(
        partition_index=index,
        error_code=code,
        error_message=message or None,
        active_producers=[
            types.ProducerState(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=last_sequence,
                last_timestamp=last_timestamp,
                coordinator_epoch=coordinator_epoch,
                current_txn_start_offset=start_offset,
            )
            for producer_id, epoch, last_sequence, last_timestamp, coordinator_epoch, start_offset in producers
        ],
    )
