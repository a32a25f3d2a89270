"""The requests of the shard with a client's connection to a group's home, and its answers: as msgpack carries them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.kafka.share.acknowledgement import AcknowledgementBatch
from broker.kafka.share.share_partition import AcquiredRecords
from broker.kafka.share.share_session import TopicIdPartition


class ShareRequest(NamedTuple):
    """A ShareAcknowledge, or the part that a ShareFetch has in common with it.

    `owner`: the connection, as (shard, number). `topics`: ((topic id, partition, ((first, last, types), ...)), ...).
    `reader`: (user, address) if there are ACLs, else ("", ""). `renews`: RENEW may be among the types.
    """

    group: str
    member: str
    epoch: int
    owner: Sequence[int]
    topics: Sequence[Any]
    reader: Sequence[str]
    renews: bool

    def places(self) -> list[TopicIdPartition]:
        return [TopicIdPartition(*each[:2]) for each in self.topics]

    def acknowledgements(self) -> dict[TopicIdPartition, list[AcknowledgementBatch]]:
        """The acknowledgements, by partition."""
        found = {
            TopicIdPartition(*each[:2]): [AcknowledgementBatch(*batch) for batch in each[2]] for each in self.topics
        }
        return {place: batches for place, batches in found.items() if batches}


class ShareFetchLimits(NamedTuple):
    """`strict`: KIP-1206's record_limit. `forgotten`: ((topic id, partition), ...)."""

    wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool
    forgotten: Sequence[Sequence[Any]]


@dataclass(slots=True, eq=False)
class PartitionResult:
    """The result of one partition: `size` bytes of batches hold the records that were acquired."""

    code: int = 0
    message: str | None = None
    ack_code: int = 0
    ack_message: str | None = None
    acquired: list[AcquiredRecords] = field(default_factory=list)
    size: int = 0

    def packed(self) -> tuple[object, ...]:
        return self.code, self.message, self.ack_code, self.ack_message, self.acquired, self.size

    @classmethod
    def unpacked(cls, row: Sequence[Any]) -> PartitionResult:
        code, message, ack_code, ack_message, acquired, size = row
        return cls(code, message, ack_code, ack_message, [AcquiredRecords(*each) for each in acquired], size)


class ShareAnswer(NamedTuple):
    """`lock_ms`: how long records are locked. `partitions`: ((topic id, partition, a packed PartitionResult), ...)."""

    code: int
    message: str | None = None
    lock_ms: int = 0
    partitions: Sequence[Any] = ()

    def results(self) -> dict[TopicIdPartition, PartitionResult]:
        return {
            TopicIdPartition(topic_id, number): PartitionResult.unpacked(row)
            for topic_id, number, row in self.partitions
        }
