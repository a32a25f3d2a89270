"""What real clients did, added up."""

import pytest

from turnstile.load.throttles import Throttles
from turnstile.load.traffic import TrafficResult


@pytest.mark.parametrize(("throttle_ms", "rejected", "limited"), [(0, 0, False), (5, 0, True), (0, 1, True)])
def test_clients_are_limited_if_one_was_throttled_or_a_topic_refused(throttle_ms, rejected, limited):
    told = Throttles()
    told.add(throttle_ms)
    assert TrafficResult(rejected=rejected, throttled={"app producer": told.as_json()}).limited is limited
