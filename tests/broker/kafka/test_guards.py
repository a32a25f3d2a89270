"""No API is left without a guard, and a guard stands before nothing while no authorizer is set."""

from pathlib import Path

from broker.kafka.guards import GUARDS, OPEN
from broker.wire import apis

REPOSITORY = Path(__file__).parents[3]


def test_every_api_has_a_guard_or_asks_for_nothing():
    assert not apis.APIS.keys() - GUARDS.keys() - OPEN, "broker/kafka/guards.py (N1)"
    assert not GUARDS.keys() & OPEN
