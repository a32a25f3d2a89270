"""A test of your own client, with the plugin that comes with Turnstile: `pytest examples/test_with_pytest.py`."""

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient


@pytest.mark.limits(per_ip=3)
def test_a_fourth_connection_from_one_address_is_refused(turnstile):
    clients = [AdminClient({"bootstrap.servers": turnstile.bootstrap, "log_level": 0}) for _ in range(4)]
    answered = 0
    for client in clients:
        try:
            answered += client.list_topics(timeout=1) is not None
        except KafkaException:
            continue
    assert answered < 4
    assert turnstile.refusals().by_reason.keys() == {"ip_cap"}


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
