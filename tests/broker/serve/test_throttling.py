"""What a request is charged: exempt is what Kafka answers without a throttle, as one of another broker."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.serve.call import Call
from broker.serve.throttling import Throttling
from shards.limits.client_quota_managers import REQUEST
from shards.quotas.sharded_quotas import NOTHING_RECORDED


class Meters:
    def __init__(self) -> None:
        self.charged: list[str] = []
        self.exempt = 0

    def charge(self, kind: str, user: str, client_id: str, amount: float) -> Any:
        self.charged.append(kind)
        return NOTHING_RECORDED

    def record_exempt(self, amount: float) -> None:
        self.exempt += 1


@pytest.mark.parametrize(
    ("api_key", "version", "exempt"),
    [(27, 1, True), (24, 5, True), (24, 4, True), (24, 3, False), (22, 5, False), (25, 4, False), (26, 5, False),
     (28, 5, False), (65, 0, False)],
)  # fmt: skip
def test_requests_between_brokers_are_exempt_and_those_of_clients_are_not(
    api_key: int, version: int, exempt: bool
) -> None:
    meters, call = Meters(), Call(api_key, version)
    call.encoded = b"\0" * 8
    quotas = SimpleNamespace(meters=meters, rehearsal=SimpleNamespace(is_on=False))
    throttling = Throttling(quotas, None, None, None)  # type: ignore[arg-type]
    throttling.timed = True
    assert throttling.settle(SimpleNamespace(throttle=None), call, 10, None, 0) == call.encoded  # type: ignore[arg-type]
    assert (REQUEST not in meters.charged) == exempt
    assert meters.exempt == exempt
