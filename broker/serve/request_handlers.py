"""The request handlers of a broker, and the queue before them, under virtual time; here those of one shard. Pure: no I/O, no clock.

In Kafka the network threads put requests into one ArrayBlockingQueue of `queued.max.requests`, and `num.io.threads` handlers
take them out. A request that does not fit blocks the thread that puts it, and the requests that this thread has read wait
behind it. A shard is one network thread, with a queue and handlers of its own.

A handler is busy with a request for as long as it was said when it was put. Then `finish` returns the request, and its handler is
still with it: the caller serves it, and says by `keep` that this takes longer, or by `free` that it is done.

first_in_first_out  Requests are taken in the order in which they were put. What a request that was served before still needs
    (`put_first`) goes before them, as in Kafka's callback queue.
idle_or_queued  While a request is queued, no handler is idle; while one is blocked, the queue is full.
queue_is_bounded  No more than `queue_size` requests are queued. Those that are blocked move up as room comes.
time_is_exact  A handler takes up its next request at the instant at which it is free, however late that is noticed: so n
    requests of t each take n times t.

Source: RequestChannel, KafkaRequestHandlerPool (Apache Kafka).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Put(NamedTuple, Generic[T]):
    """A request that was put at an instant, and the time that a handler needs for it."""

    request: T
    time_ns: int
    at_ns: int


class Finished(NamedTuple, Generic[T]):
    """A request whose handler's time was over at an instant."""

    request: T
    at_ns: int


class RequestHandlers(Generic[T]):
    """`handlers` of them, None: as many as there are requests; before them a queue of `queue_size` requests.

    `taken` requests were taken up by a handler, after `waited_ns` in all.
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
        self._begun_ns = 0  # the time of all requests that were taken up, also what is still to come of it

    @property
    def queued(self) -> int:
        """The number of requests in the queue (RequestQueueSize)."""
        return len(self._queue)

    @property
    def is_blocked(self) -> bool:
        """True while a request waits for room in the queue, and with it the network thread."""
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
        """The time for which handlers were busy, all of them together."""
        return self._begun_ns - sum(max(until_ns - now_ns, 0) for until_ns, _, _ in self._busy)

    def put(self, request: T, time_ns: int, now_ns: int) -> None:
        """A request that a handler needs `time_ns` for: it is taken up, queued or blocked."""
        put = _Put(request, time_ns, now_ns)
        if self.has_idle:
            self._take(put, now_ns)
        elif len(self._queue) < self._queue_size:  # then none is blocked (idle_or_queued)
            self._queue.append(put)
        else:
            self._blocked.append(put)

    def pass_by(self) -> None:
        """A request that needs no time was taken up by an idle handler."""
        self.taken += 1

    def put_first(self, request: T, time_ns: int, now_ns: int) -> None:
        """A request that has been served needs a handler for so much longer: before all that are queued."""
        put = _Put(request, time_ns, now_ns)
        if self.has_idle:
            self._begin(put, now_ns)
        else:
            self._first.append(put)

    def finish(self, now_ns: int) -> Finished[T] | None:
        """The request whose handler was the first to be done by now; None: there is none. `keep` or `free` follows."""
        if not self._busy or self._busy[0][0] > now_ns:
            return None
        at_ns, _, request = heapq.heappop(self._busy)
        self._in_hand += 1
        return Finished(request, at_ns)

    def keep(self, finished: Finished[T], time_ns: int) -> None:
        """Its handler stays with the request for so much longer."""
        self._in_hand -= 1
        self._begin(_Put(finished.request, time_ns, finished.at_ns), finished.at_ns)

    def free(self, finished: Finished[T]) -> None:
        """The handler is done with it, and takes up the next request."""
        self._in_hand -= 1
        self._take_up(finished.at_ns)

    def resize(self, handlers: int, now_ns: int) -> None:
        """There are more handlers from now on, or fewer: those beyond the number end with the request that they have."""
        self._handlers = handlers
        self._take_up(now_ns)

    def dismiss(self, now_ns: int) -> None:
        """There are no handlers to wait for any more: all requests are done now, in the order in which they would have been."""
        self._begun_ns = self.busy_ns(now_ns)
        self._handlers = None
        done = sorted(self._busy)
        self._busy = [(min(until_ns, now_ns), next(self._numbers), request) for until_ns, _, request in done]
        for waiting in (self._first, self._queue, self._blocked):
            waiting.extend([waiting.popleft()._replace(time_ns=0) for _ in range(len(waiting))])
        self._take_up(now_ns)

    def clear(self, now_ns: int) -> list[T]:
        """Drops all requests, and returns them. Not between `finish` and what follows it."""
        self._begun_ns = self.busy_ns(now_ns)
        dropped = [put.request for put in (*self._first, *self._queue, *self._blocked)]
        dropped += [request for _, _, request in self._busy]
        for each in (self._first, self._queue, self._blocked, self._busy):
            each.clear()
        return dropped

    def _take_up(self, at_ns: int) -> None:
        """Idle handlers take up what waits."""
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
        """Raises AssertionError when an invariant does not hold; not between `finish` and what follows it."""
        assert len(self._queue) <= self._queue_size
        assert not self.has_idle or not (self._queue or self._first)
        assert not self._blocked or len(self._queue) == self._queue_size
