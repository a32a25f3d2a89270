"""What only a shard can compute for /metrics: the rates of the clients metered at home here, and what waits in its queues.

Names are those of Kafka's JMX beans as the Prometheus exporter spells them: kafka.server:type=Produce,user=,client-id=
becomes kafka_server_produce_byte_rate{user,client_id}. At most MOST clients are told, those idle for an hour not at all.
"""

from __future__ import annotations

from typing import Any

from broker.serve.muted import Muted
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.quotas.sharded_quotas import KINDS, ShardedQuotas

MOST = 200
_BEANS = {
    PRODUCE: ("produce", "byte_rate"),
    FETCH: ("fetch", "byte_rate"),
    REQUEST: ("request", "request_time"),
    MUTATION: ("controllermutation", "tokens"),
}


def describe_gauges(meters: ShardedQuotas, muted: Muted) -> list[list[Any]]:
    """[[metric name, {label: value}, number]]."""
    told: list[list[Any]] = [[f"kafka_server_{_BEANS[kind][0]}_queue_size", {}, muted.sizes[kind]] for kind in KINDS]
    exempt = meters.exempt_percent()
    if exempt is not None:
        told.append(["kafka_server_request_exempt_request_time", {}, exempt])
    for user, client_id, rate in meters.mutation_rates(MOST):
        told.append(["kafka_server_controllermutation_mutation_rate", {"user": user, "client_id": client_id}, rate])
    for kind, user, client_id, value, throttle_ms in meters.describe(MOST):
        bean, attribute = _BEANS[kind]
        labels = {"user": user, "client_id": client_id}
        told.append([f"kafka_server_{bean}_{attribute}", labels, value])
        if throttle_ms is not None:
            told.append([f"kafka_server_{bean}_throttle_time", labels, throttle_ms])
    return told
