"""The partitions of one broker: every shard answers for all of them, from their files (broker/storage/shared_log.py).

A request with many partitions is answered MOST_AT_ONCE at a time, in turns with other work (shards/loop/turns.py).

operations_answer_a_code  An operation answers with a Kafka error code first, and never raises.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any
from uuid import UUID

from broker.runtime.logger import Logger
from broker.storage.append_notices import APPENDED, PartitionCalls
from broker.storage.control_records import EndTransactionMarker
from broker.storage.log_manager import LogManager
from broker.storage.log_segments import OutOfRange
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.records import Rejected
from broker.storage.topic_partition import TopicPartition
from broker.wire import codes
from shards.config.internal_topics import INTERNAL_TOPICS
from shards.loop.deferred import MaybeDeferred, then
from shards.loop.turns import Turns

log = Logger()

MOST_AT_ONCE = 500
OUT_OF_RANGE = Rejected(codes.OFFSET_OUT_OF_RANGE, "The offset is not within the range of the log.")

Item = Sequence[Any]  # topic, partition, and what the operation asks for besides
PartitionAnswer = Sequence[Any]  # an error code, and what the operation answers besides


BringUp = Callable[[Sequence[TopicPartition]], MaybeDeferred[Collection[TopicPartition]]]
"""Brings the logs of internal partitions up to date. Returns the partitions for which that failed; their answer is LATE."""
LATE = Rejected(
    codes.NOT_LEADER_OR_FOLLOWER, "The coordinator that writes the records of this partition does not answer now."
)


FAILED: dict[str, Callable[[Rejected], PartitionAnswer]] = {
    "append": lambda why: (why.code, -1, -1, -1, why.message, why.records),
    "read": lambda why: (why.code, -1, -1, b"", -1, ()),
    "offset_at": lambda why: (why.code, -1, -1),
    "delete_before": lambda why: (why.code, -1),
    "end_of_epoch": lambda why: (why.code, -1, -1),
    "end_transaction": lambda why: (why.code,),
    "producers": lambda why: (why.code, why.message, ()),
}
"""Operation -> the answer of a partition for which it failed, made of the reason."""


class Partitions:
    """All partitions of one broker, as one of its shards serves them. `logs`: this shard's views of their logs.

    `bring_up` brings logs of internal topics up to date (broker/kafka/records/internal_records.py). When a log grows for which
    this shard waits, the shard that appended sends a notice (append_notices.py).
    """

    def __init__(
        self,
        logs: LogManager,
        mesh: PartitionCalls,
        turns: Turns,
        *,
        bring_up: BringUp = lambda places: (),
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.log = logs.log
        self._logs = logs
        self.image = logs.image
        self._space = logs.space
        self.mesh = mesh
        self.turns = turns
        self._now_ms = now_ms
        self._operations: dict[str, Callable[..., PartitionAnswer]] = {
            "append": self._append,
            "read": self._read,
            "offset_at": self._offset_at,
            "delete_before": self._delete_before,
            "end_of_epoch": self._end_of_epoch,
            "end_transaction": self._end_transaction,
            "producers": self._producers,
        }
        self.bring_up = bring_up
        mesh.serve(APPENDED, self._appended)

    def name_of(self, topic_id: UUID | None) -> str:
        """The name of the topic with an id; "" if there is no such topic."""
        found = topic_id and self.image.topics.by_id(topic_id)
        return found.name if found else ""

    # Asking

    def ask_current(self, operation: str, items: Sequence[Item]) -> MaybeDeferred[list[PartitionAnswer]]:
        """As `ask`, but the logs of internal topics among the items are first brought up to date with the commits made by now."""
        internal = [(item[0], item[1]) for item in items if item[0] in INTERNAL_TOPICS]
        if not internal:
            return self.ask(operation, items)

        def answers(late: Collection[TopicPartition]) -> MaybeDeferred[list[PartitionAnswer]]:
            current = [item for item in items if (item[0], item[1]) not in late]
            return then(self.ask(operation, current), lambda read: with_late(operation, items, late, read))

        return then(self.bring_up(internal), answers)

    def ask(self, operation: str, items: Sequence[Item]) -> MaybeDeferred[list[PartitionAnswer]]:
        """The answers to the items, in their order: at once for up to MOST_AT_ONCE items, for more as a Deferred."""
        if len(items) > MOST_AT_ONCE:
            return self.turns.spawn(self._ask_in_turns(operation, items))
        return [self.do(operation, item) for item in items]

    async def _ask_in_turns(self, operation: str, items: Sequence[Item]) -> list[PartitionAnswer]:
        answers: list[PartitionAnswer] = []
        for first in range(0, len(items), MOST_AT_ONCE):
            async with self.turns.turn():
                answers += [self.do(operation, item) for item in items[first : first + MOST_AT_ONCE]]
        return answers

    def _appended(self, _peer: int, topic: str, partition: int) -> None:
        log = self._logs.viewed(topic, partition)
        if log is not None:
            with contextlib.suppress(Rejected, OSError):  # then the Fetch that waits ends after its max_wait_ms
                log.appended_elsewhere()

    # Answering

    def do(self, operation: str, item: Item) -> PartitionAnswer:
        """Runs an operation on a partition."""
        try:
            return self._operations[operation](*item)
        except Rejected as why:
            return FAILED[operation](why)
        except OutOfRange:
            return FAILED[operation](OUT_OF_RANGE)
        except (OSError, MemoryError) as fault:
            cause = fault.strerror if isinstance(fault, OSError) else "there is not enough memory"
            return FAILED[operation](
                Rejected(codes.KAFKA_STORAGE_ERROR, f"The log of the partition can't be used: {cause}.")
            )
        except Exception as fault:
            log.error("a mistake in a partition's log", topic=item[0], partition=item[1], exc_info=fault)
            return FAILED[operation](Rejected(codes.UNKNOWN_SERVER_ERROR, "The broker made a mistake."))

    def _append(
        self, topic: str, partition: int, batch: bytes | None, verified_at: int | None = None
    ) -> PartitionAnswer:
        """(code, base offset, append time in ms or -1, start offset, message, indexes of bad records)

        With the code UNVERIFIED (producer_state.py) the last field is (verified_at,). Pass it to the second try, after the
        transaction coordinator has confirmed that the partition is in the transaction.
        """
        if self._space.full is not None:
            raise self._space.full.with_traceback(None)
        log = self._logs.view(topic, partition)
        if topic in INTERNAL_TOPICS:
            raise Rejected(codes.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}")
        placed = log.append(batch, self._now_ms(), verified_at)
        return codes.NONE, placed.base_offset, placed.append_time_ms, placed.start_offset, "", ()

    def _read(
        self, topic: str, partition: int, epoch: int, offset: int, max_bytes: int, committed: bool, at_least_one: bool,
        in_file: bool = False,
    ) -> PartitionAnswer:  # fmt: skip
        """(code, high watermark, start offset, batches, last stable offset, aborted transactions as (producer id, first
        offset)); see PartitionLog.read."""
        require_epoch(epoch)
        log = self.log(topic, partition)
        try:
            # To find aborted transactions the headers of all batches are read, so the batches have to be in memory.
            in_file = in_file and not (committed and len(log.aborted))
            data = log.read(offset, max_bytes, at_least_one, committed=committed, in_file=in_file)
        except OutOfRange:
            return codes.OFFSET_OUT_OF_RANGE, log.next_offset, log.start_offset, b"", log.last_stable_offset, ()
        aborted = log.aborted_in(bytes(data), offset) if committed and len(log.aborted) else ()
        return codes.NONE, log.next_offset, log.start_offset, data, log.last_stable_offset, aborted

    def _offset_at(
        self, topic: str, partition: int, epoch: int, timestamp: int, committed: bool = False
    ) -> PartitionAnswer:
        """(code, timestamp, offset), -1 and -1 if no record is found. `timestamp`: in ms, or one of ListOffsets' negative ones."""
        require_epoch(epoch)
        log = self.log(topic, partition)
        found: tuple[int, int] | None
        if timestamp == -1:
            found = (log.last_stable_offset if committed else log.next_offset, -1)
        elif timestamp in (-2, -4):  # earliest, and earliest local: the same without tiered storage
            found = (log.start_offset, -1)
        elif timestamp == -3:
            found = log.offset_of_max_timestamp()
        elif timestamp >= 0:
            found = log.offset_since(timestamp)
        else:  # -5 and -6 are of tiered storage, which is not emulated
            found = None
        if found is not None and committed and timestamp not in (-1, -2, -4) and found[0] >= log.last_stable_offset:
            found = None
        return (codes.NONE, -1, -1) if found is None else (codes.NONE, found[1], found[0])

    def _delete_before(self, topic: str, partition: int, offset: int) -> PartitionAnswer:
        """(code, low watermark)"""
        if topic in INTERNAL_TOPICS:
            raise Rejected(codes.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
        log = self.log(topic, partition)
        if "delete" not in self.image.topic_get(topic, "cleanup.policy"):
            raise Rejected(codes.POLICY_VIOLATION, "Records of a topic that is only compacted are not deleted.")
        return codes.NONE, log.delete_before(offset)

    def _end_of_epoch(self, topic: str, partition: int, current_epoch: int, epoch: int) -> PartitionAnswer:
        """(code, leader epoch, end offset); -1 and -1 for an unknown epoch."""
        require_epoch(current_epoch)
        log = self.log(topic, partition)
        return (codes.NONE, epoch, log.next_offset) if epoch == LEADER_EPOCH else (codes.NONE, -1, -1)

    def _end_transaction(
        self, topic: str, partition: int, producer_id: int, epoch: int, *marker_fields: Any
    ) -> PartitionAnswer:
        """(code,); `marker_fields`: of an EndTransactionMarker."""
        marker = EndTransactionMarker(*marker_fields)
        self._logs.view(topic, partition).end_transaction(producer_id, epoch, marker, self._now_ms())
        return (codes.NONE,)

    def _producers(self, topic: str, partition: int) -> PartitionAnswer:
        """(code, message, the fields of a ProducerState for each producer)"""
        return codes.NONE, "", self.log(topic, partition).producers.describe()


def with_late(
    operation: str, items: Sequence[Item], late: Collection[TopicPartition], current: Sequence[PartitionAnswer]
) -> list[PartitionAnswer]:
    """The answers to all items. `current`: the answers to the items that are not late, in their order."""
    answers = iter(current)
    return [FAILED[operation](LATE) if (item[0], item[1]) in late else next(answers) for item in items]


def require_epoch(epoch: int) -> None:
    """Raises Rejected if a client's leader epoch is newer than the broker's, as after a switch to another cluster."""
    if epoch > LEADER_EPOCH:
        raise Rejected(codes.UNKNOWN_LEADER_EPOCH, "The leader epoch in the request is newer than the broker's.")
