"""One client connection: frames in, responses out, in order.

A connection is a state machine driven by the poller, with no task of its own: a request whose handler answers at once
never leaves the callback in which its bytes arrived. A handler that must wait returns a Deferred; until it has answered
nothing more is read, as a Kafka broker mutes a channel while it serves its request. So responses leave in the order of
their requests.

Invariants
responses_in_request_order  Responses are written in the order in which their requests arrived; those of requests that are
    served together, together.
one_request_at_a_time  While a request is served, an answer is unsent or the channel is muted, no further request is taken
    up.
closed_before_tokens_are_released  `closed` is reported exactly once, before the connection's tokens are released.
last_answers_are_read  A connection that ends after an answer is closed when its client has closed it, or a moment later: a
    reset, which unread bytes would cause, must not overtake the answer.
ended_connections_cancel  A connection that ends cancels the answers it waits for.
closed_clients_free_tokens  A client that has closed its side while a request waits is gone: its tokens are free at once, whatever
    else it had sent. Requests behind it are served for their effect (Produce without acknowledgement) and not answered.
closing_keeps_throttles  Requests behind a mute, a charge that is under way, or a request that waits for a handler are served when
    that is over, also of a client that has left, as by Kafka: else closing would be a way around a quota or a full queue.
clients_get_slices  However much a client sends or takes, its connection does so much of it at a time as fits a time slice,
    and is called again in the next pass (poller.py, one_call_per_watcher_and_pass). Being called again it finds out itself
    what is to be done: it may have been muted since, or its client may have left. Whole frames wait in `received` only
    while it is busy, muted, unsent or to be called again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.serve.channel import ChannelServer
from broker.serve.client_socket import NOTHING, READ_SIZE, ClientSocket, scratch
from broker.serve.framed_socket import FramedSocket
from broker.wire import wire
from broker.wire.answer_parts import Encoded
from shards.errors import ClientFault
from shards.loop.deferred import Deferred
from shards.loop.poller import EPOLLERR, EPOLLHUP, EPOLLRDHUP
from shards.settings.addresses import normalise_ip

_HUNG_UP = EPOLLRDHUP | EPOLLHUP | EPOLLERR
_PARTING_MS = 1000


class Connection(FramedSocket):
    """A connection that was admitted. `serving` is what all connections of a listener share."""

    __slots__ = (
        "_when_closed", "client_id", "closed", "fetch_throttled_until_ms", "gone", "host", "hung_up", "id", "ip",
        "last_used_ns", "listener", "must_finish", "muted", "opened_ns", "parting", "pools", "port", "produce_throttled_until_ms",
        "requests", "software", "throttle", "throttled_until_ms", "under_way", "user",
    )  # fmt: skip

    def __init__(
        self, serving: ChannelServer, fd: int, family: int, number: int, ip: str, port: int, *, pools: tuple[str, ...]
    ) -> None:
        ClientSocket.__init__(self, serving, fd, family)
        self.id = number
        self.ip = ip
        # The client's own address, where `ip` is that of the network that it counts as.
        self.host = self.peer if ":" in ip and serving.counts_networks else ip
        self.port = port
        self.pools = pools
        self.listener = serving.listener
        self.user = "ANONYMOUS"
        self.authentication = serving.authentication()
        self.throttle: tuple[str, int] | None = None
        self.throttled_until_ms = self.produce_throttled_until_ms = self.fetch_throttled_until_ms = 0
        self.must_finish = False
        self.parting: str | None = None
        self.client_id: str | None = None
        self.software: tuple[str, str] | None = None
        self.requests = 0  # answered, or served without an answer
        self.opened_ns = self.last_used_ns = serving.poller.now_ns
        self.received: bytearray | None = None
        self.under_way: tuple[int, Deferred[Encoded | None]] | None = None  # a request that waits: its size, its answer
        self.busy = False
        self.muted = False
        self.closed = False
        self.hung_up = False  # the end of the stream has arrived; it may stand behind data that is not read yet
        self.buffers = False
        self.waits_for_memory = False
        self.gone = False  # and nothing is to be answered any more
        self._when_closed: Callable[[], None] | None = None

    def __str__(self) -> str:
        return f"a connection of {self.ip} to {self.listener}"

    def ready(self, events: int) -> None:
        """The poller's callback: the socket became readable, writable, or its other end hung up."""
        if events & _HUNG_UP:
            self.hung_up = True
        if self.unsent is not None:
            self._write_on()
        elif self.serving.tls is not None:
            self.let_tls_write()
        if self.closed:
            return
        if self.gone:
            self._serve_to_the_end()
            return
        if self.unsent is None and (not self.busy or self.parting is not None) and not self.waits_for_memory:
            self._serve_on()
        if self.hung_up:
            self._look_for_the_end()

    def close(self, why: str = "client") -> None:
        """Ends the connection; `why` is the reason that is journaled: client, malformed, idle, shutdown, ..."""
        if self.gathered is not None:
            self.send_gathered()
        if self.closed:
            return
        self.closed = True
        self.serving.poller.forget(self.fd)
        if self.muted:
            self.serving.muted.forget(self)
        self.serving.closed(self, why)
        self.close_socket()
        if self.buffers:
            self._forget_request()
        self.received = None
        self._cancel_answer()
        if self._when_closed is not None:
            self._when_closed()

    def hold(self, pools: tuple[str, ...]) -> None:
        """The connection holds a token of each of `pools` from here on, and gives them back when it closes."""
        self.pools = pools

    @property
    def peer(self) -> str:
        """The client's own address, in its one spelling."""
        try:
            return normalise_ip(self.sock.getpeername()[0])
        except OSError:  # the client has hung up
            return self.ip

    def call_when_closed(self, function: Callable[[], None]) -> None:
        """Calls `function` once when the connection has closed, at once if it has; in place of one given before."""
        self._when_closed = function
        if self.closed:
            function()

    # Reading

    def _serve_on(self) -> None:
        """Serves what has arrived before, and then what the socket holds."""
        if self.received is not None and not self.busy:
            self._serve_received()
            if self.busy or self.unsent is not None or self.closed or self.waits_for_memory:
                return
            if self._time_slice.over:
                self.serving.poller.again(self.fd)  # also where nothing is left: the bytes in the socket were not read
                return
        self._read()

    def _read(self) -> None:
        """Reads and serves until the socket is empty, or the time slice over (clients_get_slices).

        With edge-triggered readiness a short read says that it is empty; what TLS holds makes no socket ready.
        """
        while True:
            size = self.receive()
            if size <= 0:
                if size != NOTHING:
                    self.close(self.parting or "client")
                return
            if self.parting is None:  # else nothing more is answered, and this is dropped
                self._take(size)
            if self.busy or self.unsent is not None or self.closed or self.waits_for_memory:
                # It reads again when the answer is out; so a full read followed by more data is not forgotten.
                return
            if size < READ_SIZE and not self.hung_up and (self.serving.tls is None or self.tls_is_empty()):
                return
            if self._time_slice.spend(size):
                self.serving.poller.again(self.fd)
                return

    # The end of the stream

    def _look_for_the_end(self) -> None:
        """The end of the stream has arrived: closes a connection that waits for an answer (closed_clients_free_tokens)."""
        may_end = self.busy and not self.closed and self.parting is None and self.unsent is None
        if may_end and self._read_to_the_end() and not self._is_held_up():
            self.gone = True
            self._serve_to_the_end()

    def _serve_to_the_end(self) -> None:
        """Serves what the client had sent before it left, and closes."""
        while not self._is_held_up():
            self._cancel_answer()
            self.busy = False
            self._serve_received()
            if self.closed or (self._time_slice.over and self.received is not None):
                return  # the connection has ended, or is called again
            if not self.busy:
                self.close()
                return

    def _is_held_up(self) -> bool:
        """True if what has arrived is not to be served yet (closing_keeps_throttles)."""
        return self.received is not None and (self.muted or self.must_finish)

    def _read_to_the_end(self) -> bool:
        """True if the end was reached in this time slice; what stood before it, a socket's buffer at most, waits in `received`."""
        while True:
            size = self.receive()
            if size <= 0:
                return size != NOTHING
            if self.received is None:
                self.received = bytearray(scratch[:size])
            else:
                self.received += scratch[:size]
            if self._time_slice.spend(size):
                self.serving.poller.again(self.fd)
                return False

    def _cancel_answer(self) -> None:
        self.must_finish = False
        under_way, self.under_way = self.under_way, None
        if under_way is not None:
            under_way[1].cancel()

    def read_on(self) -> None:
        self.waits_for_memory = False
        self._read()
        if self.hung_up:
            self._look_for_the_end()

    # Serving

    def _serve(self, frame: bytes) -> None:
        serving = self.serving
        self.last_used_ns = serving.poller.now_ns
        try:
            answer = serving.answer(self, frame)
            if isinstance(answer, Deferred) and answer.resolved:
                answer = answer.result()
        except Exception as fault:
            self._fail(fault)
            return
        size = len(frame) + 4
        if isinstance(answer, Deferred):
            self.busy = True
            self.under_way = size, answer
            answer.add_callback(self._came)
        else:
            self._answer(size, answer)
            if self.throttle is not None and not self.closed:
                self._mute(*self.throttle)

    def _answer(self, size: int, response: Encoded | None) -> None:
        """Counts a request of `size` bytes, and sends what answers it."""
        self.requests += 1
        if response is None:
            self.serving.answered(size, 0)
        else:
            self.serving.answered(size, len(response))
            if not self.gone:
                self.send(response)

    def _came(self, answer: Deferred[Encoded | None]) -> None:
        """The answer that a request waited for is there: sends it, unless an earlier one is unsent (responses_in_request_order)."""
        self.serving.poller.touch()
        if self.unsent is None and self.under_way is not None and self.under_way[1] is answer:
            self._answer_under_way(*self.under_way)

    def _answer_under_way(self, size: int, answer: Deferred[Encoded | None]) -> None:
        try:
            response = answer.result()
        except Exception as fault:
            self._fail(fault)
            return
        self.under_way = None
        self.must_finish = False
        self._answer(size, response)
        self._answered()

    def _fail(self, fault: Exception) -> None:
        """A request that can't be answered ends its connection; a mistake of ours is said in full."""
        if isinstance(fault, wire.BadFrame | ClientFault):
            self._reject(str(fault))
        else:
            self.serving.bug(self, fault)
            self.close("bug")

    def _reject(self, why: str) -> None:
        self.serving.malformed(self, why)
        self.close("malformed")

    def _answered(self) -> None:
        """Nothing is under way any more: what comes next."""
        if self.parting is not None:
            self._part(self.parting)
        elif self.throttle is not None and not self.closed:
            self._mute(*self.throttle)
        else:
            self.go_on()

    def _mute(self, kind: str, delay_ms: int) -> None:
        """Takes up no request for so long: the quota of this kind was exceeded."""
        self.busy = self.muted = True
        self.serving.muted.mute(self, kind, delay_ms)

    def go_on(self) -> None:
        """Takes up the next request: one that has arrived already, else whatever the socket holds."""
        self.busy = self.muted = False
        self.throttle = None
        if self.closed or self.unsent is not None:
            return
        if self._time_slice.over:  # the time slice of a callback (of a timer or a link) that served others before
            self.serving.poller.again(self.fd)
            return
        if self.gone:
            self._serve_to_the_end()
            return
        self.serving.poller.refresh()  # the client may have sent it after it had read the answer
        self._serve_on()
        if self.hung_up:
            self._look_for_the_end()

    # Writing

    def _write_on(self) -> None:
        if not self.send_unsent():
            return
        if self.parting is not None:
            self._shut()
        elif self.under_way is not None and self.under_way[1].resolved:
            self._answer_under_way(*self.under_way)
        elif not self.busy:
            self.go_on()

    # Parting

    def _part(self, why: str) -> None:
        """Nothing more is answered: says so once all is sent, and leaves the client a moment to read it."""
        self.serving.timers.after(_PARTING_MS, partial(self.close, why))
        if self.unsent is None and not self.closed:
            self._shut()

    def _shut(self) -> None:
        if not self.shut():
            self.close(self.parting or "client")
