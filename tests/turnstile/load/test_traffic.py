"""What real clients did, added up."""

import pytest

from turnstile.load import traffic_client
from turnstile.load.throttles import Throttles
from turnstile.load.traffic import TrafficResult


@pytest.mark.parametrize(("throttle_ms", "rejected", "limited"), [(0, 0, False), (5, 0, True), (0, 1, True)])
def test_clients_are_limited_if_one_was_throttled_or_a_topic_refused(throttle_ms, rejected, limited):
    told = Throttles()
    told.add(throttle_ms)
    assert TrafficResult(rejected=rejected, throttled={"app producer": told.as_json()}).limited is limited


def test_a_client_that_reaches_no_broker_ends_with_one_sentence(monkeypatch):
    monkeypatch.setattr(traffic_client, "CREATE_S", 1)
    order = {"bootstrap": "127.0.0.1:1", "topic": "orders", "partitions": 1, "user": "", "label": "app producer"}
    with pytest.raises(SystemExit) as ended:
        traffic_client.create_topic(order)
    assert str(ended.value.code).startswith("app producer: topic orders can't be made: 127.0.0.1:1")
    assert "Connection refused" in str(ended.value.code)
