"""A quota of bytes that is smaller than what clients move in one request: what then happens looks like a defect, and is Kafka's.

A batch of records is fetched whole or not at all. One that is larger than what passes at once (`bursts.py`) is over the quota
however long its consumer has waited, so it is never delivered. A Produce is taken whole in any case, and its connection is then
muted until its rate is back at the quota: that can be many minutes, beyond the time that a client waits for an answer. A
shorter mute is a throttle as every other, and needs no note.

Source: ClientQuotaManager.recordAndGetThrottleTimeMs, QuotaUtils.boundedThrottleTime; seen on Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shards.limits.bursts import burst_of
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.quota_entities import Entity

CONSUMER, PRODUCER = "consumer_byte_rate", "producer_byte_rate"
REQUEST_TIMEOUT_S = 30.0
"""The default time for which a producer waits for an answer (request.timeout.ms, of Java and of librdkafka)."""


def byte_rate_note(name: str, per_s: float, limits: ConnectionLimits, largest_batch: int) -> str:
    """One sentence where the largest batch that the broker takes (`message.max.bytes`) is never delivered or times out, else ""."""
    if name not in (CONSUMER, PRODUCER) or per_s <= 0:
        return ""
    at_once = burst_of(name, per_s, limits)
    if largest_batch <= at_once.amount:
        return ""
    if name == CONSUMER:
        return (
            f"as in Kafka, a batch of more than {at_once.amount:,.0f} bytes is never delivered under {name}={per_s:,.0f}, "
            f"and producers make batches of up to {largest_batch:,} (message.max.bytes); "
            f"{largest_batch / at_once.seconds:,.0f} lets each pass."
        )
    muted_s = largest_batch / per_s - at_once.seconds
    if muted_s < REQUEST_TIMEOUT_S:
        return ""
    return (
        f"as in Kafka, one Produce of {largest_batch:,} bytes (message.max.bytes) is taken whole, and then mutes its "
        f"connection for {muted_s:,.0f} s under {name}={per_s:,.0f}; clients take that for a timeout."
    )


def byte_rate_notes(
    limits: ConnectionLimits, quotas: Iterable[tuple[Entity, Mapping[str, float]]], largest_batch: int
) -> list[str]:
    """A note for each quota of bytes that is smaller than a batch may be."""
    notes = []
    for entity, values in quotas:
        of = ", ".join(f"{kind}={'<default>' if each is None else each}" for kind, each in entity)
        notes += [
            f"{of}: {note}"
            for key, per_s in values.items()
            if (note := byte_rate_note(key, per_s, limits, largest_batch))
        ]
    return notes
