"""The three tests of each module: a cap refuses and says why; a quota throttles, always alike; a reset forgets both."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from turnstile_container import TurnstileContainer


@pytest.fixture(scope="module")
def started() -> Iterator[TurnstileContainer]:
    with TurnstileContainer("--topic", "orders:1") as cluster:
        print(f"Turnstile runs as {cluster.run}")
        yield cluster


@pytest.fixture
def turnstile(started: TurnstileContainer) -> TurnstileContainer:
    started.reset()
    return started


def connections(turnstile: TurnstileContainer, count: int) -> list[socket.socket]:
    host, _, port = turnstile.bootstrap.rpartition(":")
    return [socket.create_connection((host, int(port)), timeout=10) for _ in range(count)]


def refused_of(turnstile: TurnstileContainer) -> dict[str, int]:
    """Once there are any: a connection is refused a moment after it was opened."""
    deadline = time.monotonic() + 10
    while not (found := turnstile.refusals()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_cap_refuses_and_says_why(turnstile: TurnstileContainer) -> None:
    turnstile.set("kafka_connections_max_per_ip", 3)
    held = connections(turnstile, 4)
    assert refused_of(turnstile) == {"ip_cap": 1}
    for each in held:
        each.close()


def test_a_quota_throttles_always_alike(turnstile: TurnstileContainer) -> None:
    told = []
    for _ in range(2):
        turnstile.reset()
        turnstile.quota({"client-id": "importer"}, producer_byte_rate=1000)
        producer = Producer(
            {"bootstrap.servers": turnstile.bootstrap, "client.id": "importer", "compression.type": "none"},
            throttle_cb=lambda event: told.append(round(event.throttle_time)),
        )
        producer.produce("orders", b"x" * 20_000)
        assert producer.flush(60) == 0
        producer.poll(0)
    assert len(told) == 2 and told[0] == told[1] > 0


def test_a_reset_forgets_what_a_test_has_done(turnstile: TurnstileContainer) -> None:
    turnstile.set("kafka_connections_max_per_ip", 1)
    held = connections(turnstile, 3)
    assert refused_of(turnstile)
    turnstile.reset()
    assert turnstile.refusals() == {}
    assert turnstile.api.get_config(key="kafka_connections_max_per_ip") == {"kafka_connections_max_per_ip": None}
    for each in held:
        assert each.recv(1) == b"", "a reset closes every connection"
        each.close()
