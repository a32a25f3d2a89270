"""A shard as one of Kafka's network threads, which blocks while it waits for room in the request queue (request_queue.py).

blocked_reads_and_sends_nothing  While the thread is blocked no connection of the shard is read or written, no channel is unmuted,
    no client that leaves is noticed, and answers that are there wait. Accepting goes on, and so do handlers, the mesh and timers,
    which in Kafka are other threads.
blocked_thread_turns  When all that the thread had read is in the queue, the answers leave, and every connection that is ready is
    read, before the thread blocks again. So none starves, as in Kafka, where each of these is a step of the thread's loop.

Source: SocketServer.Processor.run, processCompletedReceives (Apache Kafka).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from broker.serve.connection import Connection
from broker.serve.muted import Muted
from broker.serve.request_memory import RequestMemory
from broker.wire.answer_parts import Encoded
from shards.loop.deferred import Deferred
from shards.loop.poller import Poller
from shards.loop.timers import Timers


class NetworkThread:
    """The reading and writing of a shard's connections, which block. `is_full()`: whether a request that was read waits for room.

    `blocked_ns`: for how long it was blocked, each time but one that is under way.
    """

    def __init__(
        self, poller: Poller, timers: Timers, muted: Muted, memory: RequestMemory, is_full: Callable[[], bool]
    ) -> None:
        self.blocked_ns = 0
        self._poller = poller
        self._timers = timers
        self._muted = muted
        self._memory = memory
        self._is_full = is_full
        self._blocked_since_ns: int | None = None
        self._is_going_on = False
        self._ready: deque[tuple[Deferred[Encoded | None], Deferred[Encoded | None]]] = deque()
        """Answers that are there while it is blocked: (what to resolve, as what)."""

    def send(self, answer: Deferred[Encoded | None], made: Deferred[Encoded | None]) -> None:
        """`answer` ends as `made`, which is resolved; once the thread is not blocked (blocked_reads_and_sends_nothing)."""
        if self._blocked_since_ns is None:
            answer.follow(made)
        else:
            self._ready.append((answer, made))

    def update_blocked(self) -> None:
        """Blocks the thread, or lets it go on: a request was put, or taken up."""
        if self._is_going_on:
            return
        if self._is_full():
            self._block()
        elif self._blocked_since_ns is not None:
            self._go_on()

    def forget(self) -> None:
        """Drops answers that wait: their connections are closed."""
        self._ready.clear()

    def _block(self) -> None:
        if self._blocked_since_ns is None:
            self._blocked_since_ns = self._poller.now_ns
            self._poller.hold(Connection)
            self._muted.pause()
            self._memory.pause()

    def _go_on(self) -> None:
        """Sends what has become ready, in time slices, and then has everything read (blocked_thread_turns)."""
        self._is_going_on = True
        while self._ready:
            answer, made = self._ready.popleft()
            answer.follow(made)
            if self._ready and self._poller.time_slice.spend(0):
                self._timers.after(0, self._go_on)
                return
        assert self._blocked_since_ns is not None
        self.blocked_ns += self._poller.now_ns - self._blocked_since_ns
        self._blocked_since_ns = None
        self._poller.release()
        self._memory.resume()
        self._muted.resume()
        self._is_going_on = False
        self.update_blocked()  # requests read meanwhile may not fit
