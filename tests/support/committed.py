"""What a consumer at read_committed makes of a log: the records of committed transactions and of none."""

from batches import values_of

from broker.storage import control_records, records
from broker.storage.partition_log import PartitionLog
from broker.storage.records import header_at

ALL = 1 << 30


def committed(log: PartitionLog) -> list[bytes]:
    """What a consumer at read_committed makes of the whole log, reading as Kafka's Java consumer does."""
    found, offset = [], log.start_offset
    while data := log.read(offset, ALL, True, committed=True):
        aborted = sorted(log.aborted_in(data, offset), key=lambda each: each[1])
        dropping: set[int] = set()
        at = 0
        while at < len(data):
            head = header_at(data, at)
            while aborted and aborted[0][1] <= head.last_offset:
                dropping.add(aborted.pop(0)[0])
            if head.attributes & records.CONTROL:
                if not control_records.marker_of(data, at).commit:
                    dropping.discard(head.producer_id)
            elif not (head.attributes & records.TRANSACTIONAL and head.producer_id in dropping):
                found += values_of(data[at : at + head.size])
            at += head.size
            offset = head.last_offset + 1
    return found
