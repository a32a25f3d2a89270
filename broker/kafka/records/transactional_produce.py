"""Appends of a transaction: partitions that are new to it are made known to its coordinator first (KIP-890).

A log refuses the first batch of a transaction as UNVERIFIED, and says since which marker it knows of none. Then the
coordinator verifies that the partition was added (up to version 11), or adds it (from 12 on), and the batch is appended with
what the log had said: if a marker came meanwhile, it is refused again. Every other batch is appended at once.

Source: ReplicaManager.handleProduceAppend, AddPartitionsToTxnManager of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.kafka.transactions.verification import TransactionalProducer, Verification
from broker.storage import records
from broker.storage.partitions import Item, PartitionAnswer, Partitions
from broker.storage.producer_state import NOT_ASKED, UNVERIFIED
from broker.wire import codes
from shards.loop.deferred import MaybeDeferred, then

ABORTABLE_SINCE, SECOND_SINCE = 11, 12
_TRY_AGAIN = (codes.COORDINATOR_LOAD_IN_PROGRESS, codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR)


class TransactionalProduce:
    def __init__(self, partitions: Partitions, verification: Verification) -> None:
        self._partitions = partitions
        self._verification = verification

    def append(
        self, transactional_id: str, version: int, items: Sequence[Item]
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        """The answer to each item, as Partitions.ask("append", items) gives it."""

        def appended(answers: list[PartitionAnswer]) -> MaybeDeferred[list[PartitionAnswer]]:
            unverified = [index for index, answer in enumerate(answers) if answer[0] == UNVERIFIED]
            return self._verify(transactional_id, version, items, answers, unverified) if unverified else answers

        return then(self._partitions.ask("append", [(*item, NOT_ASKED) for item in items]), appended)

    def _verify(
        self,
        transactional_id: str,
        version: int,
        items: Sequence[Item],
        answers: list[PartitionAnswer],
        unverified: list[int],
    ) -> MaybeDeferred[list[PartitionAnswer]]:
        batches = [records.header_at(items[index][2], 0) for index in unverified]
        producer_id, epoch = batches[0].producer_id, batches[0].producer_epoch
        if any((batch.producer_id, batch.producer_epoch) != (producer_id, epoch) for batch in batches):
            return _replaced(answers, unverified, [_refused(codes.INVALID_PRODUCER_ID_MAPPING, version)] * len(batches))
        producer = TransactionalProducer(transactional_id, producer_id, epoch, version >= SECOND_SINCE)
        asked = self._verification.partitions(producer, [(items[index][0], items[index][1]) for index in unverified])

        def verified(results: list[int]) -> MaybeDeferred[list[PartitionAnswer]]:
            refused = [_refused(code, version) for code in results]
            again = [index for index, code in zip(unverified, results, strict=True) if not code]
            _replaced(answers, unverified, refused)
            if not again:
                return answers
            appends = self._partitions.ask("append", [(*items[index], before[index][5][0]) for index in again])
            return then(appends, lambda made: _replaced(answers, again, [_again(each) for each in made]))

        before = {index: answers[index] for index in unverified}
        return then(asked, verified)


def _replaced(
    answers: list[PartitionAnswer], indexes: list[int], by: Sequence[PartitionAnswer]
) -> list[PartitionAnswer]:
    for index, answer in zip(indexes, by, strict=True):
        answers[index] = answer
    return answers


def _again(answer: PartitionAnswer) -> PartitionAnswer:
    """A marker came between: the client tries again, and is told whether its transaction is over."""
    return _refused(codes.NOT_COORDINATOR, 0) if answer[0] == UNVERIFIED else answer


def _refused(code: int, version: int) -> PartitionAnswer:
    """The answer to a batch whose transaction's coordinator said `code`, as clients of that version know it."""
    message = "The partition was not added to the transaction."
    if code == codes.PRODUCER_FENCED:
        code = codes.INVALID_PRODUCER_EPOCH
    elif code == codes.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        code = codes.INVALID_TXN_STATE
    elif code in _TRY_AGAIN or (code == codes.CONCURRENT_TRANSACTIONS and version < SECOND_SINCE):
        code = codes.NOT_ENOUGH_REPLICAS  # every client tries again, and asks for no metadata
        message = "The partition could not be verified to be in the transaction."
    return code, -1, -1, -1, message, ()
