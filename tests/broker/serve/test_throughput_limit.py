"""When a throughput limit of the broker holds a request: at the next one, for what the one before it was told."""

from typing import Any

import pytest
from throttled_shard import ThrottledShard

from broker.serve.call import Call
from broker.wire import wire
from shards.limits.node_throughput import NODE_IN, NODE_OUT, NodeDelays
from shards.loop.deferred import Deferred

HEARTBEAT, SIZE = 12, 100
BODY = wire.request_types(HEARTBEAT, 0).HeartbeatRequest(group_id="g" * 50, generation_id=1, member_id="m")


class Limited(ThrottledShard):
    """A limit of 100 bytes a second on heartbeats; the charges are what `delays` says, each once."""

    def __init__(self, *settings: tuple[str, str]) -> None:
        self.sent: list[int] = []
        self.delays: list[Any] = []
        given = [(NODE_IN, "100"), ("kafka_throughput_controlled_api_keys", "heartbeat"), *settings]
        records = [("setting", f"/{name}", value) for name, value in given]
        super().__init__(records, self._charge, b"x" * SIZE)

    def _charge(self, received: int, sent: int) -> Any:
        if sent:
            self.sent.append(sent)
            return None
        return self.delays.pop(0)

    def ask(self, delays: Any, client_id: str | None = "c") -> Any:
        self.delays.append(delays)
        return self.take_up(wire.encode_request(Call(HEARTBEAT, 0, 9), BODY, client_id)[4:])


@pytest.fixture
def limited():
    return Limited()


def test_a_client_that_waits_is_told_and_never_held(limited):
    for delay_ms in (300, 200, 0):
        assert len(limited.ask(NodeDelays(delay_ms, 0))) == SIZE
        limited.wait(delay_ms)
    assert limited.served == [300, 200, 0]
    assert limited.told == [(NODE_IN, 300), (NODE_IN, 200)]
    assert limited.sent == [SIZE] * 3


def test_one_that_does_not_is_held_at_its_next_request_from_whose_arrival_on_its_own_delay_counts(limited):
    limited.ask(NodeDelays(300, 0))
    limited.wait(100)
    held = limited.ask(NodeDelays(0, 700))
    limited.wait(199)
    assert limited.served == [300]
    limited.wait(1)
    assert held.resolved and limited.served == [300, 700]
    assert limited.told[-1] == (NODE_OUT, 700)
    assert limited.channel.throttled_until_ms == limited.now_ms - 200 + 700
    limited.wait(499)
    assert not limited.ask(NodeDelays(0, 0)).resolved, "for one more millisecond"


def test_no_delay_is_longer_than_the_setting():
    limited = Limited(("max_kafka_throttle_delay_ms", "50"))
    limited.ask(NodeDelays(300, 200))
    assert limited.served == [50]


def test_a_held_request_whose_client_leaves_is_not_served(limited):
    limited.ask(NodeDelays(300, 0))
    limited.ask(NodeDelays(0, 0)).cancel()
    assert limited.timers == []
    assert limited.served == [300]


@pytest.mark.parametrize(("until_ms", "served"), [(0, [5]), (10**9, [])])
def test_a_request_whose_charge_is_under_way_is_served_though_its_client_has_left_unless_it_is_to_be_held(
    limited, until_ms, served
):
    limited.channel.throttled_until_ms = until_ms
    charged: Deferred[NodeDelays] = Deferred()
    limited.ask(charged).cancel()
    limited.channel.closed = True
    charged.resolve(NodeDelays(5, 0))
    assert limited.served == served
    assert limited.timers == []


def test_what_is_asked_there_is_answered_later_and_can_be_held(limited):
    limited.ask(NodeDelays(300, 0))
    charged: Deferred[NodeDelays] = Deferred()
    answer = limited.ask(charged)
    charged.resolve(NodeDelays(0, 0))
    limited.wait(300)
    assert len(answer.result()) == SIZE


def test_exempt_clients_are_not_charged():
    limited = Limited(("kafka_throughput_control", '[{"client_id": "app-.*"}, {"client_id": "+empty"}]'))
    for client_id in ("app-1", "app-1", None):
        limited.ask(NodeDelays(300, 0), client_id)
    assert limited.served == [0, 0, 0]
    assert limited.sent == []
    limited.ask(NodeDelays(300, 0), "application")
    assert limited.served[-1] == 300
