"""Defects of published clients that a finding may be: what the ticket says, for each API.

Apache Kafka's Java client waits for a throttle time only where the class of the response says so
(`AbstractResponse.shouldClientThrottle`). These responses of kafka-clients 4.3.1 have a `throttle_time_ms` and a class that
does not; it was mended after 4.3.
"""

from __future__ import annotations

_JAVA = "Apache Kafka's Java client up to 4.3.1 does not wait for it: KAFKA-20828"
_NOT_WAITED_FOR = frozenset(
    {
        "AlterClientQuotas",
        "AlterShareGroupOffsets",
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "DeleteShareGroupOffsets",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeProducers",
        "DescribeShareGroupOffsets",
        "DescribeTransactions",
        "GetTelemetrySubscriptions",
        "ListConfigResources",
        "ListTransactions",
        "PushTelemetry",
        "ShareAcknowledge",
        "ShareFetch",
        "ShareGroupDescribe",
        "ShareGroupHeartbeat",
        "StreamsGroupDescribe",
        "StreamsGroupHeartbeat",
        "UpdateFeatures",
    }
)


def known_defect(api: str) -> str:
    """The ticket about throttle times of this API that a client ignores; empty where none is known."""
    return _JAVA if api in _NOT_WAITED_FOR else ""
