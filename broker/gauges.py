"""What only a shard can compute for /metrics: the rates of the clients metered at home here, and what waits in its queues.

Names are those of Kafka's JMX beans as the Prometheus exporter spells them: kafka.server:type=Produce,user=,client-id=
becomes kafka_server_produce_byte_rate{user,client_id}. At most MOST clients are told, those idle for an hour not at all.
"""

from __future__ import annotations

from typing import Any

from broker.delays import Delays
from limits.quotas import FETCH, MUTATION, PRODUCE, REQUEST
from shards.meters import Meters

MOST = 200
_BEANS = {
    PRODUCE: ("produce", "byte_rate"),
    FETCH: ("fetch", "byte_rate"),
    REQUEST: ("request", "request_time"),
    MUTATION: ("controllermutation", "tokens"),
}


def describe_gauges(meters: Meters, delays: Delays) -> list[list[Any]]:
    """[[metric name, {label: value}, number]]."""
    told: list[list[Any]] = [["kafka_server_throttled_channels_queue_size", {}, len(delays)]]
    for kind, user, client_id, value, throttle_ms in meters.describe(MOST):
        bean, attribute = _BEANS[kind]
        labels = {"user": user, "client_id": client_id}
        told.append([f"kafka_server_{bean}_{attribute}", labels, value])
        if throttle_ms is not None:
            told.append([f"kafka_server_{bean}_throttle_time", labels, throttle_ms])
    return told
