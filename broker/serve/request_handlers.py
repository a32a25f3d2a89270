"""The request handlers of one shard, and the queue in front of them, under virtual time. Pure: no I/O, no clock.

In Kafka the network threads put requests into one ArrayBlockingQueue of `queued.max.requests`, and `num.io.threads` handlers
take them out. A request for which the queue has no room blocks the network thread that puts it, and with it all further requests of
that thread. Here a shard is one network thread, with a queue and handlers of its own.

`put` says for how long a request will keep its handler busy. When that time is over, `finish` returns the request. Its handler is
not free yet: the caller serves the request, and then calls `keep` to keep the handler for longer, or `free`.

first_in_first_out  Handlers take requests in the order in which they were put. A request that was served, and needs a handler once
    more (`put_first`), goes before all of them, as in Kafka's callback queue.
idle_or_queued  While a request is queued, no handler is idle. While a request is blocked, the queue is full.
queue_is_bounded  At most `queue_size` requests are queued. Blocked requests move into the queue as room comes.
time_is_exact  A handler takes its next request at the instant at which it is free, however late `finish` is called. So one handler
    needs n times t for n requests of t each.

Source: RequestChannel, KafkaRequestHandlerPool (Apache Kafka).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Put(NamedTuple, Generic[T]):
    """A request, the time that a handler needs for it, and the instant at which it was put."""

    request: T
    time_ns: int
    at_ns: int


class Finished(NamedTuple, Generic[T]):
    """A request, and the instant at which its handler's time was over."""

    request: T
    at_ns: int


class RequestHandlers(Generic[T]):
    """`handlers`: their number; None: one for each request. `queue_size`: the room of the queue, in requests.

    `taken`: the requests that handlers have taken up. `waited_ns`: the time for which these had waited, all together.
    """

    def __init__(self, handlers: int | None, queue_size: int) -> None:
        self.taken = 0
        self.waited_ns = 0
        self._handlers = handlers
        self._queue_size = queue_size
        self._first: deque[_Put[T]] = deque()
        self._queue: deque[_Put[T]] = deque()
        self._blocked: deque[_Put[T]] = deque()
        self._busy: list[tuple[int, int, T]] = []  # a heap: (until when, number, request)
        self._in_hand = 0  # finished, and neither kept nor freed yet
        self._numbers = itertools.count()
        self._begun_ns = 0  # handler time of all requests that were taken up, including what is still to come

    @property
    def queued(self) -> int:
        """The number of requests in the queue (RequestQueueSize)."""
        return len(self._queue)

    @property
    def is_blocked(self) -> bool:
        """True while a request waits for room in the queue; the network thread is blocked with it."""
        return bool(self._blocked)

    @property
    def has_idle(self) -> bool:
        """True if a handler would take up a request at once."""
        return self._handlers is None or len(self._busy) + self._in_hand < self._handlers

    @property
    def next_ns(self) -> int | None:
        """The instant at which the next handler's time is over; None: none is busy."""
        return self._busy[0][0] if self._busy else None

    def busy_ns(self, now_ns: int) -> int:
        """The time for which handlers were busy up to now, summed over them."""
        return self._begun_ns - sum(max(until_ns - now_ns, 0) for until_ns, _, _ in self._busy)

    def put(self, request: T, time_ns: int, now_ns: int) -> None:
        """Puts a request that needs a handler for `time_ns`: a handler takes it up, or it is queued, or blocked."""
        put = _Put(request, time_ns, now_ns)
        if self.has_idle:
            self._take(put, now_ns)
        elif len(self._queue) < self._queue_size:  # then none is blocked (idle_or_queued)
            self._queue.append(put)
        else:
            self._blocked.append(put)

    def pass_by(self) -> None:
        """Counts a request that needs no time of its handler, and was served at once as a handler was idle."""
        self.taken += 1

    def put_first(self, request: T, time_ns: int, now_ns: int) -> None:
        """Puts a request that has been served and needs a handler for `time_ns` more; it goes before all queued ones."""
        put = _Put(request, time_ns, now_ns)
        if self.has_idle:
            self._begin(put, now_ns)
        else:
            self._first.append(put)

    def finish(self, now_ns: int) -> Finished[T] | None:
        """The request whose handler's time was over first; None if no handler's is by now. The caller must `keep` or `free` it."""
        if not self._busy or self._busy[0][0] > now_ns:
            return None
        at_ns, _, request = heapq.heappop(self._busy)
        self._in_hand += 1
        return Finished(request, at_ns)

    def keep(self, finished: Finished[T], time_ns: int) -> None:
        """Keeps the handler of a finished request busy with it for `time_ns` more."""
        self._in_hand -= 1
        self._begin(_Put(finished.request, time_ns, finished.at_ns), finished.at_ns)

    def free(self, finished: Finished[T]) -> None:
        """Frees the handler of a finished request; it takes up the next request."""
        self._in_hand -= 1
        self._take_up(finished.at_ns)

    def resize(self, handlers: int, now_ns: int) -> None:
        """Changes the number of handlers. If there are fewer, the surplus ones end after the request that they have."""
        self._handlers = handlers
        self._take_up(now_ns)

    def dismiss(self, now_ns: int) -> None:
        """Removes all handlers: every request is finished now. Those with handlers come first, in the order in which these would
        have ended; then the waiting ones, in the order in which they would have been taken up."""
        self._begun_ns = self.busy_ns(now_ns)
        self._handlers = None
        done = sorted(self._busy)
        self._busy = [(min(until_ns, now_ns), next(self._numbers), request) for until_ns, _, request in done]
        for waiting in (self._first, self._queue, self._blocked):
            waiting.extend([waiting.popleft()._replace(time_ns=0) for _ in range(len(waiting))])
        self._take_up(now_ns)

    def clear(self, now_ns: int) -> list[T]:
        """Drops all requests, and returns them. Must not be called between `finish` and its `keep` or `free`."""
        self._begun_ns = self.busy_ns(now_ns)
        dropped = [put.request for put in (*self._first, *self._queue, *self._blocked)]
        dropped += [request for _, _, request in self._busy]
        for each in (self._first, self._queue, self._blocked, self._busy):
            each.clear()
        return dropped

    def _take_up(self, at_ns: int) -> None:
        """Gives waiting requests to idle handlers."""
        while self.has_idle:
            if self._first:
                self._begin(self._first.popleft(), at_ns)
            elif self._queue:
                self._take(self._queue.popleft(), at_ns)
                if self._blocked:
                    self._queue.append(self._blocked.popleft())
            else:
                return

    def _take(self, put: _Put[T], at_ns: int) -> None:
        self.taken += 1
        self.waited_ns += max(at_ns - put.at_ns, 0)
        self._begin(put, at_ns)

    def _begin(self, put: _Put[T], at_ns: int) -> None:
        self._begun_ns += put.time_ns
        heapq.heappush(self._busy, (max(at_ns, put.at_ns) + put.time_ns, next(self._numbers), put.request))

    def check(self) -> None:
        """Raises AssertionError if an invariant is broken. Must not be called between `finish` and its `keep` or `free`."""
        assert len(self._queue) <= self._queue_size
        assert not self.has_idle or not (self._queue or self._first)
        assert not self._blocked or len(self._queue) == self._queue_size
