"""The request queue of a shard, as Kafka has it between network threads and request handlers; on by `turnstile.request.queue`.

A shard is one network thread. Its requests wait for one of its handlers, in a queue of its own (request_handlers.py); a handler is
busy for what `turnstile.request.cost` says, then the request is served and answered. With more than fits the queue the thread
blocks (network_thread.py). The other connections that were ready in the same pass are still read, one request each, as by Kafka's
selector; these requests wait in the order in which they were read.

off_costs_nothing  While it is off, nothing of this module is on the path of a request.
handlers_finish_their_work  A request that waits or is with a handler is served also when its client has left; its answer is
    dropped.
waiting_needs_no_handler  A request that must wait for something (records, members of a group, another shard, a fault's delay)
    gives its handler back while it waits. What the bytes of its answer cost is spent by the next free handler, before all requests
    that are queued: in Kafka the handler whose request completes a delayed Fetch reads the records.
thread_answers_logins  What Kafka's network threads answer themselves waits for no handler: all that comes before authentication,
    and frames of which the first bytes are no request.

Sources: SocketServer.Processor, RequestChannel, KafkaRequestHandler (Apache Kafka).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.runtime.shard_context import ShardContext
from broker.serve.channel import AnswerFrame, Channel
from broker.serve.muted import Muted
from broker.serve.network_thread import NetworkThread
from broker.serve.request_cost import RequestCosts
from broker.serve.request_handlers import Finished, RequestHandlers
from broker.serve.request_memory import RequestMemory
from broker.wire import apis, wire
from broker.wire.answer_parts import Encoded
from shards.errors import ClientFault
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.loop.timers import Timer

_HANDLERS: Final = "num.io.threads"
_PLACES: Final = "queued.max.requests"
_HEADER_BYTES: Final = 8
_EXPECTED = (wire.BadFrame, ClientFault, OSError)
"""Errors that are no bug in a request whose client has left: its socket is closed already."""


class _Request:
    """One request: how it is served, and its answer. `made_answer`: that answer once it is made, while a handler spends what its
    bytes cost."""

    __slots__ = ("answer", "channel", "frame", "is_left", "made_answer", "serve", "under_way")

    def __init__(self, serve: AnswerFrame, channel: Channel, frame: bytes) -> None:
        self.serve = serve
        self.channel = channel
        self.frame = frame
        self.answer: Deferred[Encoded | None] = Deferred()
        self.answer.ends_by(self._leave)
        self.made_answer: Deferred[Encoded | None] | None = None
        self.under_way: Deferred[Encoded | None] | None = None
        self.is_left = False

    def _leave(self) -> None:
        """Nothing waits for the answer any more."""
        self.is_left = True
        if self.under_way is not None:
            self.under_way.cancel()


class RequestQueue:
    """The queue and the handlers of one shard. `muted`, `memory`: those of the same shard."""

    def __init__(self, context: ShardContext, muted: Muted, memory: RequestMemory) -> None:
        self._context = context
        self._image = context.image
        self._poller = context.poller
        self._timers = context.timers
        self._memory = memory
        self._costs = RequestCosts()
        self._handlers: RequestHandlers[_Request] = RequestHandlers(None, self._share(_PLACES))
        self._thread = NetworkThread(context.poller, context.timers, muted, memory, lambda: self._handlers.is_blocked)
        self._timer: Timer | None = None
        self._timer_ns: int | None = None
        self._serving = False
        self.is_on = False
        self.size = 0
        """The number of this shard's handlers; 0 while it is off."""
        self._capacity_ns, self._resized_ns = 0, self._poller.now_ns

    def follow(self) -> None:
        """The image has another version: reads the settings again. When the queue is switched off, all that waits is served at
        once."""
        now_ns = self._poller.now_ns
        self._capacity_ns = self._capacity(now_ns)
        self._resized_ns = now_ns
        was_on, self.is_on = self.is_on, self._image.get("turnstile.request.queue")
        if self.is_on:
            self._costs.read(self._image)
        else:
            self._costs.clear()  # also for requests that are read before `around` is asked again
        before, self.size = self.size, self._share(_HANDLERS) if self.is_on else 0
        if self.size and self.size != before:
            self._handlers.resize(self.size, now_ns)
            self._warn_if_fewer_than_shards()
        if was_on and not self.is_on:
            self._handlers.dismiss(now_ns)
        if was_on or self.is_on:
            self._update()

    def around(self, answer: AnswerFrame) -> AnswerFrame:
        """`answer`, behind the queue if this is on."""
        return partial(self._take_up, answer) if self.is_on else answer

    def reset(self) -> None:
        """Drops everything that waits; its connections are closed."""
        for request in self._handlers.clear(self._poller.now_ns):
            if request.made_answer is None:
                self._memory.queued(-len(request.frame))
        self._thread.forget()
        self._update()

    # What it shows

    @property
    def queued(self) -> int:
        """Requests in the queue (RequestQueueSize); those that wait for room in it are not."""
        return self._handlers.queued

    @property
    def taken(self) -> int:
        """Requests that handlers have taken up."""
        return self._handlers.taken

    @property
    def waited_ns(self) -> int:
        """The time for which these had waited (RequestQueueTimeMs), all of them together."""
        return self._handlers.waited_ns

    @property
    def blocked_ns(self) -> int:
        """The time for which the network thread was blocked."""
        return self._thread.blocked_ns

    def busy_ns(self) -> int:
        """The time for which handlers were busy."""
        return self._handlers.busy_ns(self._poller.now_ns)

    def idle_share(self) -> float:
        """The part of the time for which handlers were idle since the first were there (RequestHandlerAvgIdlePercent, its mean)."""
        capacity_ns = self._capacity(self._poller.now_ns)
        return 1 - min(self.busy_ns() / capacity_ns, 1.0) if capacity_ns else 1.0

    def part_of_idle_share(self) -> float:
        """The part of the broker's idle share that this shard's handlers are: those of all its shards add up to the mean over the
        broker's handlers."""
        shards = range(self._context.shards)
        return self.idle_share() * self.size / sum(self._share_of(shard, _HANDLERS) for shard in shards)

    def _capacity(self, now_ns: int) -> int:
        return self._capacity_ns + self.size * (now_ns - self._resized_ns)

    def _share(self, name: str) -> int:
        return self._share_of(self._context.shard, name)

    def _share_of(self, shard: int, name: str) -> int:
        """A shard's part of a number of the broker's: shares are equal, or one more on the first shards, and one at least."""
        of_broker, shards = int(self._image.get(name)), self._context.shards
        return max(of_broker // shards + (shard < of_broker % shards), 1)

    def _warn_if_fewer_than_shards(self) -> None:
        """A broker with more shards than handlers, or than places in the queue, has one for each shard."""
        context = self._context
        for name in (_HANDLERS, _PLACES) if context.shard == 0 else ():
            if (of_broker := self._image.get(name)) < context.shards:
                context.log.warning(
                    "the setting is less than the number of shards: each shard has 1",
                    setting=name, value=of_broker, shards=context.shards,
                )  # fmt: skip

    # The path of a request

    def _take_up(self, serve: AnswerFrame, channel: Channel, frame: bytes) -> MaybeDeferred[Encoded | None]:
        key = int.from_bytes(frame[:2])
        if channel.authentication is not None or len(frame) < _HEADER_BYTES or key not in apis.APIS:
            return self._passed(serve(channel, frame))
        cost, handlers = self._costs.get(key), self._handlers
        if cost is None and handlers.has_idle:
            handlers.pass_by()
            return self._passed(serve(channel, frame))
        request = _Request(serve, channel, frame)
        channel.must_finish = True
        self._memory.queued(len(frame))
        time_ns = 0 if cost is None else int(cost.request_us(len(frame)) * 1000)
        handlers.put(request, time_ns, self._poller.now_ns)
        self._update()
        return request.answer

    def _passed(self, made: MaybeDeferred[Encoded | None]) -> MaybeDeferred[Encoded | None]:
        """The answer to a request that waited for no handler; one that comes later waits while the thread is blocked."""
        if not isinstance(made, Deferred) or made.resolved:
            return made
        answer: Deferred[Encoded | None] = Deferred()
        answer.ends_by(made.cancel)
        made.add_callback(partial(self._thread.send, answer))
        return answer

    def _finish_due(self) -> None:
        """Serves the requests whose handlers' time is over."""
        self._timer = None
        if self._serving:
            return
        self._serving = True
        now_ns = self._poller.now_ns
        while (finished := self._handlers.finish(now_ns)) is not None:
            self._finish(finished)
            if self._poller.time_slice.spend(0):
                break
        self._serving = False
        self._update()

    def _finish(self, finished: Finished[_Request]) -> None:
        request, handlers = finished.request, self._handlers
        request.channel.must_finish = False
        if request.made_answer is not None:
            handlers.free(finished)
            self._thread.send(request.answer, request.made_answer)
            return
        self._memory.queued(-len(request.frame))
        made = self._serve(request)
        if not made.resolved:
            handlers.free(finished)
            self._await(request, made)
            return
        more_ns = self._answer_ns(request, made)
        if more_ns:
            self._spend(request, made)
            handlers.keep(finished, more_ns)
        else:
            handlers.free(finished)
            self._thread.send(request.answer, made)

    def _serve(self, request: _Request) -> Deferred[Encoded | None]:
        made: Deferred[Encoded | None] = Deferred()
        try:
            answer = request.serve(request.channel, request.frame)
        except Exception as fault:
            made.fail(fault)
            if request.is_left and not isinstance(fault, _EXPECTED):
                request.channel.serving.bug(request.channel, fault)
            return made
        if isinstance(answer, Deferred):
            return answer
        made.resolve(answer)
        return made

    def _await(self, request: _Request, made: Deferred[Encoded | None]) -> None:
        """The answer comes later (waiting_needs_no_handler); nothing waits for it once its client has left."""
        if request.is_left:
            made.cancel()
            return
        request.under_way = made
        made.add_callback(partial(self._answer_is_there, request))

    def _answer_is_there(self, request: _Request, made: Deferred[Encoded | None]) -> None:
        request.under_way = None
        more_ns = self._answer_ns(request, made)
        if not more_ns:
            self._thread.send(request.answer, made)
            return
        self._poller.touch()
        self._spend(request, made)
        self._handlers.put_first(request, more_ns, self._poller.now_ns)
        self._set_timer()

    def _spend(self, request: _Request, made: Deferred[Encoded | None]) -> None:
        """A handler spends what the bytes of an answer cost before that leaves."""
        request.made_answer = made
        request.channel.must_finish = True

    def _answer_ns(self, request: _Request, made: Deferred[Encoded | None]) -> int:
        cost = self._costs.get(int.from_bytes(request.frame[:2]))
        if cost is None or not cost.of_answer:
            return 0
        try:
            answer = made.result()
        except Exception:  # told when it is sent
            return 0
        return int(cost.answer_us(len(answer or b"")) * 1000)

    def _update(self) -> None:
        """Requests were put, or taken up."""
        self._thread.update_blocked()
        self._set_timer()

    def _set_timer(self) -> None:
        """One timer, for the handler that is done first."""
        next_ns = self._handlers.next_ns
        if self._timer is not None:
            if self._timer_ns == next_ns:
                return
            self._timers.cancel(self._timer)
            self._timer = None
        if next_ns is not None and not self._serving:
            self._timer_ns = next_ns
            self._timer = self._timers.after((next_ns - self._poller.now_ns) / 1e6, self._finish_due)
