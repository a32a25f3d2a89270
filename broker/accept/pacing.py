"""The times at which a listener accepts on this shard: not while a rate blocks it, nor while connections that it accepted have to
wait in order.

A connection that is not accepted waits in the kernel's backlog, as with Kafka, whose acceptor sleeps.

paused_only_for_a_reason  The listener is paused exactly while one of these holds: a rate blocks it (`block`); a connection
    waits in order for a core's token or a slot (`stop`); as many connections wait for a rate as may (`join`).
blocked_time_is_counted  `blocked_ns` counts the time it was paused; AcceptorBlockedPercent is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.accept.listener import Listener
from broker.accept.permit import Permit
from broker.metrics.shard_counters import ShardCounters
from shards.loop.poller import Poller
from shards.loop.timers import Timers


class Pacing:
    """Pauses one listener. `most_waiting()`: how many connections may wait for its rate at a time."""

    def __init__(
        self, name: str, poller: Poller, timers: Timers, counters: ShardCounters, most_waiting: Callable[[], int]
    ) -> None:
        self._stopped = 0
        self._waiting = 0
        self._name = name
        self._poller = poller
        self._timers = timers
        self._counters = counters
        self._most_waiting = most_waiting
        self._blocked_until_ms = 0
        self._paused = False
        self._since_ns = 0
        self._listener: Listener | None = None

    def start(self, listener: Listener) -> None:
        """Accepts from now on, except while paused (paused_only_for_a_reason)."""
        self._listener = listener
        listener.start()
        self.update()

    def close(self) -> None:
        """Accepts nothing any more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def stop(self) -> Permit:
        """The listener accepts nothing until this permit and all others of `stop` are given back."""
        self._stopped += 1
        self.update()
        return Permit(self._resume)

    def join(self) -> Permit:
        """A place among the connections that wait for a rate, until the permit is given back."""
        self._waiting += 1
        self.update()
        return Permit(self._depart)

    def _resume(self) -> None:
        self._stopped -= 1
        self.update()

    def _depart(self) -> None:
        self._waiting -= 1
        self.update()

    def block(self, until_ms: int) -> None:
        """A rate blocks the listener until then, in milliseconds of the poller's clock."""
        if until_ms > self._blocked_until_ms:
            self._blocked_until_ms = until_ms
            # 50 us later: a timer that fires early would find the listener blocked, and nothing would look again.
            self._timers.after(until_ms - self._poller.now_ns / 1e6 + 0.05, self.update)
            self.update()

    def unblock(self) -> None:
        """No rate blocks the listener any more."""
        self._blocked_until_ms = 0
        self.update()

    def update(self) -> None:
        """Pauses, or accepts again (paused_only_for_a_reason). To be called when `most_waiting` may have changed."""
        if self._listener is None:
            return
        paused = bool(
            self._stopped
            or (self._waiting and self._waiting >= self._most_waiting())
            or self._poller.now_ns < self._blocked_until_ms * 1_000_000
        )
        if paused is self._paused:
            return
        self._paused = paused
        if paused:
            self._since_ns = self._poller.now_ns
            self._listener.pause()
        else:
            self._count()
            self._listener.start()

    def tick(self) -> None:
        """Counts a pause that lasts; to be called a few times a second."""
        if self._paused:
            self._count()

    def _count(self) -> None:
        now_ns = self._poller.now_ns
        self._counters.add("blocked_ns", now_ns - self._since_ns, self._name)
        self._since_ns = now_ns
