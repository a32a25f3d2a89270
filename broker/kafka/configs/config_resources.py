"""The types of resource that have configs, by their numbers. Source: ConfigResource.Type."""

from __future__ import annotations

from broker.kafka.remote import RequestRefused
from broker.wire import codes

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Resource = tuple[int, str]


def broker_id(name: str) -> int:
    if not name.removeprefix("-").isdigit():
        raise RequestRefused(codes.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return int(name)
