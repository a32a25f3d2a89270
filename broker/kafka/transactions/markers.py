"""Has the markers of decided transactions written, by the home of each of their partitions and groups' offsets.

markers_asked_until_written  A marker is asked for until its home has answered that it is written, or there is nothing any
    more that it could end: the partition is gone, or its producer has a later epoch there. So no decided transaction stays
    undecided for a reader longer than a home is away.
done_is_called_once  `done` is called once, when every home has answered.

Markers of one transaction may be written twice, when an answer was lost: the second one ends nothing, since a transaction
of the same producer begins only after `done`. Calls to one home stay in order (shards/mesh/mesh.py, channels_deliver_in_order).

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import trio

from broker.kafka.transactions.homes import ClusterHomes, Shard
from broker.kafka.transactions.transaction_state import TransactionMetadata, TransactionState
from broker.runtime.logger import Logger
from broker.storage.topic_partition import TopicPartition
from broker.wire import codes
from shards.config.internal_topics import GROUP_METADATA
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.loop.deferred import Deferred, Spawn

COORDINATOR_EPOCH = 0
"""A transactional id never moves to another coordinator."""
FIRST_RETRY_S, LAST_RETRY_S = 0.02, 1.0
_WRITTEN = (codes.NONE, codes.INVALID_PRODUCER_EPOCH, codes.TRANSACTION_COORDINATOR_FENCED)

log = Logger()


class Markers:
    """Sends the markers of one shard's transactions."""

    def __init__(self, homes: ClusterHomes, spawn: Spawn) -> None:
        self._homes = homes
        self._spawn = spawn

    def send(self, decided: TransactionMetadata, done: Callable[[TransactionMetadata], None]) -> None:
        """`decided` is PREPARE_COMMIT or PREPARE_ABORT, and written."""
        self._spawn(self._send(decided, done))

    async def _send(self, decided: TransactionMetadata, done: Callable[[TransactionMetadata], None]) -> None:
        waiting, retry_s = set(decided.partitions), FIRST_RETRY_S
        while waiting := waiting - await self._ask(decided, waiting):
            await trio.sleep(retry_s)
            retry_s = min(2 * retry_s, LAST_RETRY_S)
        done(decided)

    async def _ask(self, decided: TransactionMetadata, waiting: set[TopicPartition]) -> set[TopicPartition]:
        """Asks every home once; the partitions that need not be asked about again."""
        commit = decided.state is TransactionState.PREPARE_COMMIT
        ended: set[TopicPartition] = set()
        by_home: dict[Shard, list[TopicPartition]] = {}
        asked: list[tuple[list[TopicPartition], object]] = []
        for topic, partition in waiting:
            of_offsets = topic == GROUP_METADATA
            found = self._homes.of_offsets(partition) if of_offsets else self._homes.of_partition(topic, partition)
            if found is None:
                ended.add((topic, partition))
            elif of_offsets:
                there = (partition, decided.producer_id, decided.producer_epoch, commit)
                asked.append(([(topic, partition)], self._homes.call(found, "group.end_transaction", *there)))
            else:
                by_home.setdefault(found, []).append((topic, partition))
        fields = (decided.producer_id, decided.producer_epoch, commit, COORDINATOR_EPOCH)
        for home, partitions in by_home.items():
            items = [(*each, *fields) for each in partitions]
            asked.append((partitions, self._homes.call(home, "partitions.end_transaction", items)))
        for partitions, answer in asked:
            ended.update(each for each, code in zip(partitions, await _codes(answer), strict=False) if code in _WRITTEN)
        return ended


async def _codes(answer: Any) -> Sequence[int]:
    """One for each partition that was asked about; none if the home is away."""
    try:
        codes_there: Sequence[int] = await answer if isinstance(answer, Deferred) else answer
        return codes_there
    except (PeerLost, DeadlineExceeded):
        return ()
    except RemoteError as fault:
        log.error("a home did not write markers", error=str(fault))
        return ()
