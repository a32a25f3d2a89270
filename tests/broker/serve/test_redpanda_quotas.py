"""When client quotas of Redpanda's semantics hold a request: at the next one of its kind, beside the throughput of the broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from request_bytes import fetch, produce

from broker.serve.redpanda_quotas import RedpandaQuotas
from broker.serve.throughput_limit import ThroughputLimit
from shards.config.image import ClusterImage
from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE
from shards.limits.node_throughput import NODE_IN, NODE_OUT, NodeDelays
from shards.limits.quota_entities import SEMANTICS
from shards.loop.deferred import Deferred
from shards.quotas.shared_buckets import SharedBuckets

RATE = 1000
ANSWER = b"x" * 2500


class Limited:
    """One shard with a quota of RATE for each client id; `node`: the delays of the broker's throughput, each once."""

    def __init__(self, *settings: tuple[str, str], semantics: str = "redpanda") -> None:
        self.now_ms = 1_000_000
        self.timers: list[Any] = []
        self.told: list[tuple[str, int]] = []
        self.journaled: list[str] = []
        self.served: list[int] = []
        self.node: list[NodeDelays] = []
        self.channel: Any = SimpleNamespace(
            id=1, ip="::1", port=1, listener="L", user="ANONYMOUS", closed=False,
            throttled_until_ms=0, produce_throttled_until_ms=0, fetch_throttled_until_ms=0,
        )  # fmt: skip
        image = ClusterImage()
        quota = ("quota", '{"client-id":null}', dict.fromkeys((PRODUCE, FETCH, MUTATION), float(RATE)))
        set_ = [("setting", f"/{name}", value) for name, value in settings]
        image.apply(1, [("static", f"/{SEMANTICS}", semantics), quota, *set_])
        context: Any = SimpleNamespace(
            image=image, timers=self, poller=SimpleNamespace(clock_ns=lambda: self.now_ms * 1_000_000),
            counters=SimpleNamespace(throttled=lambda limit, ms: self.told.append((limit, ms))),
            journal=SimpleNamespace(throttled=lambda *args, **values: self.journaled.append(values["limit"])),
        )  # fmt: skip
        call: Any = None
        self.quotas = RedpandaQuotas(
            SharedBuckets(0, 1, call=call, now_ms=lambda: self.now_ms, timers=context.timers), context
        )
        self.quotas.follow()
        shared: Any = SimpleNamespace(
            charge=lambda received, sent: self.node.pop(0) if received else None, set_rates=lambda *rates: None
        )
        self.limit = ThroughputLimit(shared, self.quotas, context)
        self.limit.follow()

    def after(self, delay_ms: int, function: Any) -> list[Any]:
        self.timers.append([self.now_ms + delay_ms, function])
        return self.timers[-1]

    def cancel(self, timer: list[Any]) -> None:
        self.timers.remove(timer)

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for timer in [each for each in self.timers if each[0] <= self.now_ms]:
            self.timers.remove(timer)
            timer[1]()

    def write(self, size: int, client_id: str = "c") -> Any:
        frame = produce(client_id, "t", 0, b"")
        return self._ask(produce(client_id, "t", 0, b"x" * (size - len(frame))))

    def read(self, client_id: str = "c") -> Any:
        return self._ask(fetch(client_id, "t"))

    def _ask(self, framed: bytes) -> Any:
        assert framed[4:6] in self.limit.controlled
        return self.limit.take_up(self.channel, framed[4:], self._make)

    def _make(self, channel: Any, frame: bytes, throttle_ms: int) -> bytes:
        self.served.append(throttle_ms)
        return ANSWER


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


def test_one_that_waits_is_never_held(limited: Limited) -> None:
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
