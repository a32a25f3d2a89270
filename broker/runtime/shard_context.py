"""The context that the parts of a shard process share: its number, its clock, the limits in force, counters and journal.

It is made once, by the process, and never changed. A part takes what it needs from it when it is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from broker.journal.writer import JournalWriter
from broker.metrics.shard_counters import ShardCounters
from broker.metrics.top_talkers import TopTalkers
from broker.runtime.logger import RateLimitedLogger
from shards.config.image import ClusterImage
from shards.loop.poller import Poller
from shards.loop.timers import Timers
from shards.rates.cluster_rate import ClusterRate
from shards.tokens.cluster_pool import ClusterPool
from shards.tokens.tokens import Tokens


class Request(Protocol):
    """Calls a method at another shard of the broker: its value, or one of the errors of mesh.call."""

    def __call__(self, peer: int, method: str, *args: object) -> Awaitable[Any]: ...


@dataclass(frozen=True, slots=True, eq=False)
class ShardContext:
    """Shard `shard` of a broker that has `shards` of them."""

    shard: int
    shards: int
    image: ClusterImage
    tokens: Tokens
    cluster: ClusterPool
    cluster_rate: ClusterRate
    poller: Poller
    timers: Timers
    journal: JournalWriter
    counters: ShardCounters
    top_talkers: TopTalkers
    log: RateLimitedLogger
    send: Callable[[int, tuple[object, ...]], None]  # a one-way message to another shard
    request: Request
    start_soon: Callable[..., object]  # runs a coroutine function as a task that ends with the mesh

    def now_ms(self) -> int:
        """The time at which the present pass began, in milliseconds of the machine's monotonic clock."""
        return self.poller.now_ns // 1_000_000
