"""The list of subjects: an API that the wire format has is answered by one route, behind a guard or open on purpose."""

import inspect
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from differential.table import OPEN as OPEN_APIS

from broker.kafka.security.access import Access
from broker.kafka.security.guarded_route import OPEN, GuardedRoute
from broker.kafka.transactions.homes import Shard
from broker.process.kafka import Kafka
from broker.wire import apis
from shards.config.image import ClusterImage

NOT_SERVED = {64}  # UnregisterBroker: Kafka lists it, this broker does not


@pytest.fixture
def routes(tmp_path: Path) -> list[GuardedRoute]:
    plan, other = MagicMock(brokers=1, shards=1, data_dir=tmp_path), MagicMock()
    return Kafka(
        plan, Shard(0, 0), ClusterImage(), other, other,
        quotas=other, room=lambda most: most, ends=other, tokens=other,
    ).routes  # fmt: skip


def test_each_api_is_answered_by_one_route(routes: list[GuardedRoute]) -> None:
    assert sorted(route.api_key for route in routes) == sorted(apis.APIS.keys() - NOT_SERVED)


def test_every_api_is_guarded_or_open_on_purpose(routes: list[GuardedRoute]) -> None:
    """every_api_is_guarded (broker/kafka/security/guarded_route.py)."""
    assert {route.api_key for route in routes if route.guard is OPEN} == OPEN_APIS
    with pytest.raises(TypeError, match="guard"):
        GuardedRoute(3, lambda request, call: None)  # type: ignore[call-arg]


def test_a_guarded_route_is_never_prepared_and_an_open_one_stays_as_it_is(routes: list[GuardedRoute]) -> None:
    access = Access(ClusterImage())
    for route in routes:
        assert route.unguarded().function is route.function
        guarded = route.guarded(access)
        if route.guard is OPEN:
            assert guarded == route.unguarded()
        else:
            assert guarded.function is not route.function
            assert not guarded.prepared


def test_a_handler_takes_the_request_of_its_api_and_answers_with_its_types(routes: list[GuardedRoute]) -> None:
    """Type checkers compare a handler with its annotations; only this test, these with the API of its route."""
    for route in routes:
        name = apis.api_name(route.api_key)
        annotations = inspect.unwrap(route.function).__annotations__
        assert annotations["request"] == f"{name}Request"
        assert annotations["call"] == f"Call[{name}Types]"
