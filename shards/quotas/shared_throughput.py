"""The throughput of a broker, one pair of buckets for all of its shards: at home in HOME, where the others charge.

Redpanda's shards share the buckets' atomics. Here each other shard asks the home for every request that counts, and tells it of
every answer. While the home is away (redpanda_home_calls.py) a shard decides by a pair of its own, which begins empty and
knows nothing of the others.

always_limited   every charge is recorded and answered, within ANSWER_WITHIN_MS; while the home is there, all shards together let
    pass what one pair does
rate_a_shard     while it is away, each shard lets pass no more than the limit by itself, after a burst of no more than a second
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from shards.limits.node_throughput import NodeDelays, NodeThroughput
from shards.loop.deferred import MaybeDeferred
from shards.loop.timers import Timers
from shards.quotas.history_replication import Call
from shards.quotas.redpanda_home_calls import RedpandaHomeCalls

HOME: Final = 0
_CHARGE: Final = "charge_throughput"


class SharedThroughput:
    """The limits of a broker as its shard `me` charges them. What `charge` answers is not to be cancelled."""

    def __init__(self, me: int, *, call: Call, now_ms: Callable[[], int], timers: Timers) -> None:
        self._is_home = me == HOME
        self._now_ms = now_ms
        self._here = NodeThroughput()
        self._calls = RedpandaHomeCalls(
            _CHARGE, call=call, timers=timers, read=lambda row: NodeDelays(*row), probe=(0, 0)
        )
        self.peer_up = self._calls.peer_up
        self.peer_lost = self._calls.peer_lost

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Lets the other shards charge here."""
        serve(_CHARGE, lambda peer, received, sent: self._charge_here(received, sent))

    def set_rates(self, in_bps: int | None, out_bps: int | None) -> None:
        """The limits in force, in bytes a second; None: there is none."""
        self._here.set_rates(in_bps, out_bps, now_ms=self._now_ms())

    def reset(self) -> None:
        """Nothing was received or sent yet."""
        self._here.reset(now_ms=self._now_ms())

    def charge(self, received: int, sent: int) -> MaybeDeferred[NodeDelays]:
        """Takes bytes that were received and sent, and tells the delays; later, if the home is another shard."""
        here = partial(self._charge_here, received, sent)
        return here() if self._is_home else self._calls.ask(HOME, received, sent, decide=here)

    def _charge_here(self, received: int, sent: int) -> NodeDelays:
        return self._here.charge(received, sent, now_ms=self._now_ms())
