"""What client metrics resources ask of a client together."""

from uuid import UUID

import pytest

from broker.kafka.telemetry.subscriptions import RequestedMetrics, asked_of, subscription_id, subscription_of
from shards.uuids import uuid_text

CLIENT = {"client_id": "orders-1", "client_software_name": "apache-kafka-java", "client_source_address": "10.0.0.7"}


def asked(*resources: dict[str, str]) -> RequestedMetrics:
    return asked_of(CLIENT, [subscription_of(configs) for configs in resources])


def test_a_client_that_is_of_none_pushes_nothing() -> None:
    assert asked() == RequestedMetrics((), 300_000)
    assert asked({"metrics": "a.", "interval.ms": "100", "match": "client_id=bills"}) == RequestedMetrics((), 300_000)


def test_the_metrics_of_all_and_the_shortest_interval() -> None:
    assert asked({"metrics": "b.,a."}, {"metrics": "a.,c.", "interval.ms": "500"}) == RequestedMetrics(
        ("a.", "b.", "c."), 500
    )
    assert asked({"metrics": "a.", "interval.ms": "3600000"}) == RequestedMetrics(("a.",), 300_000), (
        "as often as by default"
    )
    assert asked({"metrics": "a."}, {"metrics": "*"}) == RequestedMetrics(("*",), 300_000)


@pytest.mark.parametrize(
    ("match", "is_for"),
    [
        ("client_id=orders-.*", True),
        ("client_id=orders", False),
        ("client_id=orders-.*,client_software_name=.*java", True),
        ("client_id=orders-.*,client_software_name=librdkafka", False),
        ("client_source_port=[0-9]+", False),
    ],
)
def test_patterns_are_of_the_whole_and_all_have_to_match(match: str, is_for: bool) -> None:
    assert subscription_of({"match": match}).is_for(CLIENT) == is_for


def test_ids_are_spelled_and_sized_as_kafkas() -> None:
    instance = UUID("6f1f0cb2-5f0c-4c53-8f0c-0123456789ab")
    assert uuid_text(instance) == "bx8Msl8MTFOPDAEjRWeJqw"
    ids = {subscription_id(RequestedMetrics(metrics, ms), instance) for metrics in ((), ("a.",)) for ms in (100, 200)}
    assert len(ids) == 4 and all(-(2**31) <= each < 2**31 for each in ids)
