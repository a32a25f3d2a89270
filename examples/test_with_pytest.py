"""A test of your own client, with the plugin that comes with Turnstile: `pytest examples/test_with_pytest.py`."""

import contextlib
import select
import socket

import pytest
from confluent_kafka import Producer


@pytest.mark.limits(per_ip=3)
def test_a_fourth_connection_from_one_address_is_refused(turnstile):
    host, port = turnstile.bootstrap.split(":")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(4)]
        closed, _, _ = select.select(clients, [], [], 10)  # a refused connection is closed before anything is read
        assert len(closed) == 1
        assert turnstile.refusals().by_reason == {"ip_cap": 1}


@pytest.mark.quota("client-id=importer", producer_byte_rate=1000)
def test_a_producer_over_its_quota_is_told_to_wait(turnstile):
    producer = Producer({"bootstrap.servers": turnstile.bootstrap, "client.id": "importer", "log_level": 0})
    producer.produce("orders", b"x" * 50_000)
    assert producer.flush(10) == 0
    assert turnstile.throttled()["producer_byte_rate"].throttle_ms > 1000


def test_a_producer_survives_the_death_of_a_process(turnstile):
    producer = Producer({"bootstrap.servers": turnstile.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(100):
        producer.produce("orders", str(number))
        if number == 50:
            turnstile.kill_shard()
    assert producer.flush(20) == 0
