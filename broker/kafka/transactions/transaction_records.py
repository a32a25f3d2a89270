"""Records of __transaction_state as Kafka 4.1 writes them at transaction.version 2: TransactionLogKey 0, TransactionLogValue 1.

A key and a value begin with their version (i16); the value is of a flexible version (KIP-482). Source: TransactionLog.
"""

from __future__ import annotations

from struct import pack

from broker.kafka.transactions.transaction_state import NONE, TransactionMetadata, TransactionState
from broker.runtime.partitions_by_topic import by_topic
from broker.wire.primitives import compact_array, compact_string, string, uvarint

_STATES = {state: number for number, state in enumerate(TransactionState)}
"""TransactionState.id."""
_PREVIOUS_ID, _NEXT_ID, _CLIENT_VERSION = range(3)
_SECOND = 2
_NONE = _NO_TAGS = b"\0"


def key_of(transactional_id: str) -> bytes:
    return pack(">h", 0) + string(transactional_id)


def value_of(m: TransactionMetadata) -> bytes:
    head = pack(">hqhib", 1, m.producer_id, m.producer_epoch, m.timeout_ms, _STATES[m.state])
    partitions = _NONE
    if m.state is not TransactionState.EMPTY:
        partitions = compact_array([
            compact_string(topic) + compact_array([pack(">i", number) for number in numbers]) + _NO_TAGS
            for topic, numbers in by_topic(sorted(m.partitions)).items()
        ])  # fmt: skip
    return head + partitions + pack(">qq", m.update_ms, m.start_ms) + _tagged(m)


def _tagged(m: TransactionMetadata) -> bytes:
    fields = []
    if m.previous_producer_id != NONE:
        fields.append((_PREVIOUS_ID, pack(">q", m.previous_producer_id)))
    if m.next_producer_id != NONE:
        fields.append((_NEXT_ID, pack(">q", m.next_producer_id)))
    if m.second:
        fields.append((_CLIENT_VERSION, pack(">h", _SECOND)))
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in fields)
