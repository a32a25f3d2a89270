"""GetTelemetrySubscriptions (71) and PushTelemetry (72), version 0: KIP-714.

The shard takes what is pushed, for GET /v1/telemetry (client_metrics_manager.py). ApiVersions lists both while there is a client
metrics resource (api_versions.py); a client that asks all the same is answered that nothing is asked of it.
Not emulated: that an instance is known to all connections of a broker; it is to those of its shard.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.kafka.telemetry.client_metrics_manager import MAX_BYTES, ClientMetricsManager, Push
from broker.serve.call import Call
from broker.serve.channel import Channel
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage

if TYPE_CHECKING:
    from broker.wire.requests import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
    from broker.wire.responses import GetTelemetrySubscriptionsTypes, PushTelemetryTypes

GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY = 71, 72
COMPRESSIONS = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy: in this order they are accepted."""
MOST_DESCRIBED = 1000
_UNKNOWN = ("unknown", "unknown")


def routes(manager: ClientMetricsManager, image: ClusterImage) -> list[GuardedRoute]:
    def get_telemetry_subscriptions(
        request: GetTelemetrySubscriptionsRequest, call: Call[GetTelemetrySubscriptionsTypes]
    ) -> Message:
        channel = _channel(call)
        code, instance = manager.get(request.client_instance_id, _client(call, channel), channel, now_ms=now_ms())
        types = call.types
        if code:
            return types.GetTelemetrySubscriptionsResponse(
                error_code=code, client_instance_id=None, subscription_id=0, accepted_compression_types=(),
                push_interval=0, telemetry_max_bytes=0, delta_temporality=False, requested_metrics=(),
            )  # fmt: skip
        return types.GetTelemetrySubscriptionsResponse(
            error_code=codes.NONE,
            client_instance_id=instance.id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=COMPRESSIONS,
            push_interval=instance.asked.push_interval_ms,
            telemetry_max_bytes=image.get(MAX_BYTES),
            delta_temporality=True,
            requested_metrics=instance.asked.metrics,
        )

    def push_telemetry(request: PushTelemetryRequest, call: Call[PushTelemetryTypes]) -> Message:
        channel = _channel(call)
        push = Push(request.subscription_id, request.terminating, request.compression_type, bytes(request.metrics))
        code = manager.push(
            request.client_instance_id,
            push,
            _client(call, channel),
            channel,
            now_ms=now_ms(),
            wall_ms=time.time_ns() // 1_000_000,
        )
        return call.types.PushTelemetryResponse(error_code=code)

    return [
        GuardedRoute(GET_TELEMETRY_SUBSCRIPTIONS, get_telemetry_subscriptions, OPEN),
        GuardedRoute(PUSH_TELEMETRY, push_telemetry, OPEN),
    ]


def serve_on(serve: Callable[[str, Callable[..., object]], None], manager: ClientMetricsManager) -> None:
    """Offers to the coordinator what clients pushed, for its admin API."""
    serve("describe_telemetry", lambda peer: manager.describe(MOST_DESCRIBED, now_ms=now_ms()))
    serve("last_push", lambda peer, instance_id: manager.last_push(instance_id))


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _channel(call: Call) -> Channel:
    assert call.channel is not None  # requests come over connections
    return call.channel


def _client(call: Call, channel: Channel) -> dict[str, str]:
    """The selectors of the client, but for its instance id."""
    name, version = channel.software or _UNKNOWN
    attributes = {
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": call.ip,
        "client_source_port": str(call.port),
    }
    return attributes if call.client_id is None else {**attributes, "client_id": call.client_id}
