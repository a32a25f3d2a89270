"""One shard whose requests a throughput limit and Redpanda's client quotas hold, with a clock and timers that a test moves on."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from broker.serve.redpanda_quotas import RedpandaQuotas
from broker.serve.throughput_limit import ThroughputLimit
from shards.config.image import ClusterImage
from shards.quotas.shared_buckets import SharedBuckets


class ThrottledShard:
    """`told`: (limit, ms) of each throttle that was counted; `journaled`: the limits of those in the journal; `served`: the
    throttle times of answered requests in ms. `records` are those of the configuration, `charge(received, sent)` gives the delays
    of the node."""

    def __init__(self, records: list[Any], charge: Callable[[int, int], Any], answer: bytes) -> None:
        self.now_ms = 1_000_000
        self.timers: list[Any] = []
        self.told: list[tuple[str, int]] = []
        self.journaled: list[str] = []
        self.served: list[int] = []
        self._answer = answer
        self.channel: Any = SimpleNamespace(
            id=1, ip="::1", port=1, listener="L", user="ANONYMOUS", closed=False,
            throttled_until_ms=0, produce_throttled_until_ms=0, fetch_throttled_until_ms=0,
        )  # fmt: skip
        image = ClusterImage()
        image.apply(1, records)
        context: Any = SimpleNamespace(
            image=image, timers=self, poller=SimpleNamespace(clock_ns=lambda: self.now_ms * 1_000_000),
            counters=SimpleNamespace(throttled=lambda limit, ms: self.told.append((limit, ms))),
            journal=SimpleNamespace(throttled=lambda *args, **values: self.journaled.append(values["limit"])),
        )  # fmt: skip
        call: Any = None
        buckets = SharedBuckets(0, 1, call=call, now_ms=lambda: self.now_ms, timers=context.timers)
        self.quotas = RedpandaQuotas(buckets, context)
        self.quotas.follow()
        shared: Any = SimpleNamespace(charge=charge, set_rates=lambda *rates: None)
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

    def take_up(self, frame: bytes) -> Any:
        """`frame`: a request without its length."""
        assert frame[:2] in self.limit.controlled
        return self.limit.take_up(self.channel, frame, self._make)

    def _make(self, channel: Any, frame: bytes, throttle_ms: int) -> bytes:
        self.served.append(throttle_ms)
        return self._answer
