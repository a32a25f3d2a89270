"""GET /v1/telemetry: the client instances of all shards, and what one of them pushed last (KIP-714).

Asked of every shard:

    describe_telemetry        [client instance], those heard of last (ClientMetricsManager.describe)
    last_push(instance id)    [Unix ms, compression, metrics] or None
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple, cast

import trio

from broker.admin.answers import ClientInstance, MetricPoint, TelemetryPush
from broker.admin.otlp import NotOtlp, metrics_of
from broker.storage.compression import NotUnpacked, unpacked
from broker.wire import codes
from shards.config.coordinator import Coordinator

_UNPACKING = Lock()
"""All threads of a process unpack into the same room."""


class ReadPush(NamedTuple):
    """The metrics of a push, and why they can't be read."""

    metrics: list[MetricPoint]
    error: str | None


async def describe_telemetry(coordinator: Coordinator) -> list[ClientInstance]:
    """A client instance that has connections to several shards has a row for each."""
    answers = await coordinator.ask_all("describe_telemetry")
    rows = []
    for (broker, shard), instances in answers.items():
        for each in instances:
            refused = {codes.NAMES[int(code)]: times for code, times in each["refused"].items()}
            rows.append(cast(ClientInstance, {**each, "refused": refused, "broker": broker, "shard": shard}))
    return rows


async def last_push(coordinator: Coordinator, instance_id: str) -> TelemetryPush | None:
    """The last push of a client instance; None: none is kept."""
    answers = await coordinator.ask_all("last_push", instance_id)
    kept = max((answer for answer in answers.values() if answer is not None), default=None)
    if kept is None:
        return None
    at_ms, compression, pushed = kept
    metrics, error = await trio.to_thread.run_sync(_read, compression, pushed)
    return {"client_instance_id": instance_id, "pushed_at_ms": at_ms, "metrics": metrics, "error": error}


def _read(compression: int, pushed: bytes) -> ReadPush:
    try:
        with _UNPACKING:
            data = bytes(unpacked(compression, pushed)) if compression else pushed
        return ReadPush(cast(list[MetricPoint], metrics_of(data)), None)
    except (NotOtlp, NotUnpacked) as fault:
        return ReadPush([], str(fault))
