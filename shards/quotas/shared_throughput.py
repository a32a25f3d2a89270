"""The throughput of a broker, one pair of buckets for all of its shards: at home in HOME, where the others charge.

Redpanda's shards share the buckets' atomics. Here each other shard asks the home for every request that counts, and tells it of
every answer. A shard whose home is lost, or has not answered within ANSWER_WITHIN_MS, decides by a pair of its own at once, which
begins empty and knows nothing of the others; the home is asked again when it answers a call without bytes.

always_limited   every charge is recorded and answered, within ANSWER_WITHIN_MS; while the home is there, all shards together let
    pass what one pair does
rate_a_shard     while it is away, each shard lets pass no more than the limit by itself, after a burst of no more than a second
recorded_once    a charge is decided by the home's answer or here, as far as this shard knows; the home may have recorded one that
                 it answered too late
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from shards.limits.node_throughput import NodeDelays, NodeThroughput
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.loop.timers import Timer, Timers
from shards.quotas.attendance import ANSWER_WITHIN_MS
from shards.quotas.publications import Call

HOME: Final = 0
_CHARGE: Final = "charge_throughput"


class SharedThroughput:
    """The limits of a broker as its shard `me` charges them. What `charge` answers is not to be cancelled."""

    def __init__(self, me: int, *, call: Call, now_ms: Callable[[], int], timers: Timers) -> None:
        self._is_home = me == HOME
        self._call = call
        self._now_ms = now_ms
        self._timers = timers
        self._here = NodeThroughput()
        self._is_away = False
        self._is_asked_again = False

    def serve_on(self, serve: Callable[[str, Callable[..., Any]], None]) -> None:
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
        if self._is_home:
            return self._charge_here(received, sent)
        if self._is_away:
            self._ask_again()
            return self._charge_here(received, sent)
        answer: Deferred[NodeDelays] = Deferred()
        decide = partial(self._decide, answer, received, sent)
        due = self._timers.after(ANSWER_WITHIN_MS, decide)
        self._call(HOME, _CHARGE, received, sent).add_callback(partial(self._came, answer, decide, due))
        return answer

    def peer_up(self, shard: int) -> None:
        """The link to a shard is there."""
        if shard == HOME:
            self._is_away = self._is_asked_again = False

    def peer_lost(self, shard: int) -> None:
        """The link to a shard broke."""
        if shard == HOME:
            self._is_away = True

    def _charge_here(self, received: int, sent: int) -> NodeDelays:
        return self._here.charge(received, sent, now_ms=self._now_ms())

    def _came(
        self, answer: Deferred[NodeDelays], decide: Callable[[], None], due: Timer, told: Deferred[list[int]]
    ) -> None:
        """The home has answered, or can't be asked."""
        self._timers.cancel(due)
        try:
            delays = NodeDelays(*told.result())
        except Exception:  # PeerLost, DeadlineExceeded, or a mistake there, which was reported there
            decide()
            return
        if not answer.resolved:
            answer.resolve(delays)

    def _decide(self, answer: Deferred[NodeDelays], received: int, sent: int) -> None:
        """Decides a charge that the home has not."""
        if not answer.resolved:
            self._is_away = True
            answer.resolve(self._charge_here(received, sent))

    def _ask_again(self) -> None:
        if not self._is_asked_again:
            self._is_asked_again = True
            self._call(HOME, _CHARGE, 0, 0).add_callback(self._answered_again)

    def _answered_again(self, told: Deferred[list[int]]) -> None:
        self._is_asked_again = False
        try:
            told.result()
        except Exception:  # as above; the next charge asks again
            return
        self._is_away = False
