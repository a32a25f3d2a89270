"""When client quotas of Redpanda's semantics hold a request: at the next one of its kind, beside the throughput of the broker."""

from __future__ import annotations

from typing import Any

import pytest
from request_bytes import fetch, produce
from throttled_shard import ThrottledShard

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE
from shards.limits.node_throughput import NODE_IN, NODE_OUT, NodeDelays
from shards.limits.quota_entities import SEMANTICS
from shards.loop.deferred import Deferred

RATE = 1000
ANSWER = b"x" * 2500


class Limited(ThrottledShard):
    """One shard with a quota of RATE for each client id; `node`: the delays of the broker's throughput, each once."""

    def __init__(self, *settings: tuple[str, str], semantics: str = "redpanda") -> None:
        self.node: list[NodeDelays] = []
        quota = ("quota", '{"client-id":null}', dict.fromkeys((PRODUCE, FETCH, MUTATION), float(RATE)))
        set_ = [("setting", f"/{name}", value) for name, value in settings]
        records = [("static", f"/{SEMANTICS}", semantics), quota, *set_]
        super().__init__(records, lambda received, sent: self.node.pop(0) if received else None, ANSWER)

    def write(self, size: int, client_id: str = "c") -> Any:
        frame = produce(client_id, "t", 0, b"")
        return self.take_up(produce(client_id, "t", 0, b"x" * (size - len(frame)))[4:])

    def read(self, client_id: str = "c") -> Any:
        return self.take_up(fetch(client_id, "t")[4:])


@pytest.fixture
def limited() -> Limited:
    return Limited()


def test_a_produce_is_charged_at_once_and_the_next_one_of_a_hasty_client_is_held(limited: Limited) -> None:
    assert limited.write(RATE + 300) == ANSWER
    assert limited.served == [300]
    assert limited.told == [(PRODUCE, 300)] and limited.journaled == ["redpanda:producer_byte_rate"]
    held = limited.write(200)
    limited.wait(299)
    assert isinstance(held, Deferred) and not held.resolved
    limited.wait(1)
    assert held.result() == ANSWER and limited.served == [300, 500]


def test_a_client_that_waits_is_never_held(limited: Limited) -> None:
    for size, told_ms in ((1400, 400), (100, 100), (100, 100)):
        assert limited.write(size) == ANSWER
        assert limited.served[-1] == told_ms
        limited.wait(told_ms)


def test_a_fetch_is_told_what_is_owed_before_it_and_charged_its_answer(limited: Limited) -> None:
    assert limited.read() == ANSWER
    assert limited.read() == ANSWER
    assert limited.served == [0, len(ANSWER) - RATE]
    held = limited.read()
    limited.wait(len(ANSWER) - RATE)
    assert held.result() == ANSWER
    assert limited.served[-1] == 2 * len(ANSWER) - RATE


def test_a_produce_is_not_held_for_a_fetch_nor_for_another_connection(limited: Limited) -> None:
    limited.read()
    limited.read()
    assert limited.write(10) == ANSWER and limited.served[-1] == 0


def test_no_delay_is_longer_than_the_setting_and_it_is_the_longer_of_both() -> None:
    limited = Limited(("max_kafka_throttle_delay_ms", "200"), (NODE_IN, "100"), (NODE_OUT, "100"))
    limited.node = [NodeDelays(0, 150), NodeDelays(0, 150)]
    limited.write(9000)
    limited.write(10, "d")
    limited.wait(200)
    assert limited.served == [200, 150]
    assert limited.told == [(PRODUCE, 200), (NODE_OUT, 150), (NODE_OUT, 150)]


def test_an_exempt_client_is_under_its_quota_all_the_same() -> None:
    limited = Limited((NODE_IN, "100"), ("kafka_throughput_control", '[{"client_id": "c"}]'))
    limited.write(RATE + 300)
    assert limited.served == [300]
    limited.node = [NodeDelays(0, 0)]
    limited.write(RATE, "d")
    assert limited.node == []


def test_a_user_by_whom_no_client_has_logged_in_is_none(limited: Limited) -> None:
    assert (
        limited.quotas.match(PRODUCE, "ANONYMOUS", None).rule == limited.quotas.match(PRODUCE, "alice", None).rule == 11
    )


def test_by_kafkas_semantics_no_bucket_is_charged() -> None:
    limited = Limited(semantics="kafka")
    assert not any(limited.quotas.in_use(kind) for kind in (PRODUCE, FETCH, MUTATION))
    assert limited.limit.controlled == frozenset()
