"""Asks the coordinator of a transaction whether a partition belongs to it, or adds the partition to it (KIP-890).

With the first version of the protocol the producer has added the partition before, and this verifies it; with the second
one the first record adds it. While the markers of the transaction before are being written the second version waits a little,
as its producer has not asked for anything that could be refused.

Source: AddPartitionsToTxnManager, ReplicaManager.maybeSendPartitionsToTransactionCoordinator of Kafka 4.1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import trio

from broker.kafka.transactions.homes import ClusterHomes, offsets_place
from broker.kafka.transactions.messages import AddPartitions, VerifyPartitions, send
from broker.storage.topic_partition import TopicPartition
from broker.wire import codes
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred, MaybeDeferred, Spawn, then

RETRY_S = 0.01
MOST_RETRIES = 10
"""Kafka: add.partitions.to.txn.retry.backoff.ms (20) and .max.ms (100)."""
_LOST = (PeerLost, DeadlineExceeded, RemoteError)


class TransactionalProducer(NamedTuple):
    """The producer that says that a record or an offset belongs to its transaction; `second`: by the second version of the
    protocol."""

    transactional_id: str
    producer_id: int
    epoch: int
    second: bool


class Verification:
    """Verifies transactions for the partitions and groups at home in one shard."""

    def __init__(self, homes: ClusterHomes, spawn: Spawn) -> None:
        self._homes = homes
        self._spawn = spawn

    def group(self, producer: TransactionalProducer, group: str) -> MaybeDeferred[int]:
        """A code: whether offsets of the group belong to the transaction."""
        return then(self.partitions(producer, [offsets_place(group)]), lambda answers: answers[0])

    def partitions(self, producer: TransactionalProducer, places: Sequence[TopicPartition]) -> MaybeDeferred[list[int]]:
        """A code for each; NOT_COORDINATOR while the coordinator is away."""
        asked = self._ask(producer, places)
        if not producer.second:
            return asked
        return then(asked, lambda answers: self._perhaps_again(producer, places, answers))

    def _perhaps_again(
        self, producer: TransactionalProducer, places: Sequence[TopicPartition], answers: list[int]
    ) -> MaybeDeferred[list[int]]:
        if answers[0] != codes.CONCURRENT_TRANSACTIONS:
            return answers
        return self._spawn(self._ask_again(producer, places), cancellable=True)

    async def _ask_again(self, producer: TransactionalProducer, places: Sequence[TopicPartition]) -> list[int]:
        for _ in range(MOST_RETRIES):
            await trio.sleep(RETRY_S)
            asked = self._ask(producer, places)
            answers = await asked if isinstance(asked, Deferred) else asked
            if answers[0] != codes.CONCURRENT_TRANSACTIONS:
                break
        return answers

    def _ask(self, producer: TransactionalProducer, places: Sequence[TopicPartition]) -> MaybeDeferred[list[int]]:
        fields = (producer.transactional_id, producer.producer_id, producer.epoch, places)
        asked: MaybeDeferred[list[int]]
        if producer.second:
            added = send(self._homes, AddPartitions(*fields))
            asked = then(added, lambda code: [code] * len(places))
        else:
            asked = send(self._homes, VerifyPartitions(*fields))
        return (
            asked.recover(_LOST, lambda: [codes.NOT_COORDINATOR] * len(places))
            if isinstance(asked, Deferred)
            else asked
        )
